"""Faults and red herrings: what can be planted in a fleet, and the ground truth about it.

A `Fault` is named by a cause of the taxonomy. What it does to the fleet is one small function in
`effects_*.py` that writes into the `Environment`; the tables there are put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.errors import UsageError
from engine.simulate.boards import Boards
from engine.simulate.environment import Environment
from engine.simulate.noise import Floats


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault to plant.

    Attributes:
        cause: id from the taxonomy, for example ``power_brake``.
        target: ``node-3`` or ``node-3:5``.
        since: when it begins (Unix seconds); ``until``: when it ends, never by default.
        severity: 0 (barely there) to 1 (as bad as it gets).
        value: overrides the fault's own number, such as the Xid of ``driver_or_firmware_xid``.
    """

    cause: str
    target: str
    since: float
    severity: float = 1.0
    until: float = float("inf")
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Herring:
    """Something that looks like a fault and is none; ``kind`` is a key of `HERRINGS`."""

    kind: str
    target: str
    since: float
    until: float = float("inf")
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Planted:
    """Ground truth: a cause, the entity it sits on, since when, and every GPU it makes sick."""

    cause: str
    entity: str
    since: float
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a block of time and of the fleet that a fault acts on.

    Attributes:
        rows, cols: slices of the environment's arrays.
        age: seconds since the fault began, float64[rows, 1].
        at: Unix seconds, float64[rows, 1].
        fault: the fault.
        boards: the hardware of the whole fleet.
    """

    rows: slice
    cols: slice
    age: Floats
    at: Floats
    fault: Fault | Herring
    boards: Boards

    @property
    def severity(self) -> float:
        """Severity of the fault; a red herring is what it is, at 1."""
        return self.fault.severity if isinstance(self.fault, Fault) else 1.0

    def grown(self, over_s: float) -> Floats:
        """Return how far a creeping fault has come, 0..1 over ``over_s`` seconds, [rows, 1]."""
        return np.clip(self.age / over_s, 0.0, 1.0)

    def set(self, array: Floats, value: float | Floats) -> None:
        """Write a value into the fault's part of an environment array."""
        array[self.rows, self.cols] = value

    def scale(self, array: Floats, factor: float | Floats) -> None:
        """Multiply the fault's part of an environment array."""
        array[self.rows, self.cols] *= factor

    def add(self, array: Floats, value: float | Floats) -> None:
        """Add to the fault's part of an environment array."""
        array[self.rows, self.cols] += value


Apply = Callable[[Environment, Span], None]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a fault does.

    Attributes:
        apply: writes into the environment.
        node: True if it always strikes a whole node.
        xid: Xid that the driver reports when it begins, if any.
    """

    apply: Apply
    node: bool = False
    xid: int | None = None


def xid_of(fault: Fault | Herring, effects: Mapping[str, Effect]) -> int | None:
    """Return the Xid that a fault or red herring raises when it begins, or None."""
    if isinstance(fault, Herring):
        return int(fault.value or 31) if fault.kind == "old_xid" else None
    effect = effects[fault.cause]
    if effect.xid is None or (fault.cause == "gpu_off_bus" and fault.severity < 0.5):
        return None
    return effect.xid if fault.value is None else int(fault.value)


def check_fault(fault: Fault | Herring, effects: Mapping[str, Effect], known: set[str]) -> None:
    """Refuse a fault that makes no sense.

    Raises:
        UsageError: unknown cause or kind, unknown target, a node fault aimed at one GPU, or a
            severity outside 0..1.
    """
    name = fault.cause if isinstance(fault, Fault) else fault.kind
    if name not in effects:
        message = f"no simulated {'fault' if isinstance(fault, Fault) else 'red herring'} {name!r}"
        raise UsageError(message, hint=f"choose one of {', '.join(sorted(effects))}")
    if fault.target not in known:
        message = f"{name}: no target {fault.target!r} in this fleet"
        raise UsageError(message, hint="name a node (node-3) or a GPU (node-3:5)")
    if effects[name].node and ":" in fault.target:
        message = f"{name} strikes a whole node, not {fault.target!r}"
        raise UsageError(message, hint=f"use {fault.target.split(':')[0]!r}")
    if isinstance(fault, Fault) and not 0.0 <= fault.severity <= 1.0:
        message = f"{name}: severity {fault.severity} is outside 0..1"
        raise UsageError(message, hint="1 is as bad as it gets")
