"""One scrape target: every series that it exports, at the times at which it was scraped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios import shapes

Level = Floats | float


class Recorder:
    """Collects the series of one exporter; all share its scrape times and its target's labels.

    Args:
        rng: where chance comes from.
        ts: scrape times (Unix s), ascending.
        labels: labels that every series carries (``instance``, ``job``, ``pod`` …).
    """

    def __init__(self, rng: np.random.Generator, ts: Floats, labels: Mapping[str, str]) -> None:
        self.rng = rng
        self.ts = ts
        self.labels = dict(labels)
        self.series: list[RawSeries] = []

    def wide(self, value: Level) -> Floats:
        """Return one value for each scrape."""
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), self.ts.shape))

    def gauge(self, name: str, value: Level, labels: Mapping[str, str] | None = None) -> None:
        """Add a gauge as it is; NaN where it was not exported."""
        everything = {**self.labels, **(labels or {})}
        self.series.append(shapes.series(name, everything, self.ts, self.wide(value)))

    def shaky(
        self, name: str, value: Level, labels: Mapping[str, str] | None = None, *,
        spread: float = 0.05, whole: bool = False, hi: float = np.inf,
    ) -> None:  # fmt: skip
        """Add a gauge with noise in proportion to its value; ``whole`` rounds to integers."""
        base = self.wide(value)
        noise = 1.0 + shapes.wobble(self.rng, base.size, spread)
        values = np.clip(base * noise, 0.0, hi)
        self.gauge(name, np.round(values) if whole else values, labels)

    def count(
        self, name: str, per_s: Level, labels: Mapping[str, str] | None = None, *,
        whole: bool = True, start: float | None = None,
    ) -> None:  # fmt: skip
        """Add a counter that grows by ``per_s`` a second; it has been running for some days."""
        rate = self.wide(per_s)
        if start is None:
            start = float(np.round(rate[0] * self.rng.uniform(1e5, 4e5)))
        values = shapes.counter(self.rng, self.ts, rate, start=start, whole=whole)
        self.gauge(name, values, labels)

    def events(self, per_s: Level) -> Floats:
        """Return how many events fell between each scrape and the one before, whole numbers.

        The first figure is what the process has seen since it started.
        """
        rate = self.wide(per_s)
        gone = np.diff(self.ts, prepend=self.ts[:1])
        seen = self.rng.poisson(np.maximum(rate * gone, 0.0)).astype(np.float64)
        seen[0] = np.round(rate[0] * self.rng.uniform(1e4, 1e5))
        return seen

    def histogram(
        self, name: str, seen: Floats, means: Sequence[tuple[Level, Level]],
        bounds: Sequence[float], labels: Mapping[str, str] | None = None, *, shape: float = 4.0,
    ) -> None:  # fmt: skip
        """Add a histogram: ``_bucket`` by upper bound, ``_sum`` and ``_count``.

        Args:
            name: metric name without suffix.
            seen: observations between scrapes, as `events` gives them.
            means: parts of the mixture, as (share of observations 0 to 1, mean).
            bounds: upper bounds without the infinite one.
            labels: more labels.
            shape: of the log-logistic distribution; larger is narrower.
        """
        parts = [(self.wide(share), self.wide(mean)) for share, mean in means]
        for bound in (*bounds, np.inf):
            share = np.sum([w * at_most(bound, mean, shape) for w, mean in parts], axis=0)
            le = "+Inf" if np.isinf(bound) else f"{bound:g}" if bound % 1 else f"{bound:.1f}"
            self.gauge(f"{name}_bucket", np.floor(np.cumsum(seen * share) + 1e-6),
                       {**(labels or {}), "le": le})  # fmt: skip
        self.gauge(f"{name}_count", np.cumsum(seen), labels)
        mean = np.sum([w * mean for w, mean in parts], axis=0)
        self.gauge(f"{name}_sum", np.cumsum(seen * mean), labels)


def at_most(bound: float, mean: Floats, shape: float) -> Floats:
    """Return the share of values up to a bound, for a log-logistic distribution with a mean.

    Latencies and lengths have long right tails; the log-logistic has one and a closed form:
    share = 1 / (1 + (bound / scale) ** -shape), mean = scale * (pi / shape) / sin(pi / shape).
    """
    if np.isinf(bound):
        return np.ones_like(mean)
    angle = np.pi / shape
    scale = np.maximum(mean, 1e-9) * np.sin(angle) / angle
    return np.asarray(1.0 / (1.0 + (bound / scale) ** -shape))
