"""Profilers by the names that people give them; which of them can run is for the capture to say."""

from __future__ import annotations

from bot.router.spans import pattern

PROFILERS = {
    "nsys": "nsys",
    "nsight": "nsys",
    "nsight-systems": "nsys",
    "nsight-compute": "ncu",
    "ncu": "ncu",
    "pyspy": "py-spy",
    "py-spy": "py-spy",
    "rocprof": "rocprofv3",
    "rocprofv3": "rocprofv3",
    "kineto": "torch",
}
DEFAULT_PROFILER = "nsys"
DEFAULT_DURATION_S = 10.0

_SYSTEMS = pattern(r"\bnsight[ -]?systems?\b")
_COMPUTE = pattern(r"\bnsight[ -]?compute\b")


def abbreviated(text: str) -> str:
    """Return text with profilers of two words by their command: "nsight systems" is nsys."""
    return _COMPUTE.sub("ncu", _SYSTEMS.sub("nsys", text))
