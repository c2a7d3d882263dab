"""What holds the clocks of an AMD GPU: power, heat, settings; and what keeps it from its best.

Limits are those that the board reports (``amd-smi static --limit``): AMD publishes none for its
Instinct boards, and NVIDIA's do not hold here. Shares of time are those of the violation counters
of MI300 and newer. Sources: ROCm/rocm-systems projects/amdsmi docs/conceptual/gpu-violations.md;
ROCm/amdsmi CHANGELOG.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.model import Finding, Severity
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.listing import finding
from engine.units import number

KIND: Final = "amd_smi"
VIOLATIONS: Final = "ROCm/rocm-systems projects/amdsmi docs/conceptual/gpu-violations.md"
BUSY: Final = 80.0
IDLE: Final = 5.0
# Share of the window, as AMD reads it: up to 25 light, up to 50 moderate, above heavy.
_LIGHT, _MODERATE = 25.0, 50.0
# AMD's hint for a thermal limit together with violations (Celsius).
HOT_C: Final = 95.0
# A cap this far below the highest setting was lowered; some boards come at 90 % of theirs.
_LOWERED: Final = 0.85
# Boards whose default cap is their highest setting: Instinct modules.
_MODULE_W: Final = 500.0
_AT_CAP: Final = 0.9
# From here on a busy board is held by its cap, violations told or not.
_FULL: Final = 0.97
_SLOW: Final = 0.9
# Idle Instinct boards clock at about 132 MHz, of 1700 and more under load.
_CRAWL: Final = 0.15
_CRAWL_MHZ: Final = 250.0
_FREE_LEVELS: Final = ("AUTO", "HIGH", "STABLE_PEAK", "UNKNOWN")
_HOLDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "socket_thermal": ("its temperature limit", "thermal_slowdown_sw"),
    "hbm_thermal": ("the temperature limit of its memory", "memory_overheat"),
    "vr_thermal": ("the temperature limit of its voltage regulators", "thermal_slowdown_sw"),
    "prochot": ("PROCHOT, the emergency brake", "thermal_slowdown_hw"),
    "ppt": ("its power limit", "power_bound"),
}


def limit_findings(gpu: AmdGpu) -> Iterator[Finding]:
    """Yield what holds one GPU back."""
    if not gpu.whole:
        return
    heat = list(_heat(gpu))
    yield from heat
    held = {f.cause for f in heat}
    for one in _violations(gpu):
        if one.cause not in held:
            yield one
    yield from _power(gpu)
    yield from _stuck(gpu)
    yield from _setting(gpu)


def _heat(gpu: AmdGpu) -> Iterator[Finding]:
    for name, slowdown, shutdown, what, cause in (
        (
            "hotspot_c",
            "slowdown_hotspot_c",
            "shutdown_hotspot_c",
            "hot spot",
            "thermal_slowdown_sw",
        ),
        ("edge_c", "slowdown_edge_c", "shutdown_edge_c", "edge sensor", "thermal_slowdown_sw"),
        ("memory_c", "slowdown_memory_c", "shutdown_memory_c", "memory", "memory_overheat"),
    ):
        now, limit = gpu.get(name), gpu.get(slowdown)
        if now is None or not limit or now < limit:
            continue
        end = gpu.get(shutdown)
        yield finding(
            KIND,
            "heat",
            Severity.HIGH,
            f"{gpu.label}: its {what} is at {number(now)} °C, at or above the board's slowdown "
            f"limit of {number(limit)} °C: its clocks are lowered"
            + (f"; at {number(end)} °C it shuts down." if end else "."),
            "Take load off, check fans or coolant flow, the heat sink and the inlet air, and "
            "compare with the other GPUs: amd-smi monitor -t -p -V.",
            line=gpu.line,
            cause=cause,
            data={name: now, slowdown: limit, shutdown: end},
            entity=gpu.entity,
            sources=("amd-smi static --limit of this board",),
        )


def _violations(gpu: AmdGpu) -> Iterator[Finding]:
    """Share of the time in which the clocks were held, by reason; the worst first."""
    for kind, (words, cause) in _HOLDS.items():
        share = gpu.get(f"{kind}_percent")
        active = kind in gpu.active
        if not share and not active:
            continue
        share = share or 0.0
        degree = "light" if share <= _LIGHT else "moderate" if share <= _MODERATE else "heavy"
        hot = gpu.get("hotspot_c")
        named = cause
        if kind == "prochot" and hot is not None and hot < HOT_C:
            named = "power_brake"
        if kind == "ppt" and lowered(gpu):
            continue
        benign = kind == "ppt"
        near = f", hot spot {number(hot)} °C" if hot is not None else ""
        how = (
            f"for {number(share)} % of the last interval ({degree}{near})"
            if share
            else f"at this moment{near}"
        )
        yield finding(
            KIND,
            f"held_{kind}",
            Severity.INFO if benign else Severity.HIGH if degree != "light" else Severity.MEDIUM,
            f"{gpu.label} is held by {words} {how}"
            + (": as designed under a heavy load." if benign else "."),
            "Nothing, if the others of the node show the same; one alone means a lowered cap or a "
            "bad board: amd-smi static --limit."
            if benign
            else "Check cooling and power supply of the node, and the limits: amd-smi static "
            "--limit; watch amd-smi monitor -V -t -p under load.",
            line=gpu.line,
            cause=named,
            data={"violation": kind, "violation_percent": share or None, "hotspot_c": hot},
            entity=gpu.entity,
            sources=(VIOLATIONS,),
        )


def lowered(gpu: AmdGpu) -> bool:
    """Whether its power cap was set below the board's highest, where that is the default."""
    cap, most = gpu.get("power_cap_w"), gpu.get("power_cap_max_w")
    if not cap or not most or cap >= _LOWERED * most:
        return False
    return most >= _MODULE_W or "instinct" in (gpu.model or "").lower()


