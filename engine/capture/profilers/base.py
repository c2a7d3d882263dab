"""What a profiler is to a capture."""

from __future__ import annotations

from typing import Protocol

from engine.capture.plan import CapturePlan, CaptureRequest, CaptureResult, CaptureStep
from engine.capture.ports import Executor
from engine.capture.settings import CaptureSettings
from engine.capture.steps import Steps


class Profiler(Protocol):
    """Knows one tool: what it needs, what to run, and how to read what it says."""

    async def plan(
        self, request: CaptureRequest, settings: CaptureSettings, executor: Executor
    ) -> CapturePlan:
        """Look at the target and return the plan; nothing is changed there.

        Raises:
            CaptureError: a capture is not possible there now; the hint says what would make it so.
        """
        ...

    async def record(self, plan: CapturePlan, steps: Steps) -> CaptureResult:
        """Do the steps of the plan.

        Raises:
            CaptureError: a step failed; the caller undoes what was begun.
        """
        ...

    async def undo(self, plan: CapturePlan, step: CaptureStep, executor: Executor) -> None:
        """Take a step back; that there is nothing to take back is no error.

        Raises:
            CaptureError: it could not be taken back.
        """
        ...
