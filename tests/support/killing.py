"""Ending a process as ``kill -9`` does, at one step of an answer.

Runs inside the process that is to end: the step, a method, is wrapped, and ends the process just
before or just after the first call that does something.
"""

from __future__ import annotations

import os
import signal
from importlib import import_module
from typing import Any


def kill_at(step: str, moment: str) -> None:
    """Wrap ``module:Class.method``; ``moment`` is ``before`` or ``after``."""
    module, _, path = step.partition(":")
    owner, _, name = path.partition(".")
    holder = getattr(import_module(module), owner)
    original = getattr(holder, name)

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = await original(*args, **kwargs)
        if done is not None or name in _SILENT:  # a claim that finds nothing is no step
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(holder, name, wrapped)


# These return nothing although they have done something.
_SILENT = frozenset({"mark_sent", "update", "_work"})
