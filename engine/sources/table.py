"""What a pass over exposition text leaves behind: which series there are, and their samples.

Blocks of samples arrive as three columns: series number, value, and time (s, NaN if the line gave
none). A series that nobody asked for has a negative number, -1 less the number of its host.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.samples import Floats, RawSeries
from engine.sources.clocks import Clocks, Told
from engine.sources.matching import HALF_MS, Wanted, clip, series_key

Ids = npt.NDArray[np.int64]


class SeriesIndex:
    """Numbers the series that are wanted; the same labels in another order are the same series."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.names: list[str] = []
        self.labels: list[Mapping[str, str]] = []
        self.windows: list[float] = []
        self.hosts: list[int] = []
        self.clocks = Clocks()
        self._ids: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def id_of(self, name: str, labels: Mapping[str, str]) -> int:
        """Return the number of a series, new or known, a negative one if it is not wanted."""
        # To Prometheus an empty label is no label.
        labels = {k: v for k, v in labels.items() if v}
        window_s = self.wanted.window(name, labels)
        if window_s is None:
            return self.unwanted(self.clocks.number(labels))
        key = series_key(name, labels)
        known = self._ids.get(key)
        if known is not None:
            return known
        self.names.append(name)
        self.labels.append(dict(key[1]))
        self.windows.append(window_s)
        self.hosts.append(self.clocks.number(labels))
        self._ids[key] = len(self._ids)
        return self._ids[key]

    @staticmethod
    def unwanted(host: int) -> int:
        """Return the number of a series that nobody asked for."""
        return -1 - host


# Clocks of machines differ, by less than this (s).
_AHEAD_S = 3600.0


class Sink(ABC):
    """Takes blocks of samples; knows the newest time of every host, wanted or not.

    Args of the constructor:
        index: the series.
        at: the moment asked about (Unix s), None for that of the newest samples.
        shifts: by how much (s) the clocks of some hosts are known to be ahead.
    """

    def __init__(
        self, index: SeriesIndex, at: float | None, shifts: Mapping[str, float] | None = None
    ) -> None:
        self.index = index
        self.at = at
        self._shifts = dict(shifts or {})
        # When the newest of the files was written (Unix s), once that is known.
        self.written: float | None = None
        # A broken clock far ahead must not make everything else the past.
        self._possible = time.time() + _AHEAD_S
        self._beyond = -math.inf
        self._told: Told | None = None
        self._hosts: Ids = np.empty(0, dtype=np.int64)

    def add(self, ids: Ids, values: Floats, stamps: Floats) -> None:
        """Take one block."""
        self._told = None
        hosts = self._hosts_of(ids)
        # fmax passes over NaN: samples without times.
        latest = float(np.fmax.reduce(stamps)) if len(stamps) else math.nan
        if latest > self._possible:
            self._beyond = max(self._beyond, latest)
            good = ~(stamps > self._possible)
            self.index.clocks.note(hosts[good], stamps[good])
        elif not math.isnan(latest):
            self.index.clocks.note(hosts, stamps)
        keep = ids >= 0
        if self.at is not None:
            stamps -= self.ahead(self._shifts)[hosts] if self._shifts else 0.0
            keep &= ~(stamps > self.at + HALF_MS)
        self._take(ids, hosts, values, stamps, keep)

    def _hosts_of(self, ids: Ids) -> Ids:
        """Return the numbers of the hosts of some series."""
        if self._hosts.size < len(self.index):
            self._hosts = np.array(self.index.hosts, dtype=np.int64)
        hosts: Ids = -1 - ids
        wanted = ids >= 0
        hosts[wanted] = self._hosts[ids[wanted]]
        return hosts

    def ahead(self, shifts: Mapping[str, float]) -> Floats:
        """Return by how much (s) the clock of each host is ahead, by its number."""
        return np.array([shifts.get(name, 0.0) for name in self.index.clocks.hosts])

    @abstractmethod
    def _take(
        self, ids: Ids, hosts: Ids, values: Floats, stamps: Floats, keep: npt.NDArray[np.bool_]
    ) -> None:
        """Take what is marked in ``keep``."""

    def corrections(self) -> Floats:
        """Return by how much (s) the times of each series taken must still be moved back."""
        hosts = np.array(self.index.hosts, dtype=np.int64)
        if self.at is not None:  # done as they came
            return np.zeros(hosts.size)
        return self.ahead(self.told().shifts)[hosts] if hosts.size else np.empty(0)

    def told(self) -> Told:
        """Return what the clocks of all hosts say, once all blocks are there."""
        if self._told is None:
            self._told = self.index.clocks.tell(self.written)
        return self._told

    def moment(self) -> float | None:
        """Return the moment judged: the one asked for, else the newest; None without any times."""
        newest = self.told().newest
        newest = newest if math.isfinite(newest) else self._beyond
        if not math.isfinite(newest):
            return None
        return newest if self.at is None else self.at


