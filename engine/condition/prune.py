"""A tree without the signals that nobody has: what is surely unknown or surely so is cut away.

A server that is asked about a signal it does not hold answers nothing, which says neither true nor
false. Which metric names a server holds is cheap to ask, so conditions are cut down to them before
they are compiled: queries get shorter, and what cannot hold is not asked at all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from engine.condition.tree import (
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
    attrs_of,
    signals_of,
    walk,
)

# Stands among what is present for jobs to compare within.
JOBS = "job."

# A condition that holds for everything, and one that holds for nothing.
ALWAYS = And(())
NEVER = Or(())

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_NOTHING: Mapping[str, float] = {}
# What these give of samples that are all the same is that value.
_OF_ONE_VALUE = frozenset({"last", "avg", "min", "max", "quantile"})
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def prune(
    node: Truthy, present: Collection[str], assumed: Mapping[str, float] = _NOTHING
) -> Truthy:
    """Return a condition that is true for the same entities, given which signals there are.

    Args:
        node: the condition, every ``not`` at the leaves (`engine.condition.tree.push_not`).
        present: ids of the signals of which some entity may have a sample, and ``gpu.NAME`` for
            the facts that some entity's model may have; nobody has any other. `JOBS` if some
            entity may belong to a job.
        assumed: signals of which every entity has this one value, in the signal's unit.

    Returns:
        The condition without the others; `ALWAYS` or `NEVER` where nothing is left to ask. False
        and unknown are not told apart: only what is true stays the same.
    """
    match node:
        case And(parts=parts):
            return _joined(And, ALWAYS, NEVER, [prune(part, present, assumed) for part in parts])
        case Or(parts=parts):
            return _joined(Or, NEVER, ALWAYS, [prune(part, present, assumed) for part in parts])
        case Compare():
            return _compare(node, present, assumed)
        case PastTruth(operand=operand):
            inner = prune(operand, present, assumed)
            return inner if inner in (ALWAYS, NEVER) else replace(node, operand=inner)
        case Presence(state=state, signal=signal) if signal not in present:
            return ALWAYS if state == "missing" else NEVER
        case Not(operand=Presence(signal=signal)) if signal not in present:
            return ALWAYS  # `blank` is the one that keeps its `not`: nothing came, so no blank
        case Not(operand=Has() | IsCode() | ChangedTo() as leaf) if leaf.signal not in present:
            return NEVER
        case Has() | IsCode() | ChangedTo() if node.signal not in present:
            return NEVER
        case _:
            return node


def _joined(kind: type[And | Or], neutral: Truthy, deciding: Truthy, parts: list[Truthy]) -> Truthy:
    if deciding in parts:
        return deciding
    kept = tuple(part for part in parts if part != neutral)
    return kept[0] if len(kept) == 1 else kind(kept)


def _compare(node: Compare, present: Collection[str], assumed: Mapping[str, float]) -> Truthy:
    left, right = _number(node.left, present, assumed), _number(node.right, present, assumed)
    if left is None or right is None:
        return NEVER
    test = _COMPARE[node.op]
    if isinstance(right, Number):
        above = right.value
        left = _without_default(left, lambda value: test(value, above))
    if isinstance(left, Number):
        below = left.value
        right = _without_default(right, lambda value: test(below, value))
    if isinstance(left, Number) and isinstance(right, Number):
        return ALWAYS if test(left.value, right.value) else NEVER
    return replace(node, left=left, right=right)


def _without_default(node: Numeric, true: Callable[[float], bool]) -> Numeric:
    """Leave out the constant at the end of a `coalesce` with which a comparison is not true."""
    match node:
        case Coalesce(options=(*first, Number(value=value))) if first and not true(value):
            return first[0] if len(first) == 1 else Coalesce(tuple(first))
        case Binary(op="/" | "*" as op, left=inner, right=Number(value=by)) if by:
            scaled = (lambda v: true(v / by)) if op == "/" else (lambda v: true(v * by))
            return replace(node, left=_without_default(inner, scaled))
        case _:
            return node


def _number(
    node: Numeric, present: Collection[str], assumed: Mapping[str, float]
) -> Numeric | None:
    """Return the number, None if no entity can have it."""
    match node:
        case Number():
            return node
        case Attr(name=name):
            return node if f"gpu.{name}" in present else None
        case Reading(signal=signal, function=function) if signal in assumed:
            return Number(assumed[signal]) if function in _OF_ONE_VALUE else node
        case Reading() | Share() | Age():
            return node if node.signal in present else None
        case Peers(group="job") if JOBS not in present:
            return None
        case Negative() | Absolute() | PastNumber() | Peers():
            inner = _number(node.operand, present, assumed)
            return None if inner is None else replace(node, operand=inner)
        case Binary():
            left, right = (
                _number(node.left, present, assumed),
                _number(node.right, present, assumed),
            )
            if left is None or right is None:
                return None
            if isinstance(left, Number) and isinstance(right, Number):
                return _folded(node.op, left.value, right.value)
            return replace(node, left=left, right=right)
        case Coalesce(options=options):
            return _first(options, present, assumed)
        case PeerCount(group="job") if JOBS not in present:
            return None
        case PeerCount():
            # False and unknown count differently, so what is counted must stay whole.
            return None if _never_known(node, present) else node


def _folded(op: str, left: float, right: float) -> Number | None:
    """Return the result of arithmetic with two constants; None for a division by zero."""
    if op == "/":
        return Number(left / right) if right else None
    return Number(_ARITHMETIC[op](left, right))


def _never_known(node: PeerCount, present: Collection[str]) -> bool:
    """Whether what is counted is unknown for every entity; presence itself is always known."""
    if any(isinstance(inner, Presence) for inner in walk(node)):
        return False
    read = (*signals_of(node), *(f"gpu.{name}" for name in attrs_of(node)))
    return not any(name in present for name in read)


def _first(
    options: tuple[Numeric, ...], present: Collection[str], assumed: Mapping[str, float]
) -> Numeric | None:
    kept: list[Numeric] = []
    for option in options:
        number = _number(option, present, assumed)
        if number is not None:
            kept.append(number)
        if isinstance(number, Number):
            break  # always known: what follows never counts
    if len(kept) <= 1:
        return kept[0] if kept else None
    return Coalesce(tuple(kept))
