"""A distribution in bounded memory: counts in buckets that grow by a constant ratio.

As in DDSketch (Masson, Rim, Lee, VLDB 2019): a quantile is off by at most 1 % of its value, however
many values were added.
"""

from __future__ import annotations

import math
from functools import lru_cache

_GAMMA = 1.02
_LOG = math.log(_GAMMA)
# Beyond this many buckets the highest are merged; from the least value on they span a factor of 80.
_MOST = 224


@lru_cache(maxsize=4_096)
def _key(value: float) -> int:
    """Return the bucket of a value; durations are whole microseconds, so many are the same."""
    return math.ceil(math.log(max(value, 1e-9)) / _LOG)


class Sketch:
    """Counts positive numbers.

    Attributes:
        count, total, low, high: number, sum, least and greatest of the values added.
    """

    __slots__ = ("_buckets", "count", "high", "low", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = 0.0

    def add(self, value: float) -> None:
        """Count a value; what is below 1e-9 counts as that."""
        self.count += 1
        self.total += value
        self.low = min(self.low, value)
        self.high = max(self.high, value)
        key = _key(value)
        buckets = self._buckets
        if key in buckets:
            buckets[key] += 1
            return
        buckets[key] = 1
        if len(buckets) > _MOST:
            top = max(buckets)
            moved = buckets.pop(top)
            below = max(buckets)
            buckets[below] += moved

    def quantile(self, share: float) -> float:
        """Return the value below which a share (0 to 1) of the values lies; 0 if there are none."""
        return _quantile(sorted(self._buckets.items()), self.count, share, self.low, self.high)

    @property
    def median(self) -> float:
        """The middle value."""
        return self.quantile(0.5)

    @property
    def mean(self) -> float:
        """The average; 0 if there are no values."""
        return self.total / self.count if self.count else 0.0

    def mad(self) -> float:
        """Return the median absolute deviation from the median."""
        middle = self.median
        apart: dict[float, int] = {}
        for key, count in self._buckets.items():
            distance = abs(_value(key) - middle)
            apart[distance] = apart.get(distance, 0) + count
        rest = (self.count + 1) // 2
        for distance in sorted(apart):
            rest -= apart[distance]
            if rest <= 0:
                return distance
        return 0.0


def _value(key: int) -> float:
    return 2.0 * math.exp(key * _LOG) / (1.0 + _GAMMA)


def _quantile(
    buckets: list[tuple[int, int]], count: int, share: float, low: float, high: float
) -> float:
    if not count:
        return 0.0
    rank = share * (count - 1)
    seen = 0
    for key, amount in buckets:
        seen += amount
        if seen > rank:
            return min(max(_value(key), low), high)
    return high
