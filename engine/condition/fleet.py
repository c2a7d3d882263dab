"""The tree as functions of all entities at one instant: numpy arrays of length n.

Numbers are float64, NaN if unknown. Truth is int8: 1 true,
0 unknown, -1 false. Means the same as `engine.condition.single`; a property test holds the two
together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from engine.condition import windows
from engine.condition.memo import Flags, Fleet, Truths
from engine.condition.single import MIN_PEERS
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
from engine.samples import Floats

FleetNumber = Callable[[Fleet], Floats]
FleetTruth = Callable[[Fleet], Truths]

_COMPARE: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_ARITHMETIC: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply}


@functools.lru_cache(maxsize=4096)
def number(node: Numeric) -> FleetNumber:
    """Return the function that computes a number for every entity."""
    match node:
        case Number(value=value):
            return lambda fleet: np.full(fleet.n, value)
        case Attr(name=name):
            return lambda fleet: fleet.memo.frame.attrs.get(name, np.full(fleet.n, np.nan))
        case Reading():
            return _kept(node, lambda fleet: _reading(fleet, node))
        case Age(signal=signal):
            return lambda fleet: _age(fleet, signal)
        case Share():
            return _kept(node, lambda fleet: _share(fleet, node))
        case Binary():
            return _binary(node.op, number(node.left), number(node.right))
        case Negative():
            negated = number(node.operand)
            return lambda fleet: -negated(fleet)
        case Absolute():
            inner = number(node.operand)
            return lambda fleet: np.abs(inner(fleet))
        case Coalesce():
            return _first_known([number(option) for option in node.options])
        case Peers():
            return _kept(node, _peers(node))
        case PeerCount():
            return _kept(node, _peer_count(node))
        case PastNumber(offset_s=offset_s):
            past = number(node.operand)
            return lambda fleet: past(fleet.earlier(offset_s)) if fleet.timed else _unknown(fleet)


@functools.lru_cache(maxsize=4096)
def truth(node: Truthy) -> FleetTruth:
    """Return the function that judges every entity."""
    match node:
        case Compare():
            return _compare(_COMPARE[node.op], number(node.left), number(node.right))
        case And():
            return _fold(np.minimum, [truth(part) for part in node.parts])
        case Or():
            return _fold(np.maximum, [truth(part) for part in node.parts])
        case Not():
            inner = truth(node.operand)
            return lambda fleet: -inner(fleet)
        case Has(signal=signal, mask=mask):
            return _newest(signal, lambda values: windows.has_bits(values, mask) > 0)
        case IsCode(signal=signal, codes=codes):
            wanted = np.array(sorted(codes), dtype=np.float64)
            return _newest(signal, lambda values: np.isin(values, wanted))
        case Presence():
            return lambda fleet: _presence(fleet, node)
        case ChangedTo():
            return lambda fleet: _changed_to(fleet, node)
        case PastTruth(offset_s=offset_s):
            past = truth(node.operand)
            return lambda fleet: (
                past(fleet.earlier(offset_s)) if fleet.timed else np.zeros(fleet.n, np.int8)
            )


def _kept(node: Numeric, compute: FleetNumber) -> FleetNumber:
    key = normal(node)

    def run(fleet: Fleet) -> Floats:
        values = fleet.kept.get(key)
        if values is None:
            values = fleet.kept[key] = compute(fleet)
        return values

    return run


def _unknown(fleet: Fleet) -> Floats:
    return np.full(fleet.n, np.nan)


def _reading(fleet: Fleet, node: Reading) -> Floats:
    out = _unknown(fleet)
    if node.function in windows.NEEDS_TIMES and not fleet.timed:
        return out
    rows = fleet.segments(node.signal, node.window_s)
    if rows is not None and node.function in windows.NEEDS_TWO:
        rows = rows.at_least(2)
    if rows is None or not len(rows.rows):
        return out
    if node.q is not None:
        out[rows.rows] = windows.quantile(rows, node.q)
    else:
        out[rows.rows] = windows.WINDOWS[node.function](rows)
    return out


def _age(fleet: Fleet, signal: str) -> Floats:
    out = _unknown(fleet)
    rows = fleet.segments(signal, np.inf)
    if rows is not None and fleet.timed:
        out[rows.rows] = fleet.at - rows.column.ts[rows.hi - 1]
    return out


def _share(fleet: Fleet, node: Share) -> Floats:
    out = _unknown(fleet)
    rows = fleet.segments(node.signal, node.window_s)
    if rows is not None:
        out[rows.rows] = windows.share(rows, node.mask)
    return out


def _binary(op: str, left: FleetNumber, right: FleetNumber) -> FleetNumber:
    if op in _ARITHMETIC:
        compute = _ARITHMETIC[op]
        return lambda fleet: compute(left(fleet), right(fleet))

    def divide(fleet: Fleet) -> Floats:
        below = right(fleet)
        return left(fleet) / np.where(below == 0, np.nan, below)

    return divide


def _first_known(options: list[FleetNumber]) -> FleetNumber:
    def run(fleet: Fleet) -> Floats:
        out = options[0](fleet)
        for option in options[1:]:
            unknown = np.isnan(out)
            if not unknown.any():
                break
            out = np.where(unknown, option(fleet), out)
        return out

    return run


def _peers(node: Peers) -> FleetNumber:
    inner, function, group = number(node.operand), node.function, node.group

    def run(fleet: Fleet) -> Floats:
        groups = fleet.memo.groups(group)
        if not len(groups.order):
            return _unknown(fleet)
        return groups.spread(windows.peers(function, inner(fleet), groups, MIN_PEERS), fleet.n)

    return run


def _peer_count(node: PeerCount) -> FleetNumber:
    inner, function, group = truth(node.operand), node.function, node.group
    least = MIN_PEERS if function == "share" else 1

    def run(fleet: Fleet) -> Floats:
        groups = fleet.memo.groups(group)
        if not len(groups.order):
            return _unknown(fleet)
        judged = inner(fleet)[groups.order]
        true = np.add.reduceat(judged > 0, groups.starts, dtype=np.float64)
        known = np.add.reduceat(judged != 0, groups.starts, dtype=np.float64)
        result = true if function == "count" else true / np.maximum(known, 1)
        return groups.spread(np.where(known >= least, result, np.nan), fleet.n)

    return run


def _compare(test: np.ufunc, left: FleetNumber, right: FleetNumber) -> FleetTruth:
    def run(fleet: Fleet) -> Truths:
        a, b = left(fleet), right(fleet)
        out = _sign(test(a, b))
        out[np.isnan(a) | np.isnan(b)] = 0
        return out

    return run


def _fold(ufunc: np.ufunc, parts: list[FleetTruth]) -> FleetTruth:
    def run(fleet: Fleet) -> Truths:
        out = parts[0](fleet)
        for part in parts[1:]:
            out = ufunc(out, part(fleet))
        return out

    return run


def _newest(signal: str, test: Callable[[Floats], Flags]) -> FleetTruth:
    value_of = number(Reading("last", signal, LOOKBACK))

    def run(fleet: Fleet) -> Truths:
        values = value_of(fleet)
        out = _sign(test(values))
        out[np.isnan(values)] = 0
        return out

    return run


def _presence(fleet: Fleet, node: Presence) -> Truths:
    present = np.zeros(fleet.n, dtype=np.bool_)
    if node.state == "blank":
        column = fleet.memo.frame.columns.get(node.signal)
        if column is not None:
            present = np.diff(column.offsets) > 0
        came = np.zeros(fleet.n, dtype=np.bool_)
        came[fleet.memo.dropped.get(node.signal, [])] = True
        return _sign(came & ~present)
    rows = fleet.segments(node.signal, LOOKBACK)
    if rows is not None:
        present[rows.rows] = True
    return _sign(present == (node.state == "known"))


def _sign(flags: Flags) -> Truths:
    """Turn flags into 1 and -1."""
    signs: Truths = np.where(flags, np.int8(1), np.int8(-1))
    return signs


def _changed_to(fleet: Fleet, node: ChangedTo) -> Truths:
    out = np.zeros(fleet.n, dtype=np.int8)
    rows = fleet.segments(node.signal, node.window_s)
    if rows is None:
        return out
    if node.codes.isdisjoint(fleet.memo.distinct(node.signal)):
        out[rows.rows] = -1
        return out
    # A code without a time, or alone, may be old or new; other values are no change to it.
    out[rows.rows] = np.where(windows.any_of(rows, node.codes), 0, -1)
    some = rows.at_least(2)
    if fleet.memo.frame.has_times(node.signal) and some.rows.size:
        out[some.rows] = _sign(windows.changed_to(some, node.codes))
    return out
