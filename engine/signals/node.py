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


def up_signal(job: str, instance: str, *, gpu_exporter: bool) -> str | None:
    """Return which signal an ``up`` series is: ``exporter_up``, ``node_up``, or neither."""
    port = instance.rpartition(":")[2]
    if gpu_exporter or _GPU_JOB.search(job) or port in _GPU_PORTS:
        return "exporter_up"
    if _NODE_JOB.search(job) or port in _NODE_PORTS:
        return "node_up"
    return None


def node_signals(
    series: RawSeries, catalogue: Catalogue, *, gpu_exporter: bool
) -> list[tuple[Signal, float]]:
    """Return (signal, factor to its unit) for all that a node series is, each signal once."""
    name = None
    if series.name == "up":
        labels = series.labels
        job, instance = labels.get("job", ""), labels.get("instance", "")
        name = up_signal(job, instance, gpu_exporter=gpu_exporter)
    found: dict[str, tuple[Signal, float]] = {}
    for signal, spelling in catalogue.spellings.get(series.name, ()):
        if signal.scope != "node" or (series.name == "up" and signal.id != name):
            continue
        if spelling.match.items() <= series.labels.items():
            found.setdefault(signal.id, (signal, spelling.scale))
    return list(found.values())
