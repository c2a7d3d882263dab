"""Intervals of time as sorted numpy columns: union, intersection, gaps; and a bounded collector.

A span list is a pair of int64 arrays ``(starts, ends)`` in nanoseconds, sorted, without overlap and
without empty members: what `union` returns. All other functions take such lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NO_TAG = -1
_EMPTY: Ints = np.empty(0, dtype=np.int64)


class Spans(NamedTuple):
    """A sorted list of disjoint intervals (ns), half open."""

    starts: Ints
    ends: Ints

    @property
    def length(self) -> int:
        """Total length (ns)."""
        return int((self.ends - self.starts).sum())

    def __bool__(self) -> bool:
        """Whether there is any interval; a tuple of two arrays would always be true."""
        return bool(self.starts.size)


NOTHING = Spans(_EMPTY, _EMPTY)


def union(starts: Ints, ends: Ints) -> Spans:
    """Return the union of intervals in any order; touching ones become one, empty ones vanish."""
    return tagged_union(starts, ends, None)[0]


def tagged_union(starts: Ints, ends: Ints, tags: Ints | None) -> tuple[Spans, Ints | None]:
    """Return the union, and for each of its members the tag of the interval that begins it."""
    if starts.size > 1 and not bool((starts[1:] >= starts[:-1]).all()):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        tags = None if tags is None else tags[order]
    filled = ends > starts
    if not bool(filled.all()):
        starts, ends = starts[filled], ends[filled]
        tags = None if tags is None else tags[filled]
    if not starts.size:
        return NOTHING, None if tags is None else _EMPTY
    reach = np.maximum.accumulate(ends)
    first = np.empty(starts.size, dtype=bool)
    first[0] = True
    np.greater(starts[1:], reach[:-1], out=first[1:])
    begin = np.flatnonzero(first)
    last = np.append(begin[1:] - 1, starts.size - 1)
    return Spans(starts[begin], reach[last]), None if tags is None else tags[begin]


def join(*lists: Spans) -> Spans:
    """Return the union of several span lists."""
    some = [one for one in lists if one]
    if len(some) < 2:
        return some[0] if some else NOTHING
    return union(
        np.concatenate([one.starts for one in some]), np.concatenate([one.ends for one in some])
    )


def complement(spans: Spans, low: int, high: int) -> Spans:
    """Return what lies between ``low`` and ``high`` (ns) and in none of the spans."""
    if high <= low:
        return NOTHING
    starts = np.concatenate([[low], np.clip(spans.ends, low, high)])
    ends = np.concatenate([np.clip(spans.starts, low, high), [high]])
    kept = ends > starts
    return Spans(starts[kept], ends[kept])


def between(spans: Spans) -> Spans:
    """Return the gaps between the first and the last span."""
    return Spans(spans.ends[:-1], spans.starts[1:])


def measure(spans: Spans, starts: Ints, ends: Ints) -> Ints:
    """Return for each interval of ``(starts, ends)``, in any order, how much spans cover (ns)."""
    if not spans:
        return np.zeros(starts.size, dtype=np.int64)
    return _covered_until(spans, ends) - _covered_until(spans, starts)


def _covered_until(spans: Spans, at: Ints) -> Ints:
    """Return the length of the spans before each moment."""
    before = np.concatenate([[0], np.cumsum(spans.ends - spans.starts)])
    k = np.searchsorted(spans.starts, at, side="right")
    inside = np.where(k > 0, np.maximum(spans.ends[k - 1] - at, 0), 0)
    covered: Ints = before[k] - inside
    return covered


def overlap(one: Spans, other: Spans) -> int:
    """Return the length of what lies in both (ns)."""
    if len(one.starts) > len(other.starts):
        one, other = other, one
    return int(measure(other, one.starts, one.ends).sum())


def intersect(one: Spans, other: Spans) -> Spans:
    """Return what lies in both."""
    if not one or not other:
        return NOTHING
    low, high = int(min(one.starts[0], other.starts[0])), int(max(one.ends[-1], other.ends[-1]))
    outside = join(complement(one, low, high), complement(other, low, high))
    return complement(outside, low, high)


def subtract(one: Spans, other: Spans) -> Spans:
    """Return what lies in the first and not in the second."""
    if not one or not other:
        return one
    low, high = int(one.starts[0]), int(one.ends[-1])
    return intersect(one, complement(other, low, high))


class Collector:
    """A union of intervals that come in any order, in memory that does not grow with them.

    Over its limit, neighbours closer than a tolerance are joined, and the tolerance doubles until
    they fit. How much of the gaps between them was joined is counted, so that the total length
    stays right.

    Attributes:
        limit: spans kept.
        tolerance_ns: the widest gap that may have been joined; 0 while everything is exact.
        bridged_ns: total length of the gaps that were joined.
    """

    _BATCH = 16_384
    _FIRST_TOLERANCE_NS = 1_000
    _RECENT_NS = 1_000_000_000
    # Parts that wait to be joined: small ones cost many times their rows.
    _PARTS = 64

    def __init__(self, limit: int, *, tagged: bool = False, tolerance_ns: int = 0) -> None:
        """Collect; ``tagged`` keeps the tag of the interval that begins each span."""
        self.limit = limit
        self._tagged = tagged
        self._spans = NOTHING
        self._tags: Ints | None = _EMPTY if tagged else None
        self._waiting: list[tuple[Ints, Ints, Ints | None]] = []
        self._count = 0
        self.tolerance_ns = tolerance_ns
        self.bridged_ns = 0

    def add(self, starts: Ints, ends: Ints, tags: Ints | None = None) -> None:
        """Add intervals (ns)."""
        if not starts.size:
            return
        self._waiting.append((starts, ends, tags if self._tagged else None))
        self._count += starts.size
        if self._count >= max(self._BATCH, self._spans.starts.size // 2):
            self._settle()
        elif len(self._waiting) >= self._PARTS:
            self._waiting = [self._gathered()]

    @property
    def spans(self) -> Spans:
        """The union of everything that was added."""
        self._settle()
        return self._spans

    @property
    def tags(self) -> Ints:
        """The tag of each span of `spans`."""
        self._settle()
        return _EMPTY if self._tags is None else self._tags

    @property
    def length_ns(self) -> int:
        """Length of the union, without the gaps that were joined."""
        return self.spans.length - self.bridged_ns

    def _gathered(self) -> tuple[Ints, Ints, Ints | None]:
        """Return what waits as one part."""
        parts = self._waiting
        starts = np.concatenate([part[0] for part in parts])
        ends = np.concatenate([part[1] for part in parts])
        tags = None
        if self._tagged:
            tags = np.concatenate(
                [np.full(p[0].size, NO_TAG) if p[2] is None else p[2] for p in parts]
            )
        return starts, ends, tags

    def _settle(self) -> None:
        if not self._waiting:
            return
        self._waiting.insert(0, (self._spans.starts, self._spans.ends, self._tags))
        starts, ends, tags = self._gathered()
        self._waiting, self._count = [], 0
        self._spans, self._tags = tagged_union(starts, ends, tags)
        if self.tolerance_ns:
            self._coarsen()
        while self._spans.starts.size > self.limit:
            self.tolerance_ns = max(self._FIRST_TOLERANCE_NS, 2 * self.tolerance_ns)
            self._coarsen()

    def _coarsen(self) -> None:
        starts, ends = self._spans
        if not starts.size:
            return
        gaps = starts[1:] - ends[:-1]
        joined = gaps <= self.tolerance_ns
        if self.tolerance_ns < self._RECENT_NS:
            # Long work is told when it has ended: what lies beneath it may have come before.
            joined &= starts[1:] < ends[-1] - self._RECENT_NS
        self.bridged_ns += int(gaps[joined].sum())
        begin = np.append(True, ~joined)
        end = np.append(~joined, True)
        self._spans = Spans(starts[begin], ends[end])
        self._tags = None if self._tags is None else self._tags[begin]
