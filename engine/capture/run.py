"""Planning a capture, running it, and finishing or undoing one that was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.capture.errors import CaptureError
from engine.capture.executors import executor_for
from engine.capture.executors.files import free_bytes, no_room
from engine.capture.patience import finish
from engine.capture.plan import CapturePlan, CaptureRequest, CaptureResult
from engine.capture.ports import Entry, Executor, Journal, Phase
from engine.capture.profilers import profiler_named
from engine.capture.settings import CaptureSettings, Via
from engine.capture.steps import Steps
from engine.capture.undo import undo
from engine.errors import UsageError
from engine.units import duration

SHORTEST_S = 0.1


async def plan(
    request: CaptureRequest, settings: CaptureSettings, executor: Executor | None = None
) -> CapturePlan:
    """Look at the target and say what a capture would do; nothing is changed there.

    Args:
        request: what is asked for.
        settings: the site's settings.
        executor: reaches the target; None: the one that the settings choose for its host.

    Raises:
        UsageError: no such profiler, a duration out of range, or no usable host name.
        CaptureError: the target is not ready (``not_armed``: no program there runs under the
            profiler; the hint says how to start one), or there is no room for the file.
        UnreachableError: the target's machine cannot be reached.
    """
    profiler = profiler_named(request.profiler)
    if not SHORTEST_S <= request.duration_s <= settings.max_duration_s:
        said = f"cannot record for {duration(request.duration_s)}"
        raise UsageError(said, hint=f"give at most {duration(settings.max_duration_s)}")
    reached = executor or executor_for(request.target.host or "", settings)
    free = await asyncio.to_thread(free_bytes, settings.folder)
    if free < settings.max_file_bytes:
        raise no_room("here", settings.folder, free, settings.max_file_bytes)
    return await profiler.plan(request, settings, reached)


def reach(plan: CapturePlan, settings: CaptureSettings) -> Executor:
    """Return the executor by the route that the plan says.

    Raises:
        UsageError: the host name is not usable.
    """
    return executor_for(plan.host, replace(settings, via=Via(plan.route)))


async def run(plan: CapturePlan, executor: Executor, journal: Journal) -> CaptureResult:
    """Run a plan; whatever goes wrong, or if this is cancelled, what was begun is undone first.

    Args:
        plan: what to do.
        executor: reaches the target.
        journal: is told of every step before it happens.

    Raises:
        CaptureError: the capture failed; if something could not be undone, that is said too.
        UnreachableError: the target's machine cannot be reached.
    """
    steps = Steps(plan, executor, journal)
    try:
        return await profiler_named(plan.profiler).record(plan, steps)
    except CaptureError as error:
        left = await finish(undo(plan, steps.entries, executor, journal))
        if left:
            raise _left_over(error, left) from error
        raise
    except (Exception, asyncio.CancelledError):
        await finish(undo(plan, steps.entries, executor, journal))
        raise


async def recover(
    plan: CapturePlan, entries: Iterable[Entry], executor: Executor, journal: Journal
) -> CaptureResult | None:
    """Finish or undo a capture whose process died; safe to call again.

    Returns:
        The result if the trace had already come over, None if the capture was undone.

    Raises:
        CaptureError: something could not be undone; call again later.
    """
    known = tuple(entries)
    left = await finish(undo(plan, known, executor, journal))
    if left:
        raise left[0]
    return _came_over(known)


def _left_over(error: CaptureError, left: Iterable[CaptureError]) -> CaptureError:
    said = "; ".join((error.one_line(), *(one.message for one in left)))
    hint = next((one.hint for one in left if one.hint), "")
    return type(error)(said, hint=hint, code=error.code)


def _came_over(entries: Iterable[Entry]) -> CaptureResult | None:
    seconds = 0.0
    for entry in entries:
        if entry.phase is not Phase.DONE:
            continue
        seconds = float(entry.detail.get("seconds", seconds))
        if "size_bytes" in entry.detail and Path(entry.detail["file"]).is_file():
            size = int(entry.detail["size_bytes"])
            return CaptureResult(str(entry.detail["file"]), size, seconds, ("finished later",))
    return None
