"""Node readings: per host, and on every GPU of the host, so that a condition may read both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine.catalogue.types import Catalogue, Signal
from engine.model import Entity
from engine.samples import Column, Floats, Frame, Ints, RawSeries
from engine.signals import clean
from engine.signals.columns import TOGETHER, column
from engine.signals.entities import of_no_host
from engine.signals.hosts import host_of
from engine.signals.node import NodeSignals
from engine.signals.others import summed

NodeReadings = dict[str, dict[str, tuple[Floats, Floats]]]
_Scaled = tuple[RawSeries, float]


def node_readings(
    series: Sequence[RawSeries],
    catalogue: Catalogue,
    entities: Sequence[Entity],
    instances: Sequence[frozenset[str]],
    hosts: Mapping[str, str],
    frame: Frame,
) -> NodeReadings:
    """Read node signals per host, and give each GPU of the host the same readings.

    Args:
        series: of nodes, as a source gave them.
        catalogue: signals.
        entities: the GPUs of the frame.
        instances: the scrape addresses of each.
        hosts: scrape address to host (`engine.signals.hosts`).
        frame: gets a column for each signal.

    Returns:
        Host to signal to (times, values), the samples of several series one after the other.
    """
    gpu_hosts = {
        instance: entity.host
        for entity, known in zip(entities, instances, strict=True)
        for instance in known
        if entity.host
    }
    signals = NodeSignals(catalogue)
    found: dict[str, dict[str, list[_Scaled]]] = {}
    for one in series:
        labels = one.labels
        if "device" in labels and of_no_host(labels):
            continue
        instance = labels.get("instance", "")
        host = gpu_hosts.get(instance) or host_of(one.name, labels, hosts)
        if not host:
            continue
        for signal, scale in signals.of(one, gpu_exporter=instance in gpu_hosts):
            found.setdefault(signal.id, {}).setdefault(host, []).append((one, scale))
    nodes: NodeReadings = {}
    for name, by_host in sorted(found.items()):
        read: dict[str, tuple[Floats, Floats]] = {}
        for some in _portions(by_host):
            read |= _read(catalogue.signals[name], some, frame)
        for host, both in read.items():
            nodes.setdefault(host, {})[name] = both
        _give(frame, name, entities, read)
    return nodes


def _portions(by_host: Mapping[str, Sequence[_Scaled]]) -> Iterator[dict[str, Sequence[_Scaled]]]:
    """Yield hosts in order, as many together as have about `TOGETHER` samples."""
    some: dict[str, Sequence[_Scaled]] = {}
    samples = 0
    for host, listed in by_host.items():
        some[host] = listed
        samples += sum([one.values.size for one, _ in listed])
        if samples >= TOGETHER:
            yield some
            some, samples = {}, 0
    if some:
        yield some


def _read(
    signal: Signal, by_host: Mapping[str, Sequence[_Scaled]], frame: Frame
) -> dict[str, tuple[Floats, Floats]]:
    """Return the readings of one signal inside the window, of the hosts that have any."""
    listed = [one for some in by_host.values() for one in some]
    lengths = np.array([one.values.size for one, _ in listed], dtype=np.int64)
    scales = np.array([scale for _, scale in listed])
    values = np.concatenate([one.values for one, _ in listed]) * np.repeat(scales, lengths)
    times = np.concatenate(
        [
            one.ts if one.timed and frame.timed else np.full(one.values.size, frame.at)
            for one, _ in listed
        ]
    )
    keep = ~clean.no_reading(values, signal.low, signal.high, counter=signal.kind == "counter")
    keep &= (times >= frame.at - frame.window_s) & (times <= frame.at)
    of_host = np.repeat(np.arange(len(by_host)), [len(some) for some in by_host.values()])
    owners = np.repeat(of_host, lengths)
    if not keep.all():
        owners, times, values = owners[keep], times[keep], values[keep]
    ends = np.cumsum(np.bincount(owners, minlength=len(by_host))).tolist()
    out: dict[str, tuple[Floats, Floats]] = {}
    for host, start, end in zip(by_host, [0, *ends[:-1]], ends, strict=True):
        if end > start:
            both = (times[start:end], values[start:end])
            out[host] = summed(*both) if signal.combine == "sum" else both
    return out


def _give(
    frame: Frame, name: str, entities: Sequence[Entity], read: Mapping[str, tuple[Floats, Floats]]
) -> None:
    """Add a column to a frame in which each GPU has the readings of its host."""
    numbers = {host: k for k, host in enumerate(read)}
    rows = np.array([numbers.get(e.host or "", -1) for e in entities], dtype=np.int64)
    if not np.any(rows >= 0):
        return
    lengths = [times.size for times, _ in read.values()]
    per_host = column(
        np.concatenate([values for _, values in read.values()]),
        np.concatenate([times for times, _ in read.values()]),
        np.repeat(np.arange(len(read)), lengths),
        len(read),
        merge=frame.timed,
    )
    frame.columns[name] = _spread(per_host, rows)


def _spread(of: Column, rows: Ints) -> Column:
    """Return a column whose entity i has the samples of row ``rows[i]``; none where it is -1."""
    sizes = np.where(rows >= 0, np.diff(of.offsets)[rows], 0)
    offsets = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    where = np.repeat(of.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Column(of.ts[where], of.values[where], offsets)
