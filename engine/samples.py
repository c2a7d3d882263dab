"""Readings in memory: raw series as a source gives them, and the columns that rules work on.

A `Frame` holds n entities; each signal is one `Column` in compressed sparse rows: the samples of
entity i are ``ts[offsets[i]:offsets[i+1]]`` and ``values[offsets[i]:offsets[i+1]]``, times
ascending, no NaN. This lets numpy evaluate a condition for thousands of entities at once.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.errors import SourceError
from engine.model import Entity

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Prometheus looks back five minutes for the newest sample of a series (--query.lookback-delta).
LOOKBACK_S = 300.0


@dataclass(slots=True)
class RawSeries:
    """One series as found: metric name, labels without ``__name__``, times (s) and values.

    ``timed`` is False when the source gave no timestamps; ``ts`` is then all zero.
    """

    name: str
    labels: Mapping[str, str]
    ts: Floats = field(repr=False)
    values: Floats = field(repr=False)
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Matcher:
    """A label matcher, as in PromQL: ``op`` is ``=``, ``!=``, ``=~`` or ``!~`` (RE2, anchored)."""

    label: str
    op: str
    value: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which series to fetch: any of the names, all of the matchers, the last window_s seconds."""

    names: tuple[str, ...]
    matchers: tuple[Matcher, ...] = ()
    window_s: float = 900.0


@dataclass(slots=True)
class Batch:
    """What a source answered to one wave of selections.

    ``written`` says, for samples without times, when the source was last written to (Unix s).
    ``failed`` maps the metric names whose query failed to why; an empty name is any.
    """

    series: list[RawSeries] = field(repr=False)
    at: float | None
    queries: int
    warnings: list[str] = field(default_factory=list)
    written: float | None = None
    failed: dict[str, SourceError] = field(default_factory=dict)


@dataclass(slots=True)
class Column:
    """All samples of one signal for all entities of a frame (see module docstring)."""

    ts: Floats
    values: Floats
    offsets: Ints


@dataclass(slots=True)
class Dropped:
    """Samples that were no readings: how many, and why (``INT64_BLANK``, ``out of range`` …)."""

    counts: dict[str, int] = field(default_factory=dict)
    example: float | None = None


@dataclass(slots=True)
class Origin:
    """Where a signal of an entity was found, so that a query can be shown: name and matchers."""

    name: str
    matchers: tuple[Matcher, ...]
    scale: float = 1.0


@dataclass(slots=True)
class Frame:
    """Readings of n entities, ready for evaluation.

    Attributes:
        entities: the n entities, in a fixed order.
        at: the moment judged (Unix seconds), 0.0 for sources without timestamps.
        timed: False if samples have no times: then only values count.
        columns: signal id to `Column`; a signal that no entity has is absent.
        attrs: ``gpu.*`` facts by name, float64[n], NaN where not known.
        host: int64[n], entities with the same number share a host; -1 if the host is not known.
            In other frames than that of GPUs and ports, what takes its place: the job of ranks,
            the model of a service's engines, the file system that several hosts mount.
        dropped: (signal, entity index) to what was thrown away.
        origins: (signal, entity index) to where it was found.
        window_s: the window fetched (s).
        logged: entity index to the Xids that a kernel log has of it: (Unix s, code, where).
        gauge: the column ``xid`` as the metrics have it, before Xids of a log joined it.
        placed: signals that have times where the rest has none (s, 0 is the moment judged).
        scope: what its entities are: gpu, node, port, rank, service or filesystem.
        job: int64[n], entities with the same number belong to one job; -1 if none is known.
        rail: int64[n], ports with the same number are the same port of hosts of one kind
            (`engine.signals.rails`). Of ports only.
        contradicted: entity index to signals that two exporters contradict each other on, both as
            fresh, and what they say.
    """

    entities: Sequence[Entity]
    at: float
    timed: bool
    columns: dict[str, Column]
    attrs: dict[str, Floats]
    host: Ints
    dropped: dict[tuple[str, int], Dropped] = field(default_factory=dict)
    origins: MutableMapping[tuple[str, int], Origin] = field(default_factory=dict)
    window_s: float = 900.0
    logged: dict[int, list[tuple[float, int, str]]] = field(default_factory=dict)
    gauge: Column | None = None
    placed: frozenset[str] = frozenset()
    scope: str = "gpu"
    job: Ints | None = None
    rail: Ints | None = None
    contradicted: dict[int, dict[str, str]] = field(default_factory=dict)

    def group(self, name: str) -> Ints:
        """Return the numbers of a group: ``siblings`` (`host`), ``job`` or ``rail``."""
        if name == "siblings":
            return self.host
        found = self.job if name == "job" else self.rail
        return np.full(len(self), -1, dtype=np.int64) if found is None else found

    def __len__(self) -> int:
        return len(self.entities)

    def has_times(self, signal: str) -> bool:
        """Return whether the samples of a signal have times."""
        return self.timed or signal in self.placed

    def count(self, signal: str, i: int) -> int:
        """Return how many samples of one signal entity i has."""
        column = self.columns.get(signal)
        return 0 if column is None else column.offsets.item(i + 1) - column.offsets.item(i)

    def newest(self, signal: str, i: int) -> float | None:
        """Return the time of the newest sample (Unix s), None if there is no reading."""
        if not self.count(signal, i):
            return None
        column = self.columns[signal]
        return column.ts.item(column.offsets.item(i + 1) - 1)

    def samples(self, signal: str, i: int) -> tuple[Floats, Floats]:
        """Return (times, values) of one signal of entity i; both empty if there is no reading."""
        column = self.columns.get(signal)
        if column is None:
            empty = np.empty(0)
            return empty, empty
        lo, hi = column.offsets[i], column.offsets[i + 1]
        return column.ts[lo:hi], column.values[lo:hi]
