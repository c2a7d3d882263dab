"""What many conditions share while they are evaluated on one frame.

Window functions cost far more than the comparisons around them, and rules ask for the same ones
again and again: every result is kept under the normal form of its expression and the instant it
was computed for. A `Memo` belongs to one frame; drop it with the frame.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.samples import Column, Floats, Frame, Ints

Truths = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]


class Memo:
    """Results of sub-expressions on one frame, for single entities and for all of them."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.by_group: dict[tuple[str, int, float], float] = {}
        self._members: dict[str, dict[int, list[int]]] = {}
        self._numbers: dict[str, list[int]] = {}
        self._groups: dict[str, Groups] = {}
        self._ones: dict[tuple[int, float], One] = {}
        self._fleets: dict[float, Fleet] = {}
        self._series: dict[tuple[str, int], tuple[list[float], list[float]]] = {}
        self._extent: dict[str, tuple[float, float]] = {}
        self._distinct: dict[str, frozenset[float]] = {}

    def one(self, i: int, at: float) -> One:
        """Return entity ``i`` as seen at ``at``."""
        key = (i, at)
        found = self._ones.get(key)
        if found is None:
            found = self._ones[key] = One(self, i, at)
        return found

    def fleet(self, at: float) -> Fleet:
        """Return all entities as seen at ``at``."""
        found = self._fleets.get(at)
        if found is None:
            found = self._fleets[at] = Fleet(self, at)
        return found

    def series(self, signal: str, i: int) -> tuple[list[float], list[float]]:
        """Return times and values of one signal of one entity as plain lists."""
        key = (signal, i)
        found = self._series.get(key)
        if found is None:
            ts, values = self.frame.samples(signal, i)
            found = self._series[key] = (ts.tolist(), values.tolist())
        return found

    def numbers(self, group: str) -> list[int]:
        """Return the number of each entity's group, -1 where it is not known."""
        found = self._numbers.get(group)
        if found is None:
            found = self._numbers[group] = self.frame.group(group).tolist()
        return found

    def extent(self, signal: str, column: Column) -> tuple[float, float]:
        """Return the oldest and newest sample time in a column that is not empty."""
        found = self._extent.get(signal)
        if found is None:
            found = self._extent[signal] = (float(column.ts.min()), float(column.ts.max()))
        return found

    def distinct(self, signal: str) -> frozenset[float]:
        """Return the values that a signal has anywhere in the frame."""
        found = self._distinct.get(signal)
        if found is None:
            column = self.frame.columns.get(signal)
            values = [] if column is None else np.unique(column.values).tolist()
            found = self._distinct[signal] = frozenset(values)
        return found

    @cached_property
    def dropped(self) -> dict[str, list[int]]:
        """Signal to the entities of which samples came that were no readings."""
        found: dict[str, list[int]] = {}
        for (signal, i), dropped in self.frame.dropped.items():
            if any(dropped.counts.values()):
                found.setdefault(signal, []).append(i)
        return found

    def members(self, group: str) -> dict[int, list[int]]:
        """Number of a group to its entities; those whose group is not known are left out."""
        found = self._members.get(group)
        if found is None:
            found = self._members[group] = {}
            for i, number in enumerate(self.numbers(group)):
                if number >= 0:
                    found.setdefault(number, []).append(i)
        return found

    def groups(self, group: str) -> Groups:
        """The same as arrays."""
        found = self._groups.get(group)
        if found is None:
            numbers = self.frame.group(group)
            order = np.argsort(numbers, kind="stable")
            order = order[numbers[order] >= 0]
            inside = numbers[order]
            change = np.r_[True, inside[1:] != inside[:-1]] if len(inside) else inside
            starts = np.flatnonzero(change)
            sizes = np.diff(np.r_[starts, len(inside)])
            found = self._groups[group] = Groups(order, starts, sizes)
        return found


