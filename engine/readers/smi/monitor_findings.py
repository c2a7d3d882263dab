"""What the rows of a device monitor (``nvidia-smi dmon``) show of each GPU, and beside others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import finding, node
from engine.readers.smi.concerns import CONCERNS
from engine.readers.smi.course import UNCORRECTED, Course
from engine.units import number

# GPUs with this much work (percent) are compared with each other.
_WORKING: Final = 50.0
# A clock below this share of the fastest sibling's is behind.
_BEHIND: Final = 0.75
# Hot where no limit is known (C), and so much hotter than a sibling at the same work (K).
_HOT_C: Final = 85.0
_HOT_MEMORY_C: Final = 95.0
_HOTTER_K: Final = 5.0
# GPUs that one sentence spells out.
_NAMED: Final = 8


def heated(records: Sequence[Course]) -> Iterator[Finding]:
    """Yield GPUs with thermal violations."""
    for one in records:
        if not one.hot_rows:
            continue
        temp = one.state.numbers.get("gpu_temp_c")
        at = f", die at {number(temp)} °C in the last row" if temp is not None else ""
        yield finding(
            "nvidia_smi_dmon",
            "thermal_violation",
            Severity.HIGH,
            f"{one.state.label}: thermal violation (tviol) in {one.hot_rows} of {one.rows} "
            f"row(s){at}. The driver or the hardware lowers the clocks because of heat.",
            "Check fans, airflow, coolant and inlet; nvidia-smi -q -d TEMPERATURE,PERFORMANCE "
            "tells which limit is reached.",
            line=one.first_hot,
            cause="thermal_slowdown_sw",
            data={"thermal_violation_rows": one.hot_rows, "rows": one.rows},
            entity=one.state.entity,
            sources=("nvidia-smi manual page, dmon",),
        )


def errors_grown(records: Sequence[Course]) -> Iterator[Finding]:
    """Yield uncorrectable errors counted while the monitor ran; the column has all of the past."""
    for one in records:
        now, before = one.state.numbers.get(UNCORRECTED), one.first_errors
        if now is None or before is None or now <= before:
            continue
        concern = CONCERNS["ecc_uncorrected"]
        yield finding(
            "nvidia_smi_dmon",
            concern.id,
            concern.severity,
            f"{one.state.label}: {number(now - before)} uncorrectable ECC error(s) while the "
            f"monitor ran ({number(now)} in all). The work that used that memory died or computed "
            "with lost data.",
            concern.action,
            line=one.state.line,
            cause=concern.cause,
            data={"ecc_uncorrectable_new": int(now - before)},
            entity=one.state.entity,
            sources=("nvidia-smi manual page, dmon",),
        )


def behind(records: Sequence[Course]) -> Iterator[Finding]:
    """Yield GPUs under load whose clock is far below that of their siblings under load."""
    clocks = {}
    for one in records:
        busy = [
            m.numbers["sm_clock_mhz"]
            for m in one.moments
            if m.numbers.get("gpu_util_percent", 0) >= _WORKING and "sm_clock_mhz" in m.numbers
        ]
        if busy:
            clocks[id(one)] = median(busy)
    if len(clocks) < 2:
        return
    best = max(clocks.values())
    fastest = next(one for one in records if clocks.get(id(one)) == best)
    for one in records:
        clock = clocks.get(id(one))
        if clock is None or one.hot_rows or clock >= _BEHIND * best:
            continue
        heat = _heat(one, fastest)
        numbers = one.state.numbers
        index = one.state.index if one.state.index is not None else "INDEX"
        yield finding(
            "nvidia_smi_dmon",
            "clock_behind",
            Severity.HIGH if heat else Severity.MEDIUM,
            f"{one.state.label} runs at {number(clock)} MHz under load while a sibling under load "
            f"reaches {number(best)} MHz."
            + (f" It is hot: {heat}. Most likely heat cuts its clocks." if heat else "")
            + " In synchronous training the others wait for it.",
            f"Read why: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,CLOCK,POWER -i {index} (clock "
            "event reasons, power limit, a clock lock)"
            + ("; check fans, airflow, coolant and inlet." if heat else "."),
            line=one.state.line,
            cause="thermal_slowdown_sw" if heat else None,
            data={"sm_clock_mhz": clock, "sibling_sm_clock_mhz": best}
            | (
                {name: numbers.get(name) for name in ("gpu_temp_c", "memory_temp_c")}
                if heat
                else {}
            ),
            entity=one.state.entity,
        )


def _heat(one: Course, fastest: Course) -> str:
    """What is hot about a slow GPU, beside the fastest one; empty if nothing is."""
    mine, theirs = one.state.numbers, fastest.state.numbers
    parts = []
    for name, what, hot in (
        ("gpu_temp_c", "die", _HOT_C),
        ("memory_temp_c", "memory", _HOT_MEMORY_C),
    ):
        now, other = mine.get(name), theirs.get(name)
        if now is None or now < hot or (other is not None and now < other + _HOTTER_K):
            continue
        beside = f" (the sibling's {number(other)} °C)" if other is not None else ""
        parts.append(f"{what} {number(now)} °C{beside}")
    drawn, usual = mine.get("power_w"), theirs.get("power_w")
    if parts and drawn is not None and usual is not None and drawn < usual:
        parts.append(f"it draws {number(drawn)} W, the sibling {number(usual)} W")
    return ", ".join(parts)


def breaks(records: Sequence[Course]) -> Iterator[Finding]:
    """Yield which GPUs had work in a part of the rows only."""
    some: list[tuple[Course, int, int, str]] = []
    for one in records:
        known = [m for m in one.moments if "gpu_util_percent" in m.numbers]
        work = sum(m.numbers["gpu_util_percent"] > 0 for m in known)
        if 0 < work < len(known):
            last = "busy" if known[-1].numbers["gpu_util_percent"] > 0 else "idle"
            some.append((one, work, len(known), last))
    if not some:
        return
    first, work, rows, _ = some[0]
    said = [
        f"{one.state.label} in {w} of {n} rows, in the last one {last}"
        for one, w, n, last in some[:_NAMED]
    ]
    more = f"; and {len(some) - _NAMED} more GPUs" if len(some) > _NAMED else ""
    yield finding(
        "nvidia_smi_dmon",
        "work_in_some_rows",
        Severity.INFO,
        f"Work runs in a part of the rows only: {'; '.join(said)}{more}.",
        "A GPU that stops now and then waits for data, for a peer or for its host; one that "
        "stays idle has ended its work. Watch it longer: nvidia-smi dmon -d 1.",
        line=first.state.line,
        data={"busy_rows": work, "rows": rows} if len(some) == 1 else {"gpus": len(some)},
        entity=first.state.entity if len(some) == 1 else node(first.state.host),
    )
