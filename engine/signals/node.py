"""Node readings: series that belong to a host, not to a GPU.

``up`` needs a second look, because every scraped job has it: it speaks of the GPU exporter only
if its instance also serves GPU series, or if job or port say so (9400 is dcgm-exporter's, 9835
nvidia_gpu_exporter's, 9100 node_exporter's default).
"""

from __future__ import annotations

import re

from engine.catalogue.types import Catalogue, Signal
from engine.samples import RawSeries

_GPU_JOB = re.compile(r"dcgm|gpu|nvidia|amd", re.IGNORECASE)
_NODE_JOB = re.compile(r"\bnode\b|node[-_]exporter", re.IGNORECASE)
_GPU_PORTS = frozenset({"9400", "9835"})
_NODE_PORTS = frozenset({"9100"})
_Signals = list[tuple[Signal, float]]


def up_signal(job: str, instance: str, *, gpu_exporter: bool) -> str | None:
    """Return which signal an ``up`` series is: ``exporter_up``, ``node_up``, or neither."""
    port = instance.rpartition(":")[2]
    if gpu_exporter or _GPU_JOB.search(job) or port in _GPU_PORTS:
        return "exporter_up"
    if _NODE_JOB.search(job) or port in _NODE_PORTS:
        return "node_up"
    return None


class NodeSignals:
    """What signals a node series is, found once for all series of the same name and state."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._spellings = catalogue.spellings
        # By name: the labels that tell signals apart, and what was found for their values.
        self._known: dict[str, tuple[tuple[str, ...], dict[tuple[str | None, ...], _Signals]]] = {}

    def of(self, series: RawSeries, *, gpu_exporter: bool) -> _Signals:
        """Return (signal, factor to its unit) for all that a series is, each signal once."""
        name, labels = series.name, series.labels
        if name == "up":
            job, instance = labels.get("job", ""), labels.get("instance", "")
            meant = up_signal(job, instance, gpu_exporter=gpu_exporter)
            return [pair for pair in self._match(series) if pair[0].id == meant]
        known = self._known.get(name)
        if known is None:
            pairs = self._spellings.get(name, ())
            telling = tuple(sorted({key for _, found in pairs for key in found.match}))
            known = self._known[name] = (telling, {})
        telling, found = known
        key = tuple([labels.get(label) for label in telling])
        signals = found.get(key)
        if signals is None:
            signals = found[key] = self._match(series)
        return signals

    def _match(self, series: RawSeries) -> _Signals:
        found: dict[str, tuple[Signal, float]] = {}
        for signal, spelling in self._spellings.get(series.name, ()):
            if signal.scope == "node" and spelling.match.items() <= series.labels.items():
                found.setdefault(signal.id, (signal, spelling.scale))
        return list(found.values())
