"""The readings of one signal of one GPU by exporter, and whether they contradict each other.

Two exporters sample at different moments, so what differs may still be the same: levels are
compared by their middle over some minutes, counters by bounds that hold whenever each was scraped,
reasons of a mask by whether one shows for long what the other never does. An exporter that was
started again under another address goes on where the one before ended: both are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.catalogue.types import Signal
from engine.samples import Floats, RawSeries
from engine.signals.columns import no_reading
from engine.signals.pieces import Piece
from engine.units import number, quantity

# Readings of the last five minutes are compared; an exporter without any has stopped.
_RECENT_S = 300.0
# So long the old and the new address of an exporter may both be scraped: a minute and some.
_OVERLAP_S = 75.0
# After so many of its usual intervals without a scrape an exporter has ended.
_ENDED = 2.5
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
# Of these signals less is worse.
_LESS_IS_WORSE = frozenset({"pcie_link_gen", "pcie_link_width", "amd_pcie_speed", "amd_health"})
# Of these states one is better than those below it.
_GOOD = {"fabric_manager_status": 3.0}
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

    def goes_on_as(self, other: Sourced, overlap: float, *, jobs: bool) -> bool:
        """Return whether another source is this one after a restart.

        Of two with one reading each nobody can tell; and one whose next scrape is still to come
        has not ended.
        """
        if self.exporter != other.exporter or (jobs and self.job != other.job):
            return False
        if self.newest < other.oldest:
            return max(self.ts.size, other.ts.size) > 1
        if self.newest - other.oldest > overlap or self.ts.size < 2 or self.oldest >= other.oldest:
            return False
        return other.newest - self.newest > _ENDED * float(np.median(np.diff(self.ts)))

    @staticmethod
    def of(pieces: Iterable[Piece], signal: Signal, at: float) -> list[Sourced]:
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
            for ts, values in [_samples(own, signal, at)]
            if ts.size
        ]
        # First those of one scrape job; then those of all, which follow without an overlap. Of a
        # flag or a state the worse counts, so that another job does not end it.
        out = _chained(out, at, _OVERLAP_S, jobs=True)
        if measured(signal) or signal.kind in {"counter", "code"}:
            out = _chained(out, at, 0.0, jobs=False)
        return sorted(out, key=lambda s: s.key)


def _chained(sources: Iterable[Sourced], at: float, overlap: float, *, jobs: bool) -> list[Sourced]:
    """Join the sources of one kind of exporter that follow each other.

    Args:
        sources: of one signal and GPU.
        at: the moment judged (Unix s).
        overlap: for how long two that follow each other may both be seen (s).
        jobs: whether both must be of one scrape job.
    """
    out: list[Sourced] = []
    for source in sorted(sources, key=lambda s: (s.oldest, s.newest, s.key)):
        before = [s for s in out if s.goes_on_as(source, overlap, jobs=jobs)]
        if not before:
            out.append(source)
            continue
        last = max(before, key=lambda s: (s.newest, s.key))
        out[out.index(last)] = _joined(last, source, at)
    return out


def _joined(first: Sourced, second: Sourced, at: float) -> Sourced:
    """Return two sources as one: the second from the end of the first on."""
    later = second.ts > first.newest
    ts = np.concatenate([first.ts, second.ts[later]])
    values = np.concatenate([first.values, second.values[later]])
    new = [_after(piece, first.newest) for piece in second.pieces]
    pieces = [piece for piece in new if piece.series.ts.size] + first.pieces
    return replace(second, pieces=pieces, ts=ts, values=values, recent=values[ts >= at - _RECENT_S])


def _after(piece: Piece, moment: float) -> Piece:
    """Return what a series has after a moment (Unix s)."""
    old = piece.series
    kept = old.ts > moment
    if not old.timed or kept.all():
        return piece
    return replace(piece, series=RawSeries(old.name, old.labels, old.ts[kept], old.values[kept]))


def _samples(pieces: Sequence[Piece], signal: Signal, at: float) -> tuple[Floats, Floats]:
    """Return times and values of the readings of some series up to ``at``, in order.

    Of several at one moment the largest counts, as in a frame.
    """
    times = [p.series.ts if p.series.timed else np.full(p.series.ts.size, at) for p in pieces]
    ts = np.concatenate(times)
    raw = np.concatenate([p.series.values for p in pieces])
    values = raw * np.repeat([p.scale for p in pieces], [t.size for t in times])
    good = (ts <= at) & ~no_reading([signal], np.array([ts.size]), raw, values)
    ts, values = ts[good], values[good]
    order = np.lexsort((values, ts))
    ts, values = ts[order], values[order]
    last = np.append(np.diff(ts) > 0, True)[: ts.size]
    return ts[last], values[last]


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


def counted(signal: Signal) -> bool:
    """Return whether a signal counts what is bad: errors, or the time under a limit."""
    return signal.kind == "counter" and signal.unit in {"count", "ns"}


def rank(source: Sourced, signal: Signal) -> tuple[float, ...]:
    """Return what is larger for the worse of two sources: by the worst of late, then by now."""
    if signal.kind == "counter":
        return _rise(source.values), float(source.values[-1])
    if not source.recent.size:
        return (-np.inf,)
    bad = -source.recent if signal.id in _LESS_IS_WORSE else source.recent
    if signal.id in _GOOD:
        bad = np.where(bad == _GOOD[signal.id], -1.0, bad)
    return float(bad.max()), float(bad[-1]), float(bad.mean())


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


def steps(values: Floats) -> Floats:
    """Return the steps by which a counter rose, counted on from 0 where it was reset."""
    found = np.diff(values)
    return np.where(found < 0, values[1:], found)


def _rise(values: Floats) -> float:
    return float(steps(values).sum())
