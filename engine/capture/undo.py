"""Taking back what a capture has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.capture.errors import CaptureError
from engine.capture.executors.files import remove_partial
from engine.capture.plan import CapturePlan, CaptureStep
from engine.capture.ports import Entry, Executor, Journal, Phase
from engine.capture.profilers import profiler_named
from engine.errors import GpuwhyError


def pending(plan: CapturePlan, entries: Iterable[Entry]) -> tuple[CaptureStep, ...]:
    """Return the steps that have to be undone, last begun first."""
    steps = {step.id: step for step in plan.steps}
    begun: dict[str, CaptureStep] = {}
    for entry in entries:
        step = steps.get(entry.step)
        if step is None:
            continue
        if entry.phase is Phase.BEGIN and step.undo:
            begun[step.id] = step
        elif entry.phase in {Phase.REFUSED, Phase.UNDONE}:
            begun.pop(step.id, None)
        elif entry.phase is Phase.DONE and step.settles:
            begun.pop(step.settles, None)
    return tuple(reversed(begun.values()))


async def undo(
    plan: CapturePlan, entries: Iterable[Entry], executor: Executor, journal: Journal
) -> list[CaptureError]:
    """Undo what is pending and return what could not be undone.

    A journal that does not take an entry does not keep anything from being undone.
    """
    await asyncio.to_thread(remove_partial, Path(plan.file).parent)
    failed = []
    profiler = profiler_named(plan.profiler)
    for step in pending(plan, entries):
        await _note(journal, Entry(step.id, Phase.UNDO, {"argv": list(step.undo or ())}))
        try:
            await profiler.undo(plan, step, executor)
        except CaptureError as error:
            failed.append(error)
            await _note(journal, Entry(step.id, Phase.FAILED, {"said": error.one_line()}))
        else:
            await _note(journal, Entry(step.id, Phase.UNDONE))
    return failed


async def _note(journal: Journal, entry: Entry) -> None:
    with suppress(GpuwhyError, OSError):
        await journal.append(entry)
