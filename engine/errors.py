"""Every error that reaches a user.

GpuwhyError
├── UsageError        exit 2  wrong words, bad target, no such GPU
├── InputError        exit 2  a file or pasted text that cannot be read
├── CatalogueError    exit 2  knowledge or rules that do not load (carries every problem found)
└── SourceError       exit 3  a metrics server that cannot be reached or does not answer properly

The message is one line that says what went wrong and where; the hint says what to do about it.
Neither ever carries a secret or a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class GpuwhyError(Exception):
    """Base of all errors shown to a user.

    Attributes:
        code: stable machine name, for example ``source_unreachable``.
        message: one line: what, and where.
        hint: one line: what to do, or an empty string.
        exit_status: process exit status of the command line (contract: 2 or 3).
    """

    exit_status = 2
    default_code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        self.code = code or self.default_code
        self.message = " ".join(message.split())
        self.hint = " ".join(hint.split())
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """Return message and hint as the single line printed to stderr."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(GpuwhyError):
    """The question cannot be understood, or names something that does not exist."""

    default_code = "usage"


class InputError(GpuwhyError):
    """A file or pasted text cannot be read."""

    default_code = "unreadable_input"


class SourceError(GpuwhyError):
    """A metrics source cannot be reached, refuses, or answers with something else."""

    exit_status = 3
    default_code = "source_unreachable"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault in a YAML file, with its place (lines and columns count from 1)."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}:{self.column}: {self.message}"
        return f"{text}; {self.hint}" if self.hint else text


class CatalogueError(GpuwhyError):
    """Knowledge or rules do not load; ``problems`` lists every fault, sorted by place."""

    default_code = "catalogue"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        first = self.problems[0]
        more = len(self.problems) - 1
        text = f"{first.file}:{first.line}:{first.column}: {first.message}"
        hint = first.hint
        if more:
            hint = f"{hint} (and {more} more; run: gpuwhy rules lint)".strip()
        super().__init__(text, hint=hint)
