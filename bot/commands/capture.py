"""``capture``: plan a profile, and say what came of it.

Running a plan is `engine.capture.run`; who may do it, and where its steps are kept, is for the
surface to say.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.answer import (
    Answer,
    Block,
    Bullet,
    Bullets,
    Fields,
    Heading,
    Line,
    Note,
    NoteKind,
    Steps,
    Tone,
    code,
    line,
    muted,
    strong,
)
from engine.errors import UsageError
from engine.model import Entity, Kind, Step, to_json
from engine.topology import parse_target
from engine.units import duration

if TYPE_CHECKING:
    from engine.capture import CapturePlan, CaptureResult, CaptureSettings, CaptureStep


async def make_plan(
    profiler: str, target: str, duration_s: float, *, capture_id: str, settings: CaptureSettings
) -> CapturePlan:
    """Look at the target and return what a capture would do; nothing is changed there.

    Args:
        profiler: its name, such as ``nsys``.
        target: ``HOST:GPU`` or ``HOST``, as the user wrote it.
        duration_s: how long to record (s).
        capture_id: names the capture.
        settings: the site's settings for captures.

    Raises:
        UsageError: the target, the profiler or the duration is not usable.
        CaptureError: the target is not ready for a capture.
        UnreachableError: the target's machine cannot be reached.
    """
    from engine.capture import CaptureRequest, plan  # noqa: PLC0415 - only when it is used

    request = CaptureRequest(capture_id, profiler, entity(target), duration_s)
    return await plan(request, settings)


def entity(target: str) -> Entity:
    """Return the GPU or node that a target names by its host.

    Raises:
        UsageError: it does not name a host.
    """
    found = parse_target(target)
    if found.host is None or found.kind not in {Kind.GPU, Kind.NODE}:
        hint = "name the GPU by its host (node-3:5), or the host (node-3)"
        raise UsageError(f"cannot capture on {found.text!r}: its host is not known", hint=hint)
    name = found.host if found.gpu is None else f"{found.host}:{found.gpu}"
    return Entity(found.kind, name, cluster=found.cluster, host=found.host, gpu=found.gpu)


def plan_answer(plan: CapturePlan) -> Answer:
    """Return a plan as an answer."""
    title = line(
        "Plan: record ",
        strong(plan.target.name),
        f" for {duration(plan.duration_s)} with {plan.profiler}; nothing has been run yet",
    )
    blocks: tuple[Block, ...] = (
        Fields(
            (
                *_facts(plan),
                ("costs", line(plan.overhead)),
                ("disturbs", line(plan.disturbs)),
                ("file", line(code(plan.file))),
            )
        ),
        Heading(line(f"Will be run on {plan.host}, in this order"), 2),
        Bullets(tuple(_step(step) for step in plan.steps)),
    )
    return Answer(title=title, blocks=blocks, data=to_json(plan))


def run_answer(plan: CapturePlan, result: CaptureResult) -> Answer:
    """Return a capture that is done as an answer."""
    from engine.capture import CaptureRun  # noqa: PLC0415

    title = line(
        strong(f"Captured {plan.target.name}", Tone.GOOD),
        f": {duration(result.duration_s)}, {megabytes(result.size_bytes)}, ",
        code(result.file),
    )
    return Answer(
        title=title,
        blocks=tuple(_run_blocks(plan, result)),
        data=to_json(CaptureRun(plan, result)),
    )


def megabytes(size: int) -> str:
    """Write a file's size (bytes) for people: ``0.14 MB``, ``23 MB``."""
    return f"{size / 1e6:.2g} MB" if size < 10_000_000 else f"{size / 1e6:.0f} MB"


def _run_blocks(plan: CapturePlan, result: CaptureResult) -> Iterator[Block]:
    yield Fields(
        (
            *_facts(plan),
            ("recorded", line(duration(result.duration_s))),
            ("size", line(megabytes(result.size_bytes))),
            ("file", line(code(result.file))),
        )
    )
    for said in result.log:
        yield Note(NoteKind.WARNING, line(said))
    yield Heading(line("Next"), 2)
    if result.file.endswith(".qdstrm"):
        yield Steps((_next("turn it into a report", "QdstrmImporter", "-i", result.file),))
        return
    yield Steps(
        (
            _next("look at the timeline", "nsys-ui", result.file),
            _next("sum it up in tables", "nsys", "stats", result.file),
        )
    )


def _next(do: str, *argv: str) -> Step:
    return Step(do, shlex.join(argv), argv=argv)


def _facts(plan: CapturePlan) -> tuple[tuple[str, Line], ...]:
    return (
        ("target", line(code(plan.target.name))),
        ("session", line(code(plan.session), f" on {plan.host}, by {plan.route}")),
        ("profiler", line(f"{plan.profiler} {plan.version}".strip())),
    )


def _step(step: CaptureStep) -> Bullet:
    under = []
    if step.argv:
        under.append(Bullet(line(code(shlex.join(step.argv)))))
    if step.undo:
        under.append(Bullet(line(muted("taken back by "), code(shlex.join(step.undo)))))
    return Bullet(line(step.does), tuple(under))
