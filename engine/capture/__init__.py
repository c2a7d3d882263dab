"""Captures: plan a profile of a running program, run it, bring the file.

A plan says everything that will be run before anything is; every step is journalled before it
happens; whatever goes wrong, what was begun is undone. Nothing here knows who asks or who approves.
"""

from engine.capture.errors import CaptureError, UnreachableError
from engine.capture.executors import LocalExecutor, SshExecutor, executor_for
from engine.capture.plan import (
    CapturePlan,
    CaptureRequest,
    CaptureResult,
    CaptureRun,
    CaptureStep,
    plan_from_json,
)
from engine.capture.ports import Completed, Entry, Executor, Journal, Phase
from engine.capture.run import plan, reach, recover, run
from engine.capture.settings import CaptureSettings, SshSettings, Via
from engine.capture.undo import pending

__all__ = [
    "CaptureError",
    "CapturePlan",
    "CaptureRequest",
    "CaptureResult",
    "CaptureRun",
    "CaptureSettings",
    "CaptureStep",
    "Completed",
    "Entry",
    "Executor",
    "Journal",
    "LocalExecutor",
    "Phase",
    "SshExecutor",
    "SshSettings",
    "UnreachableError",
    "Via",
    "executor_for",
    "pending",
    "plan",
    "plan_from_json",
    "reach",
    "recover",
    "run",
]
