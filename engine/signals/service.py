"""Readings of services that no series holds as they are: names in a label, age, GPUs beneath."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model import Entity
from engine.samples import Column, Floats, Frame, RawSeries
from engine.signals.columns import column
from engine.signals.pieces import Piece

# What any process exports (prometheus_client, HTTP middleware): alone it makes no service.
_COMMON = ("process_", "http_")
# How the activity of a GPU is read, best first, with the factor to a ratio.
_ACTIVITY = (("gr_engine_active", 1.0), ("sm_active", 1.0), ("gpu_util", 0.01))


def of_any_process(name: str) -> bool:
    """Return whether a metric name is one that any process may export."""
    return name.startswith(_COMMON)


def listed(pieces: Sequence[Piece]) -> list[Piece]:
    """Return one piece for each owner: how many names a label lists, at each moment.

    Such series stay exported with every set of names that ever was; their value is when it was
    written (`vllm:lora_requests_info`), so that of one moment the largest value counts.
    """
    per_owner: dict[int, list[Piece]] = {}
    for piece in pieces:
        per_owner.setdefault(piece.tag.owner, []).append(piece)
    return [_newest(group) for group in per_owner.values()]


def _newest(group: Sequence[Piece]) -> Piece:
    head = group[0]
    times = np.concatenate([p.series.ts for p in group])
    written = np.concatenate([p.series.values for p in group])
    counts = np.repeat([_names(p) for p in group], [p.series.ts.size for p in group])
    order = np.lexsort((counts, written, times))
    times, counts = times[order], counts[order].astype(np.float64)
    last = np.append(np.diff(times) != 0, [True] * bool(times.size))
    series = head.series
    head.series = RawSeries(series.name, series.labels, times[last], counts[last], series.timed)
    return head


def _names(piece: Piece) -> int:
    listed_names = piece.series.labels.get(piece.spelling.counts or "", "")
    return sum(bool(name.strip()) for name in listed_names.split(","))


def derive(services: Frame, gpus: Frame) -> None:
    """Add to the frame of services the age of each (s) and how active the GPUs beneath it are."""
    started = [services.samples("service_started", i) for i in range(len(services))]
    if services.timed:
        _add(services, "service_age", [(ts, ts - values) for ts, values in started])
    activity = [_activity(gpus, beneath(entity, gpus)) for entity in services.entities]
    _add(services, "service_gpu_active", activity)


def beneath(entity: Entity, gpus: Frame) -> list[int]:
    """Return the GPUs of a service: those of its pod, or else of its host."""
    if entity.pod:
        pod = (entity.namespace, entity.pod)
        found = [i for i, e in enumerate(gpus.entities) if e.pod and (e.namespace, e.pod) == pod]
        if found:
            return found
    place = (entity.cluster, entity.host)
    return [i for i, e in enumerate(gpus.entities) if e.host and (e.cluster, e.host) == place]


def _activity(gpus: Frame, chosen: Sequence[int]) -> tuple[Floats, Floats]:
    for signal, scale in _ACTIVITY:
        found = [gpus.samples(signal, i) for i in chosen]
        if any(ts.size for ts, _ in found):
            times = np.concatenate([ts for ts, _ in found])
            return times, np.concatenate([values for _, values in found]) * scale
    return np.empty(0), np.empty(0)


def _add(frame: Frame, signal: str, readings: Sequence[tuple[Floats, Floats]]) -> None:
    """Add a column of one signal; of several readings at one moment the largest counts."""
    times = np.concatenate([ts for ts, _ in readings]) if readings else np.empty(0)
    if not times.size:
        return
    values = np.concatenate([found for _, found in readings])
    owners = np.repeat(np.arange(len(readings)), [ts.size for ts, _ in readings])
    made: Column = column(values, times, owners, len(readings), merge=True)
    frame.columns[signal] = made
