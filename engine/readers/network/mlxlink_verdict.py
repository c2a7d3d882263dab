"""What ``mlxlink`` shows on one port: link, bit errors against their time, module, PCIe side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import decimal, integer, short
from engine.units import number

SOURCES: Final = ("NVIDIA MFT documentation, mlxlink utility",)
# InfiniBand generations in order; Ethernet speeds are numbers in Gb/s.
_GENERATIONS: Final = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")
_ETHERNET: Final = re.compile(r"^([0-9]{1,4})G(?:_[0-9]X)?$")
_LIST: Final = re.compile(r"\(([^)]{1,200})\)")
_RANGE: Final = re.compile(
    r"^(-?[0-9]{1,4}(?:\.[0-9]{1,4})?)"
    r"(?:,[-0-9.,]{0,80})? \[(-?[0-9.]{1,8}) ?\.\. ?(-?[0-9.]{1,8})\]"
)
_ENABLED: Final = re.compile(
    r"^([0-9]{1,3})(?:G-Gen ?([0-9]))?X? \(([0-9]{1,3})(?:G-Gen ?([0-9]))?X?\)$"
)
# Bit error rate after correction that InfiniBand allows (IBTA specification 1.4, volume 2).
MAX_BER: Final = 1e-12
_CLOSED_BY_COMMAND: Final = 1


@dataclass(slots=True)
class Module:
    """One port's listing: keys in lower case, values as printed."""

    line: int
    device: str | None
    host: str | None
    values: dict[str, str] = field(default_factory=dict)

    MAX_KEYS = 512

    def add(self, key: str, value: str) -> None:
        """Keep a value; the first of a name counts."""
        if len(self.values) < self.MAX_KEYS:
            self.values.setdefault(key.strip().lower(), value)

    def text(self, *keys: str) -> str | None:
        """Return the first of these values that is there."""
        held = (self.values.get(key) for key in keys)
        return next((v for v in held if v and v != "N/A"), None)

    def count(self, key: str) -> int | None:
        """Return a counter."""
        return integer(self.text(key) or "")

    @property
    def name(self) -> str:
        """The device, as far as it is known."""
        return self.device or "the port"


def judge_modules(modules: Sequence[Module]) -> Iterable[Finding]:
    """Say what each listing shows."""
    for module in modules:
        found = [*_link(module), *_errors(module), *_optics(module), *_pcie(module)]
        yield from found
        if not found and module.text("state"):
            yield _sound(module)


def _rank(speed: str) -> float | None:
    speed = speed.strip().upper().removeprefix("IB-")
    if speed in _GENERATIONS:
        return float(_GENERATIONS.index(speed))
    ethernet = _ETHERNET.match(speed)
    return 100.0 + float(ethernet[1]) if ethernet else None


def _speeds(text: str | None) -> dict[str, float]:
    found = _LIST.search(text or "")
    names = found[1].split(",") if found else []
    return {n.strip(): rank for n in names if (rank := _rank(n)) is not None}


def _link(module: Module) -> Iterable[Finding]:
    state, physical = module.text("state"), module.text("physical state")
    speed = module.text("speed")
    # A word that was cut off says nothing.
    if state and not "active".startswith(state.lower()):
        advice = module.text("recommendation")
        closed = module.count("status opcode") == _CLOSED_BY_COMMAND
        yield finding(
            "mlxlink",
            "link_down",
            Severity.MEDIUM if closed else Severity.HIGH,
            f"{at(module.host)}{module.name}: the link is not up (state {short(state, 24)}, "
            f"physical state {short(physical or 'not shown', 32)})."
            + (f' The firmware says: "{short(advice, 120)}".' if advice else ""),
            "It was closed by a command: open it with mlxlink -d DEVICE --port_state UP, if it "
            "should be in use."
            if closed
            else "Check that cable and module sit at both ends and that the other end is on; then "
            "swap the cable.",
            line=module.line,
            cause="ib_link_down",
            data={
                "device": module.device,
                "state": short(state, 24),
                "physical_state": short(physical, 32) if physical else None,
                "status_opcode": module.count("status opcode"),
            },
            entity=node(module.host),
            sources=SOURCES,
        )
        return
    have = _rank(speed or "")
    enabled = _speeds(module.text("enabled link speed", "enabled link speed (ext.)"))
    cable = _speeds(module.text("supported cable speed", "supported cable speed (ext.)"))
    both = {n: r for n, r in enabled.items() if n in cable and (r >= 100) == ((have or 0) >= 100)}
    best = max(both, key=lambda n: both[n], default=None)
    if have is not None and best is not None and both[best] > have:
        yield finding(
            "mlxlink",
            "link_slow",
            Severity.MEDIUM,
            f"{at(module.host)}{module.name} runs at {short(speed or '', 16)}; the port and its "
            f"cable support {best}. The link trained down, unless the other end is slower by "
            "design.",
            "Look at the same port of the switch and at the sibling ports; reseat or swap the "
            "cable.",
            line=module.line,
            cause="ib_link_degraded",
            data={
                "device": module.device,
                "speed": speed,
                "supported_speed": best,
                "width": module.text("width"),
            },
            entity=node(module.host),
            sources=SOURCES,
        )


