"""The hold time: has a condition been true at every sample for a while?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from engine.condition.memo import One
from engine.condition.single import OneTruth
from engine.samples import LOOKBACK_S


def held(judge: OneTruth, signals: Iterable[str], one: One, hold_s: float) -> int:
    """Say whether a condition that is true now was true all through the last ``hold_s`` seconds.

    Now is ``one.at``. The condition is judged again at every sample time of its signals in that
    span.

    Returns:
        1 if it was true at each of them and they cover the span: the first at which it could be
        judged lies at most one sampling interval (the largest of the signals' median gaps) after
        the span begins, and no gap is longer than the lookback of five minutes.
        -1 if it was false at any of them.
        0 if it cannot be told: no times, one sample, too short a history, a gap.
    """
    if not one.timed:
        return 0
    signals = tuple(signals)
    gaps = [gap for signal in signals if (gap := _interval(one, signal)) is not None]
    if not gaps:
        return 0
    at = one.at
    times = sorted({t for signal in signals for t in one.times(signal, hold_s)} | {at})
    verdicts = [judge(one.memo.one(one.i, t)) for t in times]
    if -1 in verdicts:
        return -1
    first = verdicts.index(1)
    # What lies before the first judgement was not seen; after it, nothing may be missing.
    seen = times[first:]
    if 0 in verdicts[first:] or seen[0] > at - hold_s + max(gaps):
        return 0
    return 1 if all(b - a <= LOOKBACK_S for a, b in pairwise(seen)) else 0


def _interval(one: One, signal: str) -> float | None:
    """Return the median time between two samples, None if there are fewer than two."""
    times, _ = one.memo.series(signal, one.i)
    if len(times) < 2:
        return None
    return median(b - a for a, b in pairwise(times))
