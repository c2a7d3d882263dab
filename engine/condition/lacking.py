"""What a condition lacks where it is unknown: the signals, and ``gpu.NAME`` for facts of the model.

Two readers of the same tree, as for its truth: one entity, and all entities of a frame. Compiled
once a condition, since every answer asks this of every undecided condition; a property test holds
the two together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from engine.condition import fleet, single
from engine.condition.memo import Flags, Fleet, One
from engine.condition.tree import (
    Attr,
    Binary,
    Expression,
    PastNumber,
    PastTruth,
    Truthy,
    children,
    signals_of,
)

OneLack = Callable[[One], Sequence[str]]
FleetLack = Callable[[Fleet, Flags], dict[str, Flags]]


@functools.lru_cache(maxsize=4096)
def of_one(node: Expression) -> OneLack:
    """Return the function that names what one entity lacks; none if the node is not unknown.

    Names come in written order and may repeat.
    """
    unknown, signals = _unknown_one(node), signals_of(node)
    if isinstance(node, Attr):
        own = (f"gpu.{node.name}",)
        return lambda one: own if unknown(one) else ()
    parts = [of_one(child) for child in children(node)]
    if isinstance(node, PastNumber | PastTruth):
        inner, offset_s = parts[0], node.offset_s

        def past(one: One) -> Sequence[str]:
            if not unknown(one):
                return ()
            return inner(one.earlier(offset_s)) if one.timed else signals

        return past
    by_zero = _zero_one(node)

    def run(one: One) -> Sequence[str]:
        if not unknown(one):
            return ()
        found = [name for part in parts for name in part(one)]
        # Siblings are unknown for lack of others, not of the entity itself.
        return found or (() if by_zero(one) else signals)

    return run


def _unknown_one(node: Expression) -> Callable[[One], bool]:
    if isinstance(node, Truthy):
        judged = single.truth(node)
        return lambda one: judged(one) == 0
    value = single.number(node)
    return lambda one: math.isnan(value(one))


def _zero_one(node: Expression) -> Callable[[One], bool]:
    """Return the function that says whether something in a node divides by zero."""
    below = [single.number(part.right) for part in _divisions(node)]
    return lambda one: any(value(one) == 0 for value in below)


def _divisions(node: Expression) -> list[Binary]:
    own = [node] if isinstance(node, Binary) and node.op == "/" else []
    return own + [found for child in children(node) for found in _divisions(child)]


@functools.lru_cache(maxsize=4096)
def of_fleet(node: Expression) -> FleetLack:
    """Return the function that says which of some entities lack what.

    It takes flags of entities for which the node is unknown, bool[n], some of them set, and returns
    such flags for each name.
    """
    signals = signals_of(node)
    if isinstance(node, Attr):
        name = f"gpu.{node.name}"
        return lambda _, without: {name: without}
    parts = [(_unknown_fleet(child), of_fleet(child)) for child in children(node)]
    if isinstance(node, PastNumber | PastTruth):
        _, inner = parts[0]
        offset_s = node.offset_s

        def past(all_: Fleet, without: Flags) -> dict[str, Flags]:
            if all_.timed:
                return inner(all_.earlier(offset_s), without)
            return dict.fromkeys(signals, without)

        return past
    below = [fleet.number(part.right) for part in _divisions(node)]

    def run(all_: Fleet, without: Flags) -> dict[str, Flags]:
        out: dict[str, Flags] = {}
        rest = without
        for unknown, part in parts:
            here = without & unknown(all_)
            for name, flags in part(all_, here).items() if here.any() else ():
                out[name] = out[name] | flags if name in out else flags
                rest = rest & ~flags
        for value in below if rest.any() else ():
            rest = rest & (value(all_) != 0)
        for name in signals if rest.any() else ():
            out[name] = out[name] | rest if name in out else rest
        return out

    return run


def _unknown_fleet(node: Expression) -> Callable[[Fleet], Flags]:
    if isinstance(node, Truthy):
        judged = fleet.truth(node)
        return lambda all_: judged(all_) == 0
    value = fleet.number(node)
    return lambda all_: np.isnan(value(all_))