@dataclass(frozen=True, slots=True)
class Groups:
    """Entities sorted by group: group k is ``order[starts[k]:starts[k] + sizes[k]]``."""

    order: Ints
    starts: Ints
    sizes: Ints

    def spread(self, per_group: Floats, n: int) -> Floats:
        """Give each of n entities the number of its group, NaN where the group is not known."""
        out = np.full(n, np.nan)
        out[self.order] = np.repeat(per_group, self.sizes)
        return out


class One:
    """One entity at one instant; ``kept`` holds what was computed for it."""

    __slots__ = ("at", "i", "kept", "memo", "timed")

    def __init__(self, memo: Memo, i: int, at: float) -> None:
        self.memo = memo
        self.i = i
        self.at = at
        self.timed = memo.frame.timed
        self.kept: dict[str, float] = {}

    def times(self, signal: str, window_s: float) -> list[float]:
        """Return the sample times inside ``[at - window_s, at]``."""
        ts, _ = self.memo.series(signal, self.i)
        return ts[bisect_left(ts, self.at - window_s) : bisect_right(ts, self.at)]

    def window(self, signal: str, window_s: float) -> tuple[list[float], int, int]:
        """Return the values of a signal and the half-open range of those inside the window."""
        ts, values = self.memo.series(signal, self.i)
        if not self.timed and not self.memo.frame.has_times(signal):
            return values, 0, len(values)
        return values, bisect_left(ts, self.at - window_s), bisect_right(ts, self.at)

    def earlier(self, offset_s: float) -> One:
        """Return the same entity ``offset_s`` seconds before."""
        return self.memo.one(self.i, self.at - offset_s)


@dataclass(frozen=True, slots=True)
class Segments:
    """The samples inside a window, for the entities that have any.

    Entity ``rows[k]`` has the samples ``lo[k]:hi[k]`` of the column; ``lo < hi`` everywhere.
    """

    column: Column
    rows: Ints
    lo: Ints
    hi: Ints

    @property
    def sizes(self) -> Ints:
        """How many samples each row has."""
        return self.hi - self.lo

    def at_least(self, count: int) -> Segments:
        """Return only the rows with that many samples."""
        keep = self.sizes >= count
        if keep.all():
            return self
        return Segments(self.column, self.rows[keep], self.lo[keep], self.hi[keep])


class Fleet:
    """All entities of the frame at one instant; ``kept`` holds what was computed for them."""

    __slots__ = ("_segments", "at", "kept", "memo", "n", "timed")

    def __init__(self, memo: Memo, at: float) -> None:
        self.memo = memo
        self.at = at
        self.n = len(memo.frame)
        self.timed = memo.frame.timed
        self.kept: dict[str, Floats] = {}
        self._segments: dict[tuple[str, float], Segments | None] = {}

    def segments(self, signal: str, window_s: float) -> Segments | None:
        """Return the samples of a signal in ``[at - window_s, at]``, None if there are none."""
        key = (signal, window_s)
        if key not in self._segments:
            self._segments[key] = self._cut(signal, window_s)
        return self._segments[key]

    def _cut(self, signal: str, window_s: float) -> Segments | None:
        column = self.memo.frame.columns.get(signal)
        if column is None or not len(column.ts):
            return None
        lo, hi = column.offsets[:-1], column.offsets[1:]
        start = self.at - window_s
        if self.memo.frame.has_times(signal):
            oldest, newest = self.memo.extent(signal, column)
            first = lo
            if oldest < start:
                lo = first + _count(column.ts < start, column.offsets)
            if newest > self.at:
                hi = first + _count(column.ts <= self.at, column.offsets)
        rows = np.flatnonzero(hi > lo)
        if not len(rows):
            return None
        return Segments(column, rows, lo[rows], hi[rows])

    def earlier(self, offset_s: float) -> Fleet:
        """Return the same entities ``offset_s`` seconds before."""
        return self.memo.fleet(self.at - offset_s)


def _count(flags: Flags, offsets: Ints) -> Ints:
    """Count the flags that are set in each row of a column."""
    running = np.zeros(len(flags) + 1, dtype=np.int64)
    np.cumsum(flags, out=running[1:])
    ends = running[offsets]
    return ends[1:] - ends[:-1]
