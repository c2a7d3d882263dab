"""What is gathered of one GPU and of one process while a trace is read, bounded.

All times are int64 nanoseconds on one clock of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.traces.intervals import Collector, Ints
from engine.traces.names import Range
from engine.traces.sampled import SampledRows

# Disjoint spans kept, of all devices together (24 bytes each), and rows that join calls and work.
SPANS = 200_000
_LAUNCHES = 150_000
_STARTS = 50_000
# What the host does is asked about gaps of 20 us and more.
_HOST_TOLERANCE_NS = 5_000


@dataclass(slots=True)
class Totals:
    """Count, sum and extremes of durations (ns) by number of a name."""

    count: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    total: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    least: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    most: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, numbers: Ints, durations: Ints) -> None:
        """Add durations (ns)."""
        size = int(numbers.max()) + 1
        if size > self.count.size:
            more = size - self.count.size
            zeros = np.zeros(more, dtype=np.int64)
            self.count = np.concatenate([self.count, zeros])
            self.total = np.concatenate([self.total, zeros])
            self.most = np.concatenate([self.most, zeros])
            self.least = np.concatenate([self.least, zeros + np.iinfo(np.int64).max])
        self.count += np.bincount(numbers, minlength=self.count.size)
        np.add.at(self.total, numbers, durations)
        np.minimum.at(self.least, numbers, durations)
        np.maximum.at(self.most, numbers, durations)

    def put(self, number: int, count: int, total: int, most: int) -> None:
        """Add what a database has summed up already (ns)."""
        self.add(np.array([number]), np.array([most]))
        self.count[number] += count - 1
        self.total[number] += total - most


@dataclass(slots=True)
class Family:
    """Ranges that differ in their numbers only (ns)."""

    kind: Range
    count: int = 0
    total: int = 0
    most: int = 0

    def add(self, duration: int, count: int = 1, total: int | None = None) -> None:
        """Add one range, or some of which this is the longest."""
        self.count += count
        self.total += duration if total is None else total
        self.most = max(self.most, duration)


class DeviceData:
    """What one GPU did."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.busy = Collector(SPANS // 2, tagged=True)
        self.working = Collector(SPANS // 4)
        self.compute = Collector(SPANS // 4)
        self.communication = Collector(SPANS // 8)
        self.copying = Collector(SPANS // 8)
        self.kernels = Totals()
        self.small = 0
        self.small_ns = 0
        self.first: int | None = None
        self.last: int | None = None
        self.streams: set[int] = set()
        self.processes: set[int] = set()
        self.copies: dict[tuple[str, str | None], list[int]] = {}
        self.sized = True
        self.memsets = 0
        self.memset_ns = 0
        self.graphs = 0
        self.graph_ns = 0
        self.starts = SampledRows(1, _STARTS)
        self.meetings: list[tuple[Ints, Ints, Ints]] = []
        self.met = 0

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """The unions: of all work, of kernels, and of the three kinds of work."""
        return (self.busy, self.working, self.compute, self.communication, self.copying)

    def limit(self, spans: int) -> None:
        """Set how many spans this device may keep."""
        self.busy.limit = spans // 2
        self.working.limit = self.compute.limit = spans // 4
        self.communication.limit = self.copying.limit = spans // 8

    def work(self, starts: Ints, ends: Ints, correlation: Ints | None) -> None:
        """Add work of any kind to what the device was busy with."""
        self.busy.add(starts, ends, correlation)
        low, high = int(starts.min()), int(ends.max())
        self.first = low if self.first is None else min(self.first, low)
        self.last = high if self.last is None else max(self.last, high)


class HostData:
    """What one process did on the CPU."""

    def __init__(self) -> None:
        self.launches = SampledRows(2, _LAUNCHES)
        self.sync = Collector(SPANS // 4)
        self.allocate = Collector(SPANS // 8)
        self.data = Collector(SPANS // 8)
        self.checkpoint = Collector(SPANS // 8)
        self.active = Collector(SPANS // 4, tolerance_ns=_HOST_TOLERANCE_NS)
        self.waiting = Collector(SPANS // 8, tolerance_ns=_HOST_TOLERANCE_NS)
