"""What the time counters of the clock event reasons show where the reasons are missing."""

from __future__ import annotations

from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import finding
from engine.readers.smi.state import GpuState
from engine.units import number

_SPOKEN: Final = {
    "sw_power_cap": "software power cap",
    "sync_boost": "sync boost",
    "sw_thermal": "software thermal slowdown",
    "hw_thermal": "hardware thermal slowdown",
    "hw_power_brake": "hardware power brake",
}
# Reasons under which no healthy GPU ever spends longer than this (s).
_NEVER: Final = ("hw_thermal", "hw_power_brake")
_BRIEF_S: Final = 10.0


def counters_finding(gpu: GpuState, kind: str) -> Finding:
    """Say how long a GPU was held back since its driver was loaded; not when, and not if now."""
    spent = {name: us / 1e6 for name, us in gpu.counters_us.items() if us}
    parts = [f"{number(s)} s under {_SPOKEN.get(name, name)}" for name, s in spent.items()]
    bad = [name for name in _NEVER if spent.get(name, 0.0) > _BRIEF_S]
    if not parts:
        says = "no time under any clock event reason since the driver was loaded."
    else:
        says = f"{', '.join(parts)} in total since the driver was loaded."
        says += " The counters do not say when, nor whether it is so now."
    if bad:
        says += f" A healthy GPU spends none under {' or '.join(_SPOKEN[n] for n in bad)}."
    return finding(
        kind,
        "counters",
        Severity.LOW if bad else Severity.INFO,
        f"{gpu.label}: {says}",
        "Read the counters twice while it is slow: the ones that grow name the reason."
        if parts
        else "Nothing to do.",
        line=gpu.flags_line or gpu.line,
        data={"counters_us": dict(gpu.counters_us)},
        entity=gpu.entity,
        sources=("NVIDIA NVML API 13, nvmlDeviceGetViolationStatus",),
    )
