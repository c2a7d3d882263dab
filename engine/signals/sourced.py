"""The readings of one signal of one GPU by exporter, and whether they contradict each other.

Two exporters sample at different moments, so what differs may still be the same: levels are
compared by their middle over some minutes, counters by bounds that hold whenever each was scraped,
reasons of a mask by whether one shows for long what the other never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.catalogue.types import Signal
from engine.samples import Floats
from engine.signals.clean import blank
from engine.signals.pieces import Piece
from engine.units import number, quantity

# Readings of the last five minutes are compared; an exporter without any has stopped.
_RECENT_S = 300.0
# What differs by less is the same reading.
_SAME = 0.2
_LEAST = {
    "ratio": 0.1,
    "percent": 15.0,
    "W": 25.0,
    "celsius": 6.0,
    "MHz": 150.0,
    "MiB": 1024.0,
    "B/s": 1e9,
}
# A reason of a mask that comes and goes may fall between the scrapes of one exporter, not one that
# is there as often as this.
_OFTEN = 0.25


@dataclass(slots=True, eq=False)
class Sourced:
    """What one exporter says of a signal.

    Attributes:
        exporter: its kind, ``dcgm-exporter``.
        job: the scrape job, empty if the labels tell none.
        instance: its address, likewise.
        pieces: its series.
        ts: times of all its samples (Unix s), ascending; ``at`` for samples without times.
        values: the samples in the signal's unit, no blanks.
        recent: those of the last five minutes.
    """

    exporter: str
    job: str
    instance: str
    pieces: list[Piece]
    ts: Floats
    values: Floats
    recent: Floats

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return (self.exporter, self.job, self.instance)

    @property
    def oldest(self) -> float:
        """When it began (Unix s)."""
        return self.ts.item(0)

    @property
    def newest(self) -> float:
        """When it was last seen (Unix s)."""
        return self.ts.item(-1)

    @staticmethod
    def of(pieces: Iterable[Piece], at: float) -> list[Sourced]:
        """Divide the series of one signal and GPU by exporter, in order of `key`.

        Exporters that follow each other, as after a restart under another address, are one; none
        is left out that has a reading up to ``at`` (Unix s).
        """
        found: dict[tuple[str, str, str], list[Piece]] = {}
        for piece in pieces:
            where = piece.tag.place
            key = (piece.spelling.exporter, where.scraper or "", where.instance or "")
            found.setdefault(key, []).append(piece)
        if len(found) < 2:
            return []
        out = [
            Sourced(*key, own, ts, values, values[ts >= at - _RECENT_S])
            for key, own in sorted(found.items())
            for ts, values in [_samples(own, at)]
            if ts.size
        ]
        out.sort(key=lambda s: s.oldest)
        follow = all(
            a.newest < b.oldest and a.exporter == b.exporter and max(a.ts.size, b.ts.size) > 1
            for a, b in pairwise(out)
        )
        return [] if follow else sorted(out, key=lambda s: s.key)


def _samples(pieces: Sequence[Piece], at: float) -> tuple[Floats, Floats]:
    """Return times and values of some series up to ``at``, in order."""
    times = [p.series.ts if p.series.timed else np.full(p.series.ts.size, at) for p in pieces]
    ts = np.concatenate(times)
    raw = np.concatenate([p.series.values for p in pieces])
    values = raw * np.repeat([p.scale for p in pieces], [t.size for t in times])
    good = (ts <= at) & ~blank(raw)
    order = np.lexsort((values[good], ts[good]))
    return ts[good][order], values[good][order]


def differ(sources: Sequence[Sourced], signal: Signal) -> bool:
    """Return whether sources with readings of the last five minutes contradict each other.

    Args:
        sources: at least two.
        signal: what they tell of.
    """
    told = [s for s in sources if s.recent.size]
    if len(told) < 2:
        return False
    if signal.kind == "counter":
        return _counts_differ(told, levels=signal.unit == "count")
    if signal.kind == "mask":
        return _reasons_differ(told)
    if not measured(signal):  # a flag, a code, a state: they never had the same
        values = [set(s.recent.tolist()) for s in told]
        return any(a.isdisjoint(b) for a in values for b in values)
    middles = [float(np.median(s.recent)) for s in told]
    least = max(_LEAST[signal.unit], _SAME * max(map(abs, middles)))
    return max(middles) - min(middles) > least


def measured(signal: Signal) -> bool:
    """Return whether a signal is a quantity that is measured, neither a count nor a state."""
    return signal.kind in {"gauge", "static"} and signal.unit in _LEAST


def rank(source: Sourced, signal: Signal) -> float:
    """Return what is larger for the worse of two sources, of signals where more is worse."""
    if signal.kind == "counter":
        return _rise(source.values)
    return float(source.recent.max(initial=0.0))


def shown(sources: Sequence[Sourced], signal: Signal, bits: Mapping[str, int]) -> list[str]:
    """Return what each source says, with its kind and address, as warnings write it."""
    addresses = {s.instance for s in sources}
    out = []
    for s in sources:
        if not s.recent.size:
            continue
        where = s.instance or "no instance"
        if len(addresses) < len(sources) and s.job:
            where = f"job {s.job}, {where}"
        out.append(f"{_says(s, signal, bits)} by {s.exporter} ({where})")
    return out


def _says(source: Sourced, signal: Signal, bits: Mapping[str, int]) -> str:
    last = source.values.item(-1)
    if signal.kind == "counter":
        return f"{quantity(last, signal.unit)} (+{number(_rise(source.values))})"
    if signal.kind == "mask":
        often = sum(bit for bit in _reasons(source) if _share(source, bit) >= _OFTEN)
        names = [name for name, bit in bits.items() if bit & often]
        return f"{quantity(often, 'bitmask')} ({', '.join(names) or 'none'})"
    return quantity(float(np.median(source.recent)) if measured(signal) else last, signal.unit)


def _reasons(source: Sourced) -> list[int]:
    """Return the bits of a mask that were set in the last five minutes."""
    every = int(np.bitwise_or.reduce(source.recent.astype(np.int64)))
    return [1 << k for k in range(every.bit_length()) if every >> k & 1]


def _share(source: Sourced, bit: int) -> float:
    return float(np.mean((source.recent.astype(np.int64) & bit) != 0))


def _reasons_differ(sources: Sequence[Sourced]) -> bool:
    """Return whether one shows for long a reason that another never shows."""
    seen = [set(_reasons(s)) for s in sources]
    return any(
        _share(one, bit) >= _OFTEN
        for one, mine in zip(sources, seen, strict=True)
        for theirs in seen
        for bit in mine - theirs
    )


def _counts_differ(sources: Sequence[Sourced], *, levels: bool) -> bool:
    """Return whether counters cannot be one, whenever between two scrapes it counted.

    Over the time that all cover, each rose by at least what is seen inside, and by at most what
    its next samples outside show.
    """
    start, end = max(s.oldest for s in sources), min(s.newest for s in sources)
    rises, levels_of = [], []
    for s in sources:
        first, last = np.searchsorted(s.ts, start), np.searchsorted(s.ts, end, side="right")
        around = s.values[max(first - 1, 0) : last + 1]
        rises.append((_rise(s.values[first:last]), _rise(around)))
        levels_of.append((around.min(), around.max()))
    return _apart(rises) or (levels and _apart(levels_of))


def _apart(bounds: Sequence[tuple[float, float]]) -> bool:
    """Return whether the bounds leave no number that all of them could mean."""
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    return low > high * (1.0 + _SAME) + 0.5


def _rise(values: Floats) -> float:
    """Return by how much a counter rose, counted on from 0 where it was reset."""
    steps = np.diff(values)
    return float(np.where(steps < 0, values[1:], steps).sum())