@dataclass(slots=True)
class Leftovers:
    """Samples of wanted series that were not used, by reason."""

    repeated: int = 0
    untimed: int = 0
    examples: dict[str, str] = field(default_factory=dict)


class Samples(Sink):
    """Keeps the samples of the wanted series that can still fall into the window.

    What is older than the newest time met so far of its host, minus the longest window, is dropped
    as it comes: memory follows the question, not the file.
    """

    def __init__(
        self, index: SeriesIndex, at: float | None, shifts: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(index, at, shifts)
        self._blocks: list[tuple[Ids, Floats, Floats]] = []

    def _take(
        self, ids: Ids, hosts: Ids, values: Floats, stamps: Floats, keep: npt.NDArray[np.bool_]
    ) -> None:
        until = self.index.clocks.newest[hosts] if self.at is None else self.at
        keep &= ~(stamps < until - self.index.wanted.window_s - HALF_MS)
        if keep.any():
            self._blocks.append((ids[keep], values[keep], stamps[keep]))

    def series(self) -> tuple[list[RawSeries], Leftovers]:
        """Return the wanted series, sorted, clipped to their windows; empty ones are left out."""
        left = Leftovers()
        if not self._blocks:
            return [], left
        ids, values, stamps = (np.concatenate(column) for column in zip(*self._blocks, strict=True))
        # lexsort is stable: samples of one time stay in the order they were read; NaN goes last.
        order = np.lexsort((stamps, ids))
        ids, values, stamps = ids[order], values[order], stamps[order]
        repeats = np.zeros(len(ids), dtype=bool)
        repeats[:-1] = (ids[1:] == ids[:-1]) & (stamps[1:] == stamps[:-1])
        if repeats.any():
            left.repeated = int(repeats.sum())
            left.examples["repeated"] = self.index.names[int(ids[np.argmax(repeats)])]
            ids, values, stamps = ids[~repeats], values[~repeats], stamps[~repeats]
        bounds = np.searchsorted(ids, np.arange(len(self.index) + 1))
        stamps = stamps - self.corrections()[ids]
        found = [
            one
            for i in range(len(self.index))
            if (one := self._one(i, slice(bounds[i], bounds[i + 1]), values, stamps, left))
        ]
        return sorted(found, key=lambda s: series_key(s.name, s.labels)), left

    def _one(
        self, i: int, part: slice, values: Floats, stamps: Floats, left: Leftovers
    ) -> RawSeries | None:
        name, labels = self.index.names[i], self.index.labels[i]
        ts, vs = stamps[part], values[part]
        if not len(ts):
            return None
        timed = int(np.searchsorted(ts, np.nan))  # NaN sorts last: the index of the first one
        if not timed:
            return RawSeries(name, labels, np.zeros(len(vs)), vs, timed=False)
        if timed < len(ts):
            left.untimed += len(ts) - timed
            left.examples.setdefault("untimed", name)
        at = self.moment()
        assert at is not None  # a series with times was met
        ts, vs = clip(ts[:timed], vs[:timed], at - self.index.windows[i], at)
        return RawSeries(name, labels, ts, vs) if len(ts) else None


class LastSeen(Sink):
    """Keeps only when each wanted series was last seen, for listing label sets."""

    def __init__(
        self, index: SeriesIndex, at: float | None, shifts: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(index, at, shifts)
        self._last: Floats = np.empty(0)

    def _take(
        self,
        ids: Ids,
        hosts: Ids,  # noqa: ARG002 - only when matters
        values: Floats,  # noqa: ARG002
        stamps: Floats,
        keep: npt.NDArray[np.bool_],
    ) -> None:
        grow = len(self.index) - len(self._last)
        if grow:
            self._last = np.concatenate([self._last, np.full(grow, -np.inf)])
        # A sample without a time counts as in every window.
        seen = np.where(np.isnan(stamps), np.inf, stamps)
        np.maximum.at(self._last, ids[keep], seen[keep])

    def present(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return name and labels of the series with a sample in their window."""
        at = self.moment()
        last_seen = self._last - self.corrections()[: self._last.size]
        return [
            (self.index.names[i], self.index.labels[i])
            for i, last in enumerate(last_seen.tolist())
            if last == math.inf or (at is not None and last >= at - self.index.windows[i] - HALF_MS)
        ]
