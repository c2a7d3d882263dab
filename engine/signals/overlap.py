"""One GPU, told of twice: by two exporters that disagree, or from two places it was in.

Usually several series of one signal say the same (one for each pod). Where two scrape targets have
a GPU and their readings differ by more than sampling explains, the fresher one is used and both are
told. A board that moved to another slot or node in the window belongs to where it was seen last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from engine.catalogue.types import Signal
from engine.signals.labels import Place
from engine.signals.pieces import Piece
from engine.units import quantity

# Readings of the last five minutes are compared; an exporter without any has stopped.
_RECENT_S = 300.0
# Two exporters sample at different moments: what differs by less is the same reading.
_SAME = 0.2
_LEAST = {"ratio": 0.1, "percent": 15.0, "W": 25.0, "celsius": 6.0, "MHz": 150.0, "MiB": 1024.0}
_Source = tuple[str, str]


def settle(
    pieces: Mapping[str, list[Piece]],
    groups: Sequence[Sequence[Place]],
    signals: Mapping[str, Signal],
    at: float,
) -> tuple[dict[str, list[Piece]], list[str]]:
    """Return the pieces without those of an exporter that another one contradicts, and what to say.

    Args:
        pieces: series by signal; ``owner`` is an index into ``groups``.
        groups: what the labels of each GPU's series said.
        signals: all signals, by id.
        at: the moment judged (Unix s).
    """
    doubled = {
        i
        for i, group in enumerate(groups)
        if len(group) > 1 and len({p.instance for p in group}) > 1
    }
    if not doubled:
        return dict(pieces), []
    kept: dict[str, list[Piece]] = {}
    said: list[str] = []
    for name, some in pieces.items():
        signal = signals[name]
        least = _LEAST.get(signal.unit)
        if signal.kind != "gauge" or least is None:
            kept[name] = some
            continue
        mine: dict[int, dict[_Source, list[Piece]]] = {}
        for piece in some:
            if piece.tag.owner in doubled:
                source = (piece.spelling.exporter, piece.tag.place.instance or "")
                mine.setdefault(piece.tag.owner, {}).setdefault(source, []).append(piece)
        dropped: set[int] = set()
        for owner, sources in sorted(mine.items()):
            told = _contradiction(sources, least, at)
            if told:
                name_of = next((p.uuid for p in groups[owner] if p.uuid), f"GPU {owner}")
                says = ", ".join(
                    f"{quantity(value, signal.unit)} by {source[0]} ({source[1] or 'no instance'})"
                    for source, value, _ in told
                )
                said.append(f"two exporters disagree on {signal.title} of {name_of}: {says}; "
                            "the fresher one is used")  # fmt: skip
                dropped |= {id(p) for source, _, _ in told[1:] for p in sources[source]}
        kept[name] = [piece for piece in some if id(piece) not in dropped]
    return kept, said


def _contradiction(
    sources: Mapping[_Source, Sequence[Piece]], least: float, at: float
) -> list[tuple[_Source, float, float]]:
    """Return (source, typical value, newest time) freshest first if the sources disagree."""
    told = []
    for source, pieces in sorted(sources.items()):
        recent = list(_recent(pieces, at))
        if recent:
            value = median(v for _, v in recent)
            told.append((source, value, max(t for t, _ in recent)))
    values = [value for _, value, _ in told]
    if len(told) < 2 or max(values) - min(values) <= max(least, _SAME * max(map(abs, values))):
        return []
    return sorted(told, key=lambda one: (-one[2], one[0]))


def _recent(pieces: Sequence[Piece], at: float) -> Iterator[tuple[float, float]]:
    for piece in pieces:
        series = piece.series
        times = series.ts if series.timed else np.full(series.values.size, at)
        good = (times >= at - _RECENT_S) & (times <= at) & np.isfinite(series.values)
        good &= series.values < 1e15
        yield from zip(
            times[good].tolist(), (series.values[good] * piece.scale).tolist(), strict=True
        )


def moved(pieces: Mapping[str, list[Piece]], places: Sequence[list[Place]]) -> list[str]:
    """Put the place that a board was last seen in first, and say that it moved.

    Args:
        pieces: series by signal; ``owner`` is an index into ``places``.
        places: what the labels of each GPU's series said; put in order here.
    """
    several = {
        i for i, group in enumerate(places) if len({(p.host, p.gpu) for p in group if p.host}) > 1
    }
    if not several:
        return []
    newest: dict[tuple[int, str | None, int | None], float] = {}
    for some in pieces.values():
        for piece in some:
            if piece.tag.owner in several and piece.series.ts.size:
                key = (piece.tag.owner, piece.tag.place.host, piece.tag.place.gpu)
                newest[key] = max(newest.get(key, -np.inf), float(piece.series.ts[-1]))
    said = []
    for i in sorted(several):
        group = places[i]
        group.sort(key=lambda p, i=i: -newest.get((i, p.host, p.gpu), -np.inf))  # type: ignore[misc]
        seats = list(dict.fromkeys((p.host, p.gpu) for p in group if p.host and p.gpu is not None))
        last = [newest.get((i, *seat), -np.inf) for seat in seats]
        if len(seats) > 1 and last[0] - last[1] > _RECENT_S / 5 and group[0].uuid:
            (host, gpu), (old, index) = seats[0], seats[1]
            said.append(f"{group[0].uuid} moved from {old}:{index} to {host}:{gpu} in the window")
    return said
