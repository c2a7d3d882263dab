"""Two profiles of the same kernels beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.model import Finding, Severity
from engine.traces.ncu.profile import Kernel, Profile
from engine.traces.ncu.verdicts import shown

_SHOWN: Final = 5
# Smaller changes of a single profile's duration are noise (ncu itself fixes the clocks).
_CHANGE: Final = 0.05
_CLOCK: Final = 0.03
_POINTS: Final = 5.0
_COMPARED: Final = (
    "tensor_pipe",
    "sm_throughput",
    "memory_throughput",
    "dram_throughput",
    "l2_hit",
    "occupancy",
    "registers",
    "waves",
)


def compared(
    before: Profile, after: Profile, units: Mapping[str, str], kind: str
) -> tuple[list[Finding], str]:
    """Return how the kernels of both profiles changed, largest change first, and a summary."""
    found = []
    same = 0
    for name, new in after.kernels.items():
        old = before.kernels.get(name)
        change = None if old is None else _change(old, new)
        if old is None or change is None:
            continue
        if abs(change[1] / change[0] - 1) < _CHANGE:
            same += 1
        else:
            found.append((abs(change[1] - change[0]) * new.count, name, old, new))
    found.sort(key=lambda one: (-one[0], one[1]))
    alone = len(after.kernels) - same - len(found)
    summary = (
        f"Compared with the first profile: {len(found)} kernel(s) changed by {_CHANGE:.0%} or "
        f"more, {same} did not, {alone} could not be compared."
    )
    return [_finding(old, new, units, kind) for _, _, old, new in found[:_SHOWN]], summary


def _change(old: Kernel, new: Kernel) -> tuple[float, float] | None:
    first, second = old.readings().get("duration"), new.readings().get("duration")
    return None if not first or not second else (first, second)


def _finding(old: Kernel, new: Kernel, units: Mapping[str, str], kind: str) -> Finding:
    one, two = old.readings(), new.readings()
    before, after = one["duration"], two["duration"]
    ratio = after / before
    data: dict[str, Any] = {
        "kernel": new.name,
        "duration_before_us": round(before, 3),
        "duration_after_us": round(after, 3),
        "duration_ratio": round(ratio, 4),
    }
    word = "slower" if ratio > 1 else "faster"
    says = (
        f"{new.name}: {shown('duration', before, units)} before, "
        f"{shown('duration', after, units)} after ({ratio:.2f} times): {word}."
    )
    told = []
    for key in _COMPARED:
        if key in one and key in two and abs(two[key] - one[key]) >= _limit(key, one[key]):
            told.append(
                f"{key.replace('_', ' ')} {shown(key, one[key], units)} to "
                f"{shown(key, two[key], units)}"
            )
            data[f"{key}_before"], data[f"{key}_after"] = round(one[key], 3), round(two[key], 3)
    if told:
        says += f" Changed with it: {', '.join(told)}."
    if old.shapes and new.shapes and old.shapes != new.shapes:
        says += " Grid or block differ: these are not the same launches."
    clocks = one.get("sm_clock"), two.get("sm_clock")
    action = (
        "Nothing to do for it."
        if word != "slower"
        else ("See what changed in it: compiler or library version, shapes, data type, tile size.")
    )
    if clocks[0] and clocks[1] and abs(clocks[1] / clocks[0] - 1) > _CLOCK:
        says += (
            f" The SM clock was {shown('sm_clock', clocks[0], units)} and then "
            f"{shown('sm_clock', clocks[1], units)}: the durations are not comparable as they are."
        )
        action = "Profile both with `--clock-control base`, then compare again."
    return Finding(
        kind=kind,
        id="compared",
        severity=Severity.LOW if word == "slower" else Severity.INFO,
        says=says,
        action=action,
        entity=None,
        line=new.line or None,
        cause=None,
        data=data,
        sources=("NVIDIA Nsight Compute documentation (2026), baselines and clock control",),
    )


def _limit(key: str, value: float) -> float:
    return max(1.0, 0.1 * abs(value)) if key in {"registers", "waves"} else _POINTS
