"""Frames of what is no GPU: nodes, ports, file systems, pods, ranks, engines of a service.

Series become signals as they do for GPUs (`engine.signals.normalise`); only what identifies an
entity differs (`engine.signals.entities`). Series of one signal and one entity become one: the
largest of a moment, or their sum where the signal says so (CPU time over all CPUs).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.model import Entity
from engine.samples import Column, Floats, Frame, Ints, Matcher, RawSeries
from engine.signals.columns import fill
from engine.signals.entities import SCOPES, Found, identify, mounts
from engine.signals.labels import HOST_LABELS, locate, node_entity
from engine.signals.pieces import Piece, Tag
from engine.signals.service import listed
from engine.signals.service import of_any_process as common

_IDENTITY = ("instance", "device", "port", "mountpoint", "export", "target", "pod", "namespace")
_Nodes = Mapping[str, Mapping[str, tuple[Floats, Floats]]]


def other_frames(
    series: Iterable[RawSeries],
    catalogue: Catalogue,
    hosts: Mapping[str, str],
    *,
    at: float,
    timed: bool,
    window_s: float,
) -> dict[str, Frame]:
    """Return a frame for each scope that any series is of.

    Args:
        series: as a source gave them, those of GPUs left out.
        catalogue: signals.
        hosts: scrape address to host (`engine.signals.hosts`).
        at: the moment judged (Unix s), 0.0 without times.
        timed: whether the samples have times.
        window_s: how far back readings count (s).
    """
    sorted_out: dict[str, list[tuple[RawSeries, Signal, Spelling]]] = {}
    aliases: dict[tuple[str, str], str] = {}
    for one in series:
        for signal, spelling in catalogue.spellings.get(one.name, ()):
            if signal.scope in SCOPES and _fits(one, spelling):
                sorted_out.setdefault(signal.scope, []).append((one, signal, spelling))
                if signal.scope == "filesystem":
                    aliases = mounts(one.labels, hosts) | aliases
    return {
        scope: _frame(
            scope, found, catalogue, aliases, hosts, at=at, timed=timed, window_s=window_s
        )
        for scope, found in sorted(sorted_out.items())
    }


def node_frame(nodes: _Nodes, *, at: float, timed: bool, window_s: float) -> Frame | None:
    """Return the frame of the hosts that have readings of their own, None if there are none.

    Args:
        nodes: host to signal to (times, values).
        at: the moment judged (Unix s), 0.0 without times.
        timed: whether the samples have times.
        window_s: how far back readings count (s).
    """
    hosts = sorted(nodes)
    if not hosts:
        return None
    frame = Frame(
        entities=[node_entity(host) for host in hosts],
        at=at,
        timed=timed,
        columns={},
        attrs={},
        host=np.zeros(len(hosts), dtype=np.int64),
        window_s=window_s,
        scope="node",
    )
    empty: tuple[Floats, Floats] = (np.empty(0), np.empty(0))
    for signal in sorted({name for of_host in nodes.values() for name in of_host}):
        parts = [nodes[host].get(signal, empty) for host in hosts]
        orders = [np.lexsort((values, ts)) for ts, values in parts]
        lengths = [ts.size for ts, _ in parts]
        frame.columns[signal] = Column(
            np.concatenate([ts[o] for (ts, _), o in zip(parts, orders, strict=True)]),
            np.concatenate([values[o] for (_, values), o in zip(parts, orders, strict=True)]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )
    return frame


def summed(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Add up the samples of one moment, in the order given; times ascend in what is returned."""
    moments, where = _moments(times)
    totals: Floats = np.bincount(where, weights=values, minlength=moments.size).astype(np.float64)
    return moments, totals


def _moments(times: Floats) -> tuple[Floats, Ints]:
    """Return the different times in order, and which of them each sample is of.

    One scrape brings all series of a host: mostly they have the same times, one series after the
    other, and nothing need be sorted.
    """
    breaks = np.flatnonzero(times[1:] <= times[:-1])
    first = int(breaks[0]) + 1 if breaks.size else times.size
    if first and times.size % first == 0:
        rows = times.reshape(-1, first)
        if (rows == rows[0]).all():
            return rows[0].copy(), np.tile(np.arange(first), len(rows))
    return np.unique(times, return_inverse=True)


