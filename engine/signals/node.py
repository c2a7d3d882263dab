"""Node readings: series that belong to a host, not to a GPU.

``up`` needs a second look, because every scraped job has it: it speaks of the GPU exporter only
if its instance also serves GPU series, or if job or port say so (9400 is dcgm-exporter's, 9835
nvidia_gpu_exporter's, 9100 node_exporter's default).
"""

from __future__ import annotations

import re

import numpy as np

from engine.catalogue.types import Catalogue, Signal
from engine.samples import Floats, RawSeries
from engine.signals import clean

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
) -> list[tuple[Signal, Floats, clean.Bools]]:
    """Return (signal, scaled values, which are readings) for all that a node series is."""
    pairs = [
        (signal, spelling)
        for signal, spelling in catalogue.spellings.get(series.name, ())
        if signal.scope == "node"
        and all(series.labels.get(k) == v for k, v in spelling.match.items())
    ]
    if series.name == "up":
        name = up_signal(
            series.labels.get("job", ""),
            series.labels.get("instance", ""),
            gpu_exporter=gpu_exporter,
        )
        pairs = [pair for pair in pairs if pair[0].id == name]
    found: dict[str, tuple[Signal, Floats, clean.Bools]] = {}
    for signal, spelling in pairs:
        values = series.values * spelling.scale
        bad = clean.no_reading(values, signal.low, signal.high, counter=signal.kind == "counter")
        found.setdefault(signal.id, (signal, values, np.logical_not(bad)))
    return list(found.values())
