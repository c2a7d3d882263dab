"""What a Kineto trace says about itself: beside its list of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.traces.collect import Collected
from engine.traces.columns import Clock
from engine.traces.eventfields import whole
from engine.traces.figures import About
from engine.traces.names import cut


def about(data: Collected, clock: Clock, header: Mapping[str, Any], *, cut_short: bool) -> About:
    """Return rank, devices and times of a trace.

    Args:
        data: what its events showed.
        clock: of the trace.
        header: the values beside the events.
        cut_short: whether the file ends before the events do.
    """
    spread = header.get("distributedInfo")
    spread = spread if isinstance(spread, dict) else {}
    devices = header.get("deviceProperties")
    names = {
        whole(d.get("id")): cut(d["name"])
        for d in (devices if isinstance(devices, list) else [])
        if isinstance(d, dict) and isinstance(d.get("name"), str)
    }
    kineto = "schemaVersion" in header or bool(names)
    window = data.window
    if window is None and data.first is not None and data.last is not None:
        window = (data.first, data.last)
    rank, world = whole(spread.get("rank")), whole(spread.get("world_size"))
    backend = spread.get("backend")
    return About(
        source="kineto" if kineto else "chrome",
        tool="PyTorch profiler (Kineto)" if kineto else "Chrome trace",
        device_names=names,
        captured_ms=None if window is None else round((window[1] - window[0]) / 1e6, 6),
        started_s=_started(header.get("baseTimeNanoseconds"), clock, window),
        rank=rank if rank >= 0 else None,
        world_size=world if world > 0 else None,
        backend=cut(backend) if isinstance(backend, str) and backend else None,
        cpu_traced=len(data.calls) > 0,
        cut=cut_short,
    )


def _started(base: Any, clock: Clock, window: tuple[int, int] | None) -> float | None:
    """Return when the window began, if the times are absolute or since a known moment."""
    if window is None:
        return None
    began = (max(0, whole(base)) + clock.absolute_ns(window[0])) / 1e9
    # Between 2015 and 2100: smaller numbers are times since the machine started.
    return round(began, 6) if 1.42e9 < began < 4.1e9 else None
