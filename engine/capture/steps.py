"""Doing the steps of a plan, each written to the journal before it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.capture.errors import CaptureError
from engine.capture.patience import finish
from engine.capture.plan import CapturePlan, CaptureStep
from engine.capture.ports import Completed, Entry, Executor, Journal, Phase

Accept = Callable[[Completed], None]


class Steps:
    """The steps of one plan, for a profiler to do by name.

    A step that has to be undone, or that settles one, is never cut off in the middle: if the
    capture is cancelled meanwhile, it ends first (its time-out bounds that).

    Attributes:
        plan: what is done; nothing else is.
        entries: what was written to the journal, in order.
        log: what happened that is worth telling; profilers add to it.
    """

    def __init__(self, plan: CapturePlan, executor: Executor, journal: Journal) -> None:
        self.plan = plan
        self.entries: list[Entry] = []
        self.log: list[str] = []
        self._executor = executor
        self._journal = journal

    async def do(self, name: str, accept: Accept | None = None) -> Completed:
        """Run the command of a step.

        Args:
            name: the step's id.
            accept: raises `CaptureError` if how the command ended is not good; the default wants
                status 0.

        Raises:
            CaptureError: the command failed, or its machine cannot be reached.
        """
        step = self.plan.step(name)
        work = self._command(step, accept or self._succeeded(step))
        return await (finish(work) if step.undo or step.settles else work)

    async def wait(self, name: str, seconds: float) -> float:
        """Let time pass and return how much did (s)."""
        clock = asyncio.get_running_loop().time
        await self._write(name, Phase.BEGIN, {"seconds": seconds})
        begun = clock()
        await asyncio.sleep(seconds)
        passed = clock() - begun
        await self._write(name, Phase.DONE, {"seconds": round(passed, 3)})
        return passed

    async def fetch(self, name: str, destination: Path, size: int) -> None:
        """Bring a file here by the command of a step.

        Raises:
            CaptureError: it does not come, or is not ``size`` bytes long.
        """
        step = self.plan.step(name)
        argv = step.argv or ()
        await self._write(name, Phase.BEGIN, {"argv": list(argv), "file": str(destination)})
        came = await self._executor.fetch(
            argv, destination, max_bytes=self.plan.max_file_bytes, timeout_s=step.timeout_s
        )
        if came != size:
            await asyncio.to_thread(destination.unlink, missing_ok=True)
            said = f"{came} bytes came from {self.plan.host} for a file of {size}"
            raise CaptureError(said, hint="does a login shell there print something?")
        await self._write(name, Phase.DONE, {"file": str(destination), "size_bytes": size})

    async def tidy(self, argv: tuple[str, ...], *, timeout_s: float) -> None:
        """Remove what a tool left behind that could not be known when the plan was made."""
        await self._write("tidy", Phase.BEGIN, {"argv": list(argv)})
        await self._executor.run(argv, timeout_s=timeout_s)
        await self._write("tidy", Phase.DONE, {})

    async def _command(self, step: CaptureStep, accept: Accept) -> Completed:
        argv = step.argv or ()
        await self._write(step.id, Phase.BEGIN, {"argv": list(argv)})
        ended = await self._executor.run(argv, timeout_s=step.timeout_s)
        facts = {"status": ended.status, "said": ended.said}
        try:
            accept(ended)
        except CaptureError:
            await self._write(step.id, Phase.REFUSED, facts)
            raise
        await self._write(step.id, Phase.DONE, facts)
        return ended

    async def _write(self, step: str, phase: Phase, detail: Mapping[str, Any]) -> None:
        entry = Entry(step, phase, detail)
        await self._journal.append(entry)
        self.entries.append(entry)

    def _succeeded(self, step: CaptureStep) -> Accept:
        def accept(ended: Completed) -> None:
            if ended.status != 0:
                reason = ended.said or f"exit status {ended.status}"
                raise CaptureError(f"could not {step.does} on {self.plan.host}: {reason}")

        return accept
