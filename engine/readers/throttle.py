"""What a clock event ("throttle") mask says, together with the readings around it.

The mask is the sum of the bits in ``knowledge/throttle_reasons.yaml``; NVML, DCGM and nvidia-smi
use the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Severity
from engine.readers.base import errata_of
from engine.units import number

# Causes that a bit proves by itself, worst first, and how bad each is.
_PROOF = (
    ("hw_power_brake", "power_brake", Severity.CRITICAL),
    ("hw_thermal", "thermal_slowdown_hw", Severity.CRITICAL),
    ("sw_thermal", "thermal_slowdown_sw", Severity.HIGH),
    ("sync_boost", "sync_boost_held", Severity.LOW),
)
# Reasons whose entry says all there is to say.
_EXPLAINED = ("sw_power_cap", "sync_boost", "clocks_setting")
# Heat is ruled out this far below any GPU's limit; the lowest maximum operating temperature of a
# data-centre board is 83 Celsius (V100).
_COOL_C = 70.0
# Time under a limit below which no lasting slowdown is explained (s).
_BRIEF_S = 10.0
# Share of the maximum SM clock from which a GPU runs at full speed: boost steps are 15 MHz.
_FULL_CLOCK = 0.98


@dataclass(slots=True)
class Around:
    """Readings found beside a mask; None or empty where the text has none.

    Temperatures and margins in Celsius, power in W, clocks in MHz, counters in microseconds since
    the driver was loaded.
    """

    gpu_temp_c: float | None = None
    margin_c: float | None = None
    max_op_temp_c: float | None = None
    memory_temp_c: float | None = None
    memory_max_op_temp_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    sm_clock_mhz: float | None = None
    max_sm_clock_mhz: float | None = None
    pstate: str | None = None
    counters_us: dict[str, int] = field(default_factory=dict)

    def data(self) -> dict[str, float | str | dict[str, int]]:
        """Return what is known, as finding data; counters that stand at 0 are left out."""
        known = {
            name: getattr(self, name)
            for name in self.__slots__
            if name != "counters_us" and getattr(self, name) is not None
        }
        counters = {name: us for name, us in self.counters_us.items() if us}
        return known | ({"counters_us": counters} if counters else {})


def reasons_of(mask: int, catalogue: Catalogue) -> tuple[list[str], int]:
    """Return the ids of the bits set, lowest first, and what is left of the mask."""
    found: list[str] = []
    entries = catalogue.entries["throttle_reasons"].values()
    for entry in sorted(entries, key=lambda e: int(e["bit"])):
        if mask & int(entry["bit"]):
            found.append(str(entry["id"]))
            mask &= ~int(entry["bit"])
    return found, mask


def throttle_finding(
    mask: int,
    around: Around,
    catalogue: Catalogue,
    *,
    entity: Entity | None = None,
    subject: str = "the GPU",
    line: int | None = None,
) -> Finding:
    """Put a mask into words.

    Args:
        mask: the active reasons.
        around: readings beside it.
        catalogue: names the bits.
        entity: the GPU, if known.
        subject: how to call it in a sentence.
        line: where the mask stands.
    """
    reasons, left = reasons_of(mask, catalogue)
    entries = catalogue.entries["throttle_reasons"]
    cause, severity = _cause(reasons, around)
    names = " + ".join(f"{entries[r]['title']} ({entries[r]['hex']})" for r in reasons)
    head = f"Clock event mask of {subject}: {mask} = 0x{mask:X}"
    parts = [f"{head} = {names}." if names else f"{head}."]
    parts += _meaning(reasons, around, entries)
    if left:
        parts.append(f"The bits 0x{left:X} are not documented.")
    parts += _counters(reasons, around)
    actions = _actions(reasons, around, entries)
    data: dict[str, object] = {"mask": mask, "reasons": reasons}
    if left:
        data["unknown_bits"] = left
    return Finding(
        kind="throttle",
        id=f"0x{mask:X}",
        severity=severity,
        says=" ".join(parts),
        action=" ".join(actions),
        entity=entity,
        line=line,
        cause=cause,
        data=data | around.data(),
        errata=tuple(e for r in reasons for e in errata_of(entries[r])),
        sources=tuple(dict.fromkeys(s for r in reasons for s in entries[r]["source"])),
    )


def _cause(reasons: list[str], around: Around) -> tuple[str | None, Severity]:
    for reason, cause, severity in _PROOF:
        if reason not in reasons:
            continue
        if reason == "sw_thermal" and _memory_is_hot(around):
            return "memory_overheat", severity
        return cause, severity
    if "hw_slowdown" in reasons:
        return ("thermal_slowdown_hw" if _is_hot(around) else None), Severity.HIGH
    if "sw_power_cap" in reasons and "gpu_idle" not in reasons:
        if _limit_lowered(around):
            return "power_limit_lowered", Severity.MEDIUM
        if _at_limit(around):
            return "power_bound", Severity.INFO
    if "gpu_idle" in reasons:
        return "idle", Severity.INFO
    if "clocks_setting" in reasons and not _at_full_clock(around):
        return "clocks_locked", Severity.LOW
    return None, Severity.LOW if reasons else Severity.INFO


def _meaning(
    reasons: list[str], around: Around, entries: Mapping[str, Mapping[str, object]]
) -> list[str]:
    parts: list[str] = []
    brake, idle = "hw_power_brake" in reasons, "gpu_idle" in reasons
    if not reasons:
        parts.append(
            "Nothing throttles it at this moment. That alone is no proof of full speed: a clock "
            "lock or a platform power cap sets no bit."
        )
    elif reasons == ["gpu_idle"]:
        parts.append("It is idle: not throttled, the clocks are low because no work runs.")
    if brake:
        parts.append(
            "The external power brake is asserted: the power supply, rack or BMC tells the board "
            "to cut its clocks to half or less."
        )
    if "hw_thermal" in reasons:
        parts.append(
            "HW thermal slowdown: the hardware's temperature limit is reached and the clocks are "
            "at half or less, which is a real cooling fault."
        )
    if "sw_thermal" in reasons:
        parts.append(f"SW thermal slowdown: {entries['sw_thermal']['meaning']}")
    if "hw_slowdown" in reasons and not {"hw_thermal", "hw_power_brake"} & set(reasons):
        parts.append(
            "HW slowdown without its companion bits: heat, the power brake or power that rose too "
            "fast; temperature and power tell which."
        )
    parts += [str(entries[plain]["meaning"]) for plain in _EXPLAINED if plain in reasons]
    if idle and len(reasons) > 1:
        bad = "the power brake" if brake else "the other reason"
        parts.append(
            f"The GPU is idle now, but {bad} holds: under load it would be slow, its clocks cut."
        )
    return parts + _readings(reasons, around)


def _readings(reasons: list[str], around: Around) -> list[str]:
    parts: list[str] = []
    temp, margin = around.gpu_temp_c, around.margin_c
    if temp is not None:
        text = f"The die is at {number(temp)} °C"
        text += f" with {number(margin)} °C left to its limit" if margin is not None else ""
        heat = {"hw_thermal", "sw_thermal"} & set(reasons)
        if {"hw_power_brake", "hw_slowdown"} & set(reasons) and not heat and temp < _COOL_C:
            text += ": heat is ruled out, this is not thermal"
        parts.append(f"{text}.")
    elif margin is not None:
        parts.append(f"{number(margin)} °C are left to the temperature limit.")
    if around.memory_temp_c is not None:
        limit = around.memory_max_op_temp_c
        at_most = f" of at most {number(limit)} °C" if limit is not None else ""
        parts.append(f"The memory is at {number(around.memory_temp_c)} °C{at_most}.")
    if around.power_w is not None:
        limit_w = f" of {number(around.power_limit_w)} W" if around.power_limit_w else ""
        parts.append(f"It draws {number(around.power_w)} W{limit_w}.")
    if around.sm_clock_mhz is not None:
        state = f" in {around.pstate}" if around.pstate else ""
        parts.append(f"SM clock {number(around.sm_clock_mhz)} MHz{state}.")
    if _limit_lowered(around):
        assert around.power_limit_default_w is not None  # checked by _limit_lowered
        parts.append(
            f"The power limit is set below the board's default of "
            f"{number(around.power_limit_default_w)} W."
        )
    return parts


def _counters(reasons: list[str], around: Around) -> list[str]:
    spent = {name: us / 1e6 for name, us in around.counters_us.items() if us}
    if not around.counters_us:
        return []
    if not spent:
        return ["Its counters stand at 0: no throttling since the driver was loaded."]
    listed = ", ".join(f"{_seconds(s)} of {name.replace('_', ' ')}" for name, s in spent.items())
    text = f"In total since the driver was loaded: {listed}."
    if not reasons and max(spent.values()) < _BRIEF_S:
        brief = "less than a second" if max(spent.values()) < 1 else "a few seconds"
        text += f" That is {brief}: it cannot explain a lasting slowdown, so look elsewhere."
    return [text]


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def _actions(
    reasons: list[str], around: Around, entries: Mapping[str, Mapping[str, object]]
) -> list[str]:
    parts: list[str] = []
    if "hw_power_brake" in reasons:
        parts.append(
            "Inspect PSUs, power cabling, the rack PDU and the BMC's power-capping policy; look at "
            "the other GPUs of the node for the same bit."
        )
    if "hw_thermal" in reasons:
        parts.append(
            "Drain the node and take it out of service; check airflow, fans, cold plate or "
            "coolant. Until then synchronous training runs at this GPU's speed: the other ranks "
            "wait for it."
        )
    if "sw_thermal" in reasons:
        parts.append(str(entries["sw_thermal"]["action"]))
    if "hw_slowdown" in reasons and not {"hw_thermal", "hw_power_brake"} & set(reasons):
        parts.append(str(entries["hw_slowdown"]["action"]))
    parts += [str(entries[plain]["action"]) for plain in _EXPLAINED if plain in reasons]
    if not parts and reasons == ["gpu_idle"]:
        parts.append("Nothing to do; read it again under load if it is slow then.")
    if not parts and not reasons:
        lasting = any(us / 1e6 >= _BRIEF_S for us in around.counters_us.values())
        parts.append(
            "Read the counters twice while it is slow: the ones that grow name the reason."
            if lasting
            else "Look elsewhere for the reason: SM clock against its maximum, power, utilisation."
        )
    return parts


def _is_hot(around: Around) -> bool:
    if around.margin_c is not None:
        return around.margin_c <= 3
    temp, limit = around.gpu_temp_c, around.max_op_temp_c
    return temp is not None and limit is not None and temp >= limit


def _memory_is_hot(around: Around) -> bool:
    memory, limit = around.memory_temp_c, around.memory_max_op_temp_c
    return memory is not None and limit is not None and memory >= limit and not _is_hot(around)


def _limit_lowered(around: Around) -> bool:
    limit, default = around.power_limit_w, around.power_limit_default_w
    return limit is not None and default is not None and limit < default - 1


def _at_limit(around: Around) -> bool:
    power, limit = around.power_w, around.power_limit_w
    return power is not None and limit is not None and power >= 0.9 * limit


def _at_full_clock(around: Around) -> bool:
    clock, highest = around.sm_clock_mhz, around.max_sm_clock_mhz
    return clock is not None and highest is not None and clock >= _FULL_CLOCK * highest
