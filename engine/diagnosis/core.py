"""The core readings of a scope: without a fresh one of each nobody is called healthy."""

from __future__ import annotations

from collections.abc import Sequence

from engine.catalogue.types import Catalogue
from engine.samples import LOOKBACK_S, Frame

# The activity of a GPU can be read from any of these; the other core readings have no stand-in.
ACTIVITY = ("gpu_util", "gr_engine_active", "sm_active")
CORE = ("sm_clock", "gpu_temp", "power_usage")
GPU_CORE = (ACTIVITY, *((name,) for name in CORE))


def core_of(catalogue: Catalogue, scope: str) -> tuple[tuple[str, ...], ...]:
    """Return the core readings of a scope: of each group one must be there, or no health."""
    if scope == "gpu":
        return GPU_CORE
    signals = [s for _, s in sorted(catalogue.signals.items()) if s.scope == scope]
    core = tuple((s.id,) for s in signals if s.core)
    return core or (tuple(s.id for s in signals),)


def missing_core(frame: Frame, i: int, core: Sequence[Sequence[str]] = GPU_CORE) -> tuple[str, ...]:
    """Return the core readings that are missing or older than five minutes."""
    return tuple(group[0] for group in core if group and not any(fresh(frame, s, i) for s in group))


def fresh(frame: Frame, signal: str, i: int) -> bool:
    """Return whether a signal has a reading within five minutes of the moment judged."""
    newest = frame.newest(signal, i)
    return newest is not None and (not frame.timed or frame.at - newest <= LOOKBACK_S)
