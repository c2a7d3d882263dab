"""The tree as functions of one entity at one instant: the fast way for a handful of entities.

Numbers are floats, NaN if unknown. Truth is 1 true, 0 unknown, -1 false, so that Kleene's *and*
is the least, *or* the greatest and *not* the negative.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise

from engine.condition import series
from engine.condition.memo import One
from engine.condition.tree import (
    LOOKBACK,
    Absolute,
    Age,
    And,
    Attr,
    Binary,
    ChangedTo,
    Coalesce,
    Compare,
    Has,
    IsCode,
    Negative,
    Not,
    Number,
    Numeric,
    Or,
    PastNumber,
    PastTruth,
    PeerCount,
    Peers,
    Presence,
    Reading,
    Share,
    Truthy,
    normal,
)
from engine.condition.windows import NEEDS_TIMES, NEEDS_TWO

OneNumber = Callable[[One], float]
OneTruth = Callable[[One], int]

# Fewer known peers than this say nothing about what is usual.
MIN_PEERS = 3

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_VALUES: dict[str, Callable[[Sequence[float]], float]] = {
    "avg": series.average,
    "min": min,
    "max": max,
    "increase": series.increase,
    "changes": series.changes,
    "stddev": series.stddev,
}


@functools.lru_cache(maxsize=4096)
def number(node: Numeric) -> OneNumber:
    """Return the function that computes a number for one entity."""
    match node:
        case Number(value=value):
            return lambda _: value
        case Attr(name=name):
            return _kept(node, lambda one: _attr(one, name))
        case Reading():
            return _kept(node, _reading(node))
        case Age(signal=signal):
            return lambda one: _age(one, signal)
        case Share(signal=signal, mask=mask, window_s=window_s):
            return _kept(node, lambda one: _share(one, signal, mask, window_s))
        case Binary():
            return _binary(node.op, number(node.left), number(node.right))
        case Negative():
            negated = number(node.operand)
            return lambda one: -negated(one)
        case Absolute():
            inner = number(node.operand)
            return lambda one: abs(inner(one))
        case Coalesce():
            return _first_known([number(option) for option in node.options])
        case Peers():
            return _peers(node)
        case PeerCount():
            return _peer_count(node)
        case PastNumber(offset_s=offset_s):
            past = number(node.operand)
            return lambda one: past(one.earlier(offset_s)) if one.timed else math.nan


@functools.lru_cache(maxsize=4096)
def truth(node: Truthy) -> OneTruth:
    """Return the function that judges one entity."""
    match node:
        case Compare():
            return _compare(COMPARE[node.op], number(node.left), number(node.right))
        case And():
            return _least([truth(part) for part in node.parts])
        case Or():
            return _greatest([truth(part) for part in node.parts])
        case Not():
            inner = truth(node.operand)
            return lambda one: -inner(one)
        case Has(signal=signal, mask=mask):
            return _newest(signal, lambda value: series.has_bits(value, mask))
        case IsCode(signal=signal, codes=codes):
            return _newest(signal, lambda value: value in codes)
        case Presence(state=state, signal=signal):
            return lambda one: _presence(one, state, signal)
        case ChangedTo():
            return lambda one: _changed_to(one, node)
        case PastTruth(offset_s=offset_s):
            past = truth(node.operand)
            return lambda one: past(one.earlier(offset_s)) if one.timed else 0


def _kept(node: Numeric, compute: OneNumber) -> OneNumber:
    key = normal(node)

    def run(one: One) -> float:
        value = one.kept.get(key)
        if value is None:
            value = one.kept[key] = compute(one)
        return value

    return run


def _attr(one: One, name: str) -> float:
    values = one.memo.frame.attrs.get(name)
    return math.nan if values is None else float(values[one.i])


def _reading(node: Reading) -> OneNumber:
    signal, window_s, q = node.signal, node.window_s, node.q
    function = node.function
    if function == "last":

        def newest(one: One) -> float:
            values, lo, hi = one.window(signal, window_s)
            return values[hi - 1] if lo < hi else math.nan

        return newest
    if function == "rate":
        return lambda one: _rate(one, signal, window_s)
    if q is not None:

        def ranked(one: One) -> float:
            values, lo, hi = one.window(signal, window_s)
            return series.quantile(values[lo:hi], q) if lo < hi else math.nan

        return ranked
    compute = _VALUES[function]
    least = 2 if function in NEEDS_TWO else 1
    needs_times = function in NEEDS_TIMES

    def run(one: One) -> float:
        values, lo, hi = one.window(signal, window_s)
        if hi - lo < least or (needs_times and not one.timed):
            return math.nan
        return compute(values[lo:hi])

    return run


def _rate(one: One, signal: str, window_s: int) -> float:
    values, lo, hi = one.window(signal, window_s)
    if hi - lo < 2 or not one.timed:
        return math.nan
    times = one.times(signal, window_s)
    span = times[-1] - times[0]
    return series.increase(values[lo:hi]) / span if span > 0 else math.nan


def _age(one: One, signal: str) -> float:
    times = one.times(signal, math.inf)
    return one.at - times[-1] if one.timed and times else math.nan


def _share(one: One, signal: str, mask: int, window_s: int) -> float:
    values, lo, hi = one.window(signal, window_s)
    return series.share(values[lo:hi], mask) if lo < hi else math.nan


def _binary(op: str, left: OneNumber, right: OneNumber) -> OneNumber:
    if op == "+":
        return lambda one: left(one) + right(one)
    if op == "-":
        return lambda one: left(one) - right(one)
    if op == "*":
        return lambda one: left(one) * right(one)

    def divide(one: One) -> float:
        below = right(one)
        return left(one) / below if below else math.nan

    return divide


def _first_known(options: list[OneNumber]) -> OneNumber:
    def run(one: One) -> float:
        for option in options:
            value = option(one)
            if value == value:  # noqa: PLR0124 - false for NaN only, and much faster than isnan
                return value
        return math.nan

    return run


def _members(one: One, group: str) -> list[One]:
    """Return the entities of the same group, itself included; none if that is not known."""
    number = one.memo.numbers(group)[one.i]
    return [one.memo.one(j, one.at) for j in one.memo.members(group).get(number, ())]


def _for_group(node: Peers | PeerCount, compute: OneNumber) -> OneNumber:
    """Keep a result for the whole group: it is the same for every entity in it."""
    key, group = normal(node), node.group

    def run(one: One) -> float:
        where = (key, one.memo.numbers(group)[one.i], one.at)
        value = one.memo.by_group.get(where)
        if value is None:
            value = one.memo.by_group[where] = compute(one)
        return value

    return run


def _peers(node: Peers) -> OneNumber:
    inner, function, group = number(node.operand), node.function, node.group

    def run(one: One) -> float:
        values = [
            value for member in _members(one, group) if not math.isnan(value := inner(member))
        ]
        return series.peers(function, values) if len(values) >= MIN_PEERS else math.nan

    return _for_group(node, run)


def _peer_count(node: PeerCount) -> OneNumber:
    inner, function, group = truth(node.operand), node.function, node.group
    least = MIN_PEERS if function == "share" else 1

    def run(one: One) -> float:
        known = [value for member in _members(one, group) if (value := inner(member))]
        if len(known) < least:
            return math.nan
        true = float(known.count(1))
        return true if function == "count" else true / len(known)

    return _for_group(node, run)


def _compare(test: Callable[[float, float], bool], left: OneNumber, right: OneNumber) -> OneTruth:
    def run(one: One) -> int:
        a, b = left(one), right(one)
        if a != a or b != b:  # noqa: PLR0124 - true for NaN only, and much faster than isnan
            return 0
        return 1 if test(a, b) else -1

    return run


def _least(parts: list[OneTruth]) -> OneTruth:
    def run(one: One) -> int:
        least = 1
        for part in parts:
            value = part(one)
            if value < 0:
                return -1
            least = min(least, value)
        return least

    return run


def _greatest(parts: list[OneTruth]) -> OneTruth:
    def run(one: One) -> int:
        greatest = -1
        for part in parts:
            value = part(one)
            if value > 0:
                return 1
            greatest = max(greatest, value)
        return greatest

    return run


def _newest(signal: str, test: Callable[[float], bool]) -> OneTruth:
    value_of = number(Reading("last", signal, LOOKBACK))

    def run(one: One) -> int:
        value = value_of(one)
        if math.isnan(value):
            return 0
        return 1 if test(value) else -1

    return run


def _presence(one: One, state: str, signal: str) -> int:
    if state == "blank":
        values = one.memo.series(signal, one.i)[1]
        return 1 if not values and one.i in one.memo.dropped.get(signal, ()) else -1
    _, lo, hi = one.window(signal, LOOKBACK)
    return 1 if (lo < hi) == (state == "known") else -1


def _changed_to(one: One, node: ChangedTo) -> int:
    values, lo, hi = one.window(node.signal, node.window_s)
    if lo >= hi:
        return 0
    inside = values[lo:hi]
    if node.codes.isdisjoint(inside):
        return -1
    if not one.memo.frame.has_times(node.signal) or len(inside) == 1:
        return 0  # a code without a time, or alone, may be old or new
    changed = any(new != old and new in node.codes for old, new in pairwise(inside))
    return 1 if changed else -1
