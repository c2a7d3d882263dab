"""What can be wrong with a GPU as ``nvidia-smi`` shows it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model import Severity


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that can be wrong: its cause, how bad it is, what it means, what to do."""

    id: str
    cause: str | None
    severity: Severity
    meaning: str
    action: str
    sources: tuple[str, ...] = ()