def _fits(series: RawSeries, spelling: Spelling) -> bool:
    return all(series.labels.get(name) == value for name, value in spelling.match.items())


def _frame(
    scope: str,
    found: Sequence[tuple[RawSeries, Signal, Spelling]],
    catalogue: Catalogue,
    aliases: Mapping[tuple[str, str], str],
    hosts: Mapping[str, str],
    *,
    at: float,
    timed: bool,
    window_s: float,
) -> Frame:
    about = [identify(scope, one.labels, aliases, hosts) for one, _, _ in found]
    own = {f.key for (one, _, _), f in zip(found, about, strict=True) if f and not common(one.name)}
    entities, groups, owners = _entities([f for f in about if f is not None], own)
    frame = Frame(
        entities=entities,
        at=at,
        timed=timed,
        columns={},
        attrs={},
        host=groups,
        window_s=window_s,
        scope=scope,
    )
    pieces: dict[str, list[Piece]] = {}
    for (one, signal, spelling), of in zip(found, about, strict=True):
        for owner in owners.get(of.key, ()) if of else ():
            place = locate(one.labels)
            where = place.instance or place.host or "the exporter"
            piece = Piece(Tag(owner, place, where, _identity), one, spelling, spelling.scale)
            pieces.setdefault(signal.id, []).append(piece)
    for name, group in pieces.items():
        if catalogue.signals[name].combine == "sum":
            pieces[name] = _added(group)
        elif group[0].spelling.counts:
            pieces[name] = listed(group)
    fill(frame, catalogue.signals, pieces)
    return frame


def _entities(
    found: Sequence[Found], own: Collection[tuple[str, ...]]
) -> tuple[list[Entity], Ints, dict[tuple[str, ...], list[int]]]:
    """Return the entities in order, the number of each one's group, and who owns each key.

    What is said of a whole instance (its front end, which names neither model nor engine) belongs
    to all engines of the instance; only where there is none is the instance an entity itself, if
    more is said of it than of any process: ``own`` are the keys of which there is.
    """
    whole = {f.key: f for f in found}
    engines = {
        key: f
        for key, f in whole.items()
        if key in own and not (f.partial and _finer(f, whole, own))
    }
    keys = sorted(engines, key=lambda key: (key, engines[key].entity.key))
    numbers: dict[tuple[str, ...], int] = {}
    groups = [numbers.setdefault(engines[key].group, len(numbers)) for key in keys]
    owners: dict[tuple[str, ...], list[int]] = {key: [i] for i, key in enumerate(keys)}
    for key, f in whole.items():
        if key not in owners:
            owners[key] = [i for i, other in enumerate(keys) if _within(other, f.key)]
    entities = [engines[key].entity for key in keys]
    return entities, np.array(groups, dtype=np.int64), owners


def _finer(found: Found, all_: Iterable[tuple[str, ...]], own: Collection[tuple[str, ...]]) -> bool:
    return any(key in own and _within(key, found.key) for key in all_)


def _within(engine: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the key of an engine is the other one with more of it filled in."""
    same = all(a == b or not b for a, b in zip(engine, whole, strict=True))
    return same and engine != whole and engine[2] == whole[2]


def _identity(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    names = (*_IDENTITY, *HOST_LABELS, "model_name", "engine", "rank")
    return tuple(Matcher(name, "=", labels[name]) for name in names if labels.get(name))


def _added(pieces: Sequence[Piece]) -> list[Piece]:
    """Return one piece for each owner, with the sum of the others in its own unit."""
    per_owner: dict[int, list[Piece]] = {}
    for piece in pieces:
        per_owner.setdefault(piece.tag.owner, []).append(piece)
    out = []
    for group in per_owner.values():
        head = group[0]
        if len(group) > 1:
            good = [np.isfinite(p.series.values) for p in group]
            times = np.concatenate([p.series.ts[g] for p, g in zip(group, good, strict=True)])
            values = [p.series.values[g] * p.scale for p, g in zip(group, good, strict=True)]
            moments, sums = summed(times, np.concatenate(values))
            head.series = RawSeries(
                head.series.name, head.series.labels, moments, sums, head.series.timed
            )
            head.scale = 1.0
        out.append(head)
    return out