def _errors(module: Module) -> Iterable[Finding]:
    minutes = decimal(module.text("time since last clear [min]") or "")
    errors = module.count("effective physical errors")
    symbols = module.count("symbol errors")
    flaps = module.count("link down counter")
    rate = decimal(module.text("effective physical ber") or "")
    data = {
        "device": module.device,
        "effective_physical_errors": errors,
        "symbol_errors": symbols,
        "link_down_count": flaps,
        "effective_ber": rate,
        "raw_ber": decimal(module.text("raw physical ber") or ""),
        "minutes_since_clear": minutes,
    }
    over = f" over {number(minutes)} min" if minutes else " since the counters were cleared"
    if rate is not None and rate > MAX_BER:
        yield finding(
            "mlxlink",
            "bit_errors",
            Severity.HIGH,
            f"{at(module.host)}{module.name}: bit error rate after correction {rate:.2g}, above "
            f"{MAX_BER:.0e} ({errors if errors is not None else 'unknown'} errors{over}).",
            "Clean or swap the cable or transceiver, then clear (mlxlink -d DEVICE --pc) and read "
            "again under load.",
            line=module.line,
            cause="ib_link_degraded",
            data=data,
            entity=node(module.host),
            sources=SOURCES,
        )
    elif errors or symbols or flaps:
        parts = [
            f"{value:,} {what}"
            for value, what in (
                (errors, "errors after correction"),
                (symbols, "symbol errors"),
                (flaps, "times down"),
            )
            if value
        ]
        yield finding(
            "mlxlink",
            "errors_counted",
            Severity.LOW,
            f"{at(module.host)}{module.name}: {', '.join(parts)}{over}. One reading cannot show "
            "whether they still rise.",
            "Read twice, a minute apart, under load; errors after correction should not grow.",
            line=module.line,
            data=data,
            entity=node(module.host),
            sources=SOURCES,
        )


def _optics(module: Module) -> Iterable[Finding]:
    for key, what, low_means in (
        ("temperature [c]", "temperature", None),
        ("rx power current [dbm]", "received light", "dirty, bent or broken fibre"),
        ("voltage [mv]", "supply voltage", None),
    ):
        text = module.text(key)
        found = _RANGE.match(text or "")
        values = [decimal(v) for v in found.groups()] if found else []
        if len(values) != 3 or None in values:
            continue
        value, low, high = (v or 0.0 for v in values)
        unit = {"temperature [c]": "°C", "voltage [mv]": "mV"}.get(key, "dBm")
        if value > high or (value < low and key != "temperature [c]"):
            side = "above" if value > high else "below"
            yield finding(
                "mlxlink",
                "module_" + what.replace(" ", "_"),
                Severity.MEDIUM,
                f"{at(module.host)}{module.name}: {what} of the module is {number(value)} {unit}, "
                f"{side} its range of {number(low)} to {number(high)} {unit}"
                + (f" ({low_means})." if low_means and value < low else "."),
                "Check airflow at the port, clean or swap the module or cable.",
                line=module.line,
                data={"device": module.device, "reading": value, "low": low, "high": high},
                entity=node(module.host),
                sources=SOURCES,
            )


def _pcie(module: Module) -> Iterable[Finding]:
    for key, what in (
        ("link speed active (enabled)", "generation"),
        ("link width active (enabled)", "lanes"),
    ):
        found = _ENABLED.match(module.text(key) or "")
        if found is None:
            continue
        active, enabled = int(found[2] or found[1]), int(found[4] or found[3])
        if active < enabled:
            yield finding(
                "mlxlink",
                "pcie_slow",
                Severity.HIGH,
                f"{at(module.host)}{module.name}: the PCIe link of the NIC has {what} {active} of "
                f"{enabled}: it cannot feed the port.",
                "Reseat the card; check slot, riser and BIOS (lspci -vv, LnkSta against LnkCap).",
                line=module.line,
                cause="pcie_degraded",
                data={
                    "device": module.device,
                    f"pcie_{what}": active,
                    f"pcie_{what}_enabled": enabled,
                },
                entity=node(module.host),
                sources=SOURCES,
            )


def _sound(module: Module) -> Finding:
    speed, width = module.text("speed"), module.text("width")
    counted = module.count("effective physical errors")
    return finding(
        "mlxlink",
        "link",
        Severity.INFO,
        f"{at(module.host)}{module.name}: link Active at {short(speed or 'unknown speed', 16)}"
        + (f", width {short(width, 8)}" if width else "")
        + (
            ", no error after correction counted."
            if counted == 0
            else ". Errors are not in this listing (add -c)."
        ),
        "Compare speed and width with the sibling ports.",
        line=module.line,
        data={
            "device": module.device,
            "speed": speed,
            "width": width,
            "effective_physical_errors": counted,
        },
        entity=node(module.host),
        sources=SOURCES,
    )
