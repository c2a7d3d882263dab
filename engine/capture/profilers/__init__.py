"""The profilers that can be used, by name."""

from __future__ import annotations

from engine.capture.profilers.base import Profiler
from engine.capture.profilers.nsys import Nsys
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

PROFILERS: dict[str, Profiler] = {"nsys": Nsys()}

__all__ = ["PROFILERS", "Profiler", "profiler_named"]


def profiler_named(name: str) -> Profiler:
    """Return a profiler.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in PROFILERS:
        known = ", ".join(PROFILERS)
        hint = did_you_mean(name, PROFILERS, otherwise=f"use {known}")
        raise UsageError(f"no profiler {name[:60]!r}", hint=hint, code="unknown_profiler")
    return PROFILERS[name]
