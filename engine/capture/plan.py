"""A capture as a plan: everything that will be run, before anything is.

A plan is plain data. It is shown, approved, stored as JSON, and later run from there: what runs is
what was shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from engine.capture.errors import CaptureError
from engine.errors import UsageError
from engine.model import Entity, Kind

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What is asked for.

    Attributes:
        id: names the capture, its folders and its journal; letters, digits and hyphens.
        profiler: name of a profiler, such as ``nsys``.
        target: a GPU or a node, with its host.
        duration_s: how long to record (s).
    """

    id: str
    profiler: str
    target: Entity
    duration_s: float

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            hint = "use letters, digits and hyphens"
            raise UsageError(f"{self.id[:60]!r} cannot name a capture", hint=hint)
        # Targets may come from labels of a metrics server: nothing about them is taken on trust.
        if self.target.kind not in {Kind.GPU, Kind.NODE} or not self.target.host:
            said = f"cannot capture on {self.target.name}: its host is not known"
            raise UsageError(said, hint="name the GPU by its host (node-3:5), or the host (node-3)")


@dataclass(frozen=True, slots=True)
class CaptureStep:
    """One step of a capture.

    Attributes:
        id: short name, unique in the plan.
        does: what it does, for people.
        timeout_s: longest that it may take (s).
        argv: the command on the target's machine; None for a step that only waits.
        undo: the command that takes it back; None if there is nothing to take back.
        settles: id of a step that needs no undoing any more once this one is done.
    """

    id: str
    does: str
    timeout_s: float
    argv: tuple[str, ...] | None = None
    undo: tuple[str, ...] | None = None
    settles: str | None = None


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """A capture, ready to be approved and run.

    Attributes:
        id: as in the request.
        profiler: its name.
        version: what the profiler on the target says its version is.
        target: what is looked at.
        session: name of the profiler's session that is used.
        route: how commands reach the machine: ``local`` or ``ssh``.
        through: what is put before each command to run it there.
        duration_s: how long is recorded (s).
        steps: in order; a step whose ``does`` names a condition may be left out.
        overhead: what recording costs the program.
        disturbs: what else it may disturb.
        file: where the trace will lie, on this machine.
        max_file_bytes: a larger trace is thrown away (bytes).
    """

    id: str
    profiler: str
    version: str
    target: Entity
    session: str
    route: str
    through: tuple[str, ...]
    duration_s: float
    steps: tuple[CaptureStep, ...]
    overhead: str
    disturbs: str
    file: str
    max_file_bytes: int
    schema: str = field(default="gpuwhy/capture-plan/1")

    @property
    def host(self) -> str:
        """The target's machine."""
        return self.target.host or ""

    def step(self, name: str) -> CaptureStep:
        """Return a step by its id.

        Raises:
            CaptureError: the plan has no such step.
        """
        for step in self.steps:
            if step.id == name:
                return step
        raise CaptureError(f"plan {self.id} has no step {name!r}", hint="make a new plan")


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """A capture that is done.

    Attributes:
        file: the trace, on this machine.
        size_bytes: its size (bytes).
        duration_s: how long was recorded (s), measured.
        log: what happened that is worth telling, in order.
    """

    file: str
    size_bytes: int
    duration_s: float
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureRun:
    """The answer to ``gpuwhy capture run``: the plan, and what came of it."""

    plan: CapturePlan
    result: CaptureResult
    schema: str = field(default="gpuwhy/capture-run/1")


def plan_from_json(data: Mapping[str, Any]) -> CapturePlan:
    """Return the plan that `engine.model.to_json` wrote.

    Raises:
        CaptureError: it is no such plan, or one of another version.
    """
    try:
        return _plan(data)
    except (KeyError, TypeError, ValueError):
        said = "this is no plan of a capture, or one of another version of gpuwhy"
        raise CaptureError(said, hint="make a new plan") from None


def _plan(data: Mapping[str, Any]) -> CapturePlan:
    values = {f.name: data[f.name] for f in fields(CapturePlan)}
    if values["schema"] != "gpuwhy/capture-plan/1":
        raise ValueError(values["schema"])
    target = dict(values["target"])
    values["target"] = Entity(**{**target, "kind": Kind(target["kind"])})
    values["through"] = tuple(values["through"])
    values["steps"] = tuple(_step(step) for step in values["steps"])
    return CapturePlan(**values)


def _step(data: Mapping[str, Any]) -> CaptureStep:
    values = {f.name: data[f.name] for f in fields(CaptureStep)}
    for name in ("argv", "undo"):
        values[name] = None if values[name] is None else _words(values[name])
    return CaptureStep(**values)


def _words(argv: Any) -> tuple[str, ...]:
    if not isinstance(argv, list | tuple) or not all(isinstance(word, str) for word in argv):
        raise TypeError(argv)
    return tuple(argv)
