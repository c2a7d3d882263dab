"""Prometheus histograms: several series added up, quantiles and means read off them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_MAX_BUCKETS = 512


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile: between ``low`` and ``high``, the edges of its bucket; ``high`` may be infinite.

    ``value`` is interpolated as Prometheus does it, or ``low`` where the bucket has no upper edge.
    """

    value: float
    low: float
    high: float

    @property
    def open(self) -> bool:
        """Whether it lies above the last finite edge, so that only a lower bound is known."""
        return math.isinf(self.high)


@dataclass(slots=True)
class Histogram:
    """Counts by upper edge, cumulative as exported; sum and count of all observations."""

    buckets: dict[float, float] = field(default_factory=dict)
    sum: float | None = None
    count: float | None = None
    _edges: frozenset[float] | None = None
    _mixed: bool = False

    def add(self, buckets: Mapping[float, float], total: float | None, count: float | None) -> None:
        """Add one series; where edges differ between series, only means are left."""
        if buckets:
            edges = frozenset(buckets)
            self._mixed |= self._edges is not None and edges != self._edges
            self._edges = edges
            for edge, value in buckets.items():
                if edge in self.buckets or len(self.buckets) < _MAX_BUCKETS:
                    self.buckets[edge] = self.buckets.get(edge, 0.0) + value
        if total is not None:
            self.sum = (self.sum or 0.0) + total
        if count is not None:
            self.count = (self.count or 0.0) + count

    @property
    def mean(self) -> float | None:
        """The mean of all observations, None if there are none."""
        if self.sum is None or not self.count or self.count < 0 or self.sum < 0:
            return None
        return self.sum / self.count

    @property
    def only_infinity(self) -> bool:
        """Whether there are buckets, and none with a finite edge: no quantile can be read."""
        return bool(self.buckets) and all(math.isinf(edge) for edge in self.buckets)

    def quantile(self, q: float) -> Quantile | None:
        """Return a quantile as ``histogram_quantile`` interpolates it, None if it cannot be."""
        edges = sorted(self.buckets)
        if self._mixed or len(edges) < 2 or not math.isinf(edges[-1]):
            return None
        total = max(self.buckets.values())
        if total <= 0:
            return None
        wanted, before, low = q * total, 0.0, 0.0
        for edge in edges:
            here = max(self.buckets[edge], before)  # cumulative, whatever a torn scrape says
            if here >= wanted and here > before:
                if math.isinf(edge):
                    return Quantile(low, low, edge)
                share = (wanted - before) / (here - before)
                return Quantile(min(low + (edge - low) * share, edge), low, edge)
            before, low = here, edge
        return None
