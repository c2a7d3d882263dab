"""The samples of a span, read piece by piece, oldest first; what no later moment needs is dropped.

Samples are raw, as a question about any of the moments would get them: what a server resamples
(``query_range``) hides how old a reading is, and loses an event between two steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import SourceError
from engine.samples import Batch, Floats, RawSeries, Selection
from engine.sources.matching import clip, series_key
from engine.sources.port import Source

# A sample is 16 bytes here and some 25 as JSON: a piece is some 80 MB while it is read.
SAMPLES_A_PIECE = 2_000_000
# The first piece, before it is known how much comes, and the longest (s).
_FIRST_S = 600.0
_LONGEST_S = 6 * 3600.0
# Files are read from the start for every piece: few large ones.
_OF_FILES_S = 86400.0
_GROWTH = 4.0
# What these codes say becomes true if less is asked for at once.
_TOO_MUCH = frozenset({"source_limit", "source_timeout", "source_too_large"})
_FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """The samples of ``]start, end]``; ``batch`` is None if it could not be read, for ``error``."""

    start: float
    end: float
    batch: Batch | None
    error: SourceError | None = None


async def pieces(
    source: Source,
    selections: Callable[[float], Sequence[Selection]],
    start: float,
    end: float,
    *,
    least_s: float,
) -> AsyncIterator[Piece]:
    """Read a span in pieces; one that the source refuses as too large is halved.

    Args:
        source: where samples come from.
        selections: what to ask for, given the length of a piece (s).
        start: of the span (Unix s).
        end: of the span (Unix s).
        least_s: pieces are not halved below this (s).

    Raises:
        SourceError: the source does not answer at all. One that stops answering, three times in a
            row, leaves the rest unread.
        InputError: a file cannot be read.
    """
    size = _OF_FILES_S if source.rereads else _FIRST_S
    failures, read = 0, False
    at = start
    while at < end:
        until = min(at + size, end)
        # The sample at `at` itself came with the piece before, and is dropped by the tape.
        batch, error = await _ask(source, selections(until - at), until)
        if error is not None and error.code in _TOO_MUCH and until - at > least_s:
            size = max((until - at) / 2, least_s)
            continue
        if batch is None:
            assert error is not None
            failures += 1
            if not read and (failures >= _FAILURES_IN_A_ROW or error.code not in _TOO_MUCH):
                raise error
            if failures >= _FAILURES_IN_A_ROW:
                yield Piece(at, end, None, error)
                return
            if until - at > _FIRST_S and not source.rereads:
                size = _FIRST_S  # lose no more than need be
                continue
            yield Piece(at, until, None, error)
        else:
            failures, read = 0, True
            yield Piece(at, until, batch, error)
            if not source.rereads:
                size = _next_size(batch, until - at, least_s)
        at = until


async def _ask(
    source: Source, selections: Sequence[Selection], at: float
) -> tuple[Batch | None, SourceError | None]:
    try:
        batch = await source.select(selections, at=at)
    except SourceError as error:
        return None, error
    worst = [e for e in batch.failed.values() if e.code in _TOO_MUCH]
    return batch, next(iter([*worst, *batch.failed.values()]), None)


def _next_size(batch: Batch, span_s: float, least_s: float) -> float:
    samples = sum(one.ts.size for one in batch.series)
    fits = SAMPLES_A_PIECE / max(samples / span_s, 1e-9)
    return max(least_s, min(fits, span_s * _GROWTH, _LONGEST_S))


@dataclass(slots=True)
class _Track:
    """One series: the samples that are still needed."""

    series: RawSeries
    ts: Floats
    values: Floats
    long: bool


class Tape:
    """The samples that moments to come may need.

    Args:
        window_s: how far back a moment looks (s).
        long_names: metrics of which the newest sample before the window is needed too.
        long_s: how old that one may be (s).
    """

    def __init__(self, window_s: float, long_names: Collection[str], long_s: float) -> None:
        self.window_s = window_s
        self._long_names = frozenset(long_names)
        self._long_s = long_s
        self._tracks: dict[tuple[str, tuple[tuple[str, str], ...]], _Track] = {}
        self.first: float | None = None
        self.last: float | None = None

    def __len__(self) -> int:
        return len(self._tracks)

    @property
    def instances(self) -> list[str]:
        """The scrape addresses of what was read, sorted."""
        found = {t.series.labels.get("instance", "") for t in self._tracks.values()}
        return sorted(found - {""})

    def add(self, series: Iterable[RawSeries]) -> None:
        """Add the samples of the next piece; those that are there already are passed over."""
        for one in series:
            if not one.timed or not one.ts.size:
                continue
            key = series_key(one.name, one.labels)
            track = self._tracks.get(key)
            first = float(one.ts[0])
            last = float(one.ts[-1])
            self.first = first if self.first is None else min(self.first, first)
            self.last = last if self.last is None else max(self.last, last)
            if track is None:
                long = one.name in self._long_names
                self._tracks[key] = _Track(one, one.ts, one.values, long)
                continue
            new = int(track.ts.size and one.ts.searchsorted(track.ts[-1], side="right"))
            track.ts = np.concatenate([track.ts, one.ts[new:]])
            track.values = np.concatenate([track.values, one.values[new:]])

    def forget(self, moment: float) -> None:
        """Drop what no moment from this one on looks at (Unix s)."""
        gone = []
        for key, track in self._tracks.items():
            first = int(track.ts.searchsorted(moment - self.window_s - 1.0))
            if track.long and first:
                first -= 1
            track.ts, track.values = track.ts[first:].copy(), track.values[first:].copy()
            oldest = moment - (self._long_s if track.long else self.window_s) - 1.0
            if not track.ts.size or track.ts[-1] < oldest:
                gone.append(key)
        for key in gone:
            del self._tracks[key]

    def at(self, moment: float) -> list[RawSeries]:
        """Return what a question about a moment would get (Unix s)."""
        found = []
        for track in self._tracks.values():
            ts, values = clip(track.ts, track.values, moment - self.window_s, moment)
            if track.long and not ts.size:  # when it was last heard of
                ts, values = clip(track.ts, track.values, moment - self._long_s, moment)
                ts, values = ts[-1:], values[-1:]
            if ts.size:
                found.append(RawSeries(track.series.name, track.series.labels, ts, values))
        return found
