"""One thing that is wrong with one GPU, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.readers.smi.concern import Concern
from engine.readers.smi.concerns import CONCERNS
from engine.readers.smi.state import GpuState


@dataclass(slots=True)
class Issue:
    """One concern about one GPU, with what shows it."""

    concern: Concern
    gpu: GpuState
    detail: str
    data: dict[str, Any] = field(default_factory=dict)


def issue(name: str, gpu: GpuState, detail: str, **data: Any) -> Issue:
    """Name a concern by its id; ``data`` goes into the finding."""
    return Issue(CONCERNS[name], gpu, detail, data)


def yes(gpu: GpuState, name: str) -> bool:
    """Return whether a flag of a GPU is set, in any of the forms."""
    return gpu.words.get(name, "").lower() in ("yes", "1", "true")
