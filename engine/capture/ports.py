"""What a capture needs from outside: a journal, and a way to run commands on the target.

Both are tiny on purpose: a store implements `Journal`, a batch system or a cluster API can
implement `Executor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol


class Phase(StrEnum):
    """What is written about a step: ``begin`` and ``undo`` before it happens, the rest after.

    refused: the command ended and said no, so nothing of the step is there to be undone.
    failed: how it ended is not known (time-out, connection cut), so it has to be undone.
    """

    BEGIN = "begin"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    UNDO = "undo"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: a step's id, what is to happen or has, and JSON-able facts."""

    step: str
    phase: Phase
    detail: Mapping[str, Any] = field(default_factory=dict)


class Journal(Protocol):
    """Where the steps of one capture are written down, in order, so that a crash loses none."""

    async def append(self, entry: Entry) -> None:
        """Keep the entry; when this returns it must survive a crash."""
        ...


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended: exit status (127: not found), and the start of what it wrote."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The last line that it wrote, errors first; empty if there is none."""
        lines = [line.strip() for text in (self.out, self.err) for line in text.splitlines()]
        return next((line for line in reversed(lines) if line), "")


class Executor(Protocol):
    """Runs commands on one machine, as argument lists; no shell ever sees text from outside.

    Attributes:
        host: the machine's name, for messages.
        route: how it is reached: ``local``, ``ssh``.
        through: what is put before a command to run it there; empty if nothing is.
    """

    @property
    def host(self) -> str: ...  # noqa: D102 - see above

    @property
    def route(self) -> str: ...  # noqa: D102

    @property
    def through(self) -> tuple[str, ...]: ...  # noqa: D102

    async def run(self, argv: tuple[str, ...], *, timeout_s: float) -> Completed:
        """Run a command and return how it ended, whatever its status.

        Raises:
            UnreachableError: the machine cannot be reached, or the command did not end in time.
        """
        ...

    async def fetch(
        self, argv: tuple[str, ...], destination: Path, *, max_bytes: int, timeout_s: float
    ) -> int:
        """Run a command that writes a file to its output; keep it and return its size (bytes).

        The destination is replaced if it exists.

        Raises:
            UnreachableError: the machine cannot be reached, or the command did not end in time.
            CaptureError: the command failed, wrote too much, or the file cannot be written here.
        """
        ...