def _power(gpu: AmdGpu) -> Iterator[Finding]:
    cap, most, drawn = gpu.get("power_cap_w"), gpu.get("power_cap_max_w"), gpu.get("power_w")
    if not lowered(gpu) or cap is None or most is None:
        yield from _at_cap(gpu)
        return
    held = "ppt" in gpu.active or bool(gpu.get("ppt_percent"))
    reached = held or (drawn is not None and drawn >= _AT_CAP * cap)
    yield finding(
        KIND,
        "power_cap",
        Severity.MEDIUM if reached else Severity.INFO,
        f"{gpu.label}: its power cap is {number(cap)} W, the board takes up to {number(most)} W"
        + (f"; it draws {number(drawn)} W" if drawn is not None else "")
        + (", and the cap lowers its clocks." if reached else "; it is not reached now."),
        f"If nobody wants that: amd-smi set --gpu {_index(gpu)} --power-cap {number(most)}.",
        line=gpu.line,
        cause="power_limit_lowered" if reached else None,
        data={"power_cap_w": cap, "power_cap_max_w": most, "power_w": drawn},
        entity=gpu.entity,
    )


def _at_cap(gpu: AmdGpu) -> Iterator[Finding]:
    """A busy board that draws all that its cap allows, where no counter says so."""
    cap, drawn = gpu.get("power_cap_w"), gpu.get("power_w")
    told = "ppt" in gpu.active or gpu.get("ppt_percent") is not None
    busy = (gpu.get("gfx_activity_percent") or 0.0) >= BUSY
    if not cap or not drawn or not busy or told or drawn < _FULL * cap:
        return
    known = gpu.get("power_cap_max_w") is not None
    yield finding(
        KIND,
        "at_power_cap",
        Severity.INFO,
        f"{gpu.label} draws {number(drawn)} W of its cap of {number(cap)} W: it is at its power "
        "limit, as designed under a heavy load."
        + ("" if known else " Whether that cap is the board's default is not in this text."),
        "Nothing, if its neighbours have the same cap: amd-smi static --limit shows the highest.",
        line=gpu.line,
        cause="power_bound",
        data={"power_cap_w": cap, "power_w": drawn},
        entity=gpu.entity,
    )


def _stuck(gpu: AmdGpu) -> Iterator[Finding]:
    """A clock near that of an idle board, under full load."""
    now, most = gpu.get("gfx_clock_mhz"), gpu.get("gfx_clock_max_mhz")
    busy = (gpu.get("gfx_activity_percent") or 0.0) >= BUSY
    if not busy or now is None or now >= (_CRAWL * most if most else _CRAWL_MHZ):
        return
    drawn = gpu.get("power_w")
    yield finding(
        KIND,
        "clock_stuck",
        Severity.HIGH,
        f"{gpu.label}: its GFX clock (SCLK) is at {number(now)} MHz"
        + (f" of {number(most)} MHz" if most else "")
        + f" while it is {number(gpu.get('gfx_activity_percent') or 0)} % busy"
        + (f" and draws {number(drawn)} W" if drawn is not None else "")
        + ": the clock of an idle board under load, so work crawls.",
        "See what holds it: amd-smi monitor -V -p -t, amd-smi metric --perf-level --clock; on the "
        "machine look for a power cap or brake of its controller (ipmitool sdr, BMC log). If "
        "nothing does: amd-smi reset --gpureset with jobs stopped, then a full power cycle; update "
        "driver and firmware if it returns.",
        line=gpu.line,
        cause="pstate_stuck",
        data={
            "gfx_clock_mhz": now,
            "gfx_clock_max_mhz": most,
            "gfx_activity_percent": gpu.get("gfx_activity_percent"),
            "power_w": drawn,
        },
        entity=gpu.entity,
    )


def _setting(gpu: AmdGpu) -> Iterator[Finding]:
    """A performance level or a lock that somebody set."""
    level = gpu.words.get("perf_level", "").upper().removeprefix("AMDSMI_DEV_PERF_LEVEL_")
    locked = gpu.words.get("clk_locked") == "ENABLED"
    if not locked and (not level or level in _FREE_LEVELS):
        return
    now, most = gpu.get("gfx_clock_mhz"), gpu.get("gfx_clock_max_mhz")
    busy = (gpu.get("gfx_activity_percent") or 0.0) >= BUSY
    slow = bool(busy and now and most and now < _SLOW * most)
    what = "its GFX clock is locked" if locked else f"its performance level is {level}, not AUTO"
    yield finding(
        KIND,
        "clock_setting",
        Severity.MEDIUM if slow else Severity.INFO,
        f"{gpu.label}: {what}"
        + (
            f", and it runs at {number(now)} of {number(most)} MHz under load."
            if slow and now and most
            else "."
        ),
        f"If nobody wants that: amd-smi reset --gpu {_index(gpu)} --clocks (or amd-smi set --gpu "
        f"{_index(gpu)} --perf-level AUTO).",
        line=gpu.line,
        cause="clocks_locked" if slow else None,
        data={"perf_level": level or None, "gfx_clock_mhz": now, "gfx_clock_max_mhz": most},
        entity=gpu.entity,
    )


def _index(gpu: AmdGpu) -> str:
    return "N" if gpu.index is None else str(gpu.index)
