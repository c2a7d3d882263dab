"""How ranks and operations are written in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.traces.flightrecorder.dump import Op

_SHOWN: Final = 12


def operation(op: Op) -> str:
    """Return ``all_reduce`` for ``nccl:all_reduce``."""
    return op.name.split(":")[-1]


def called_in(op: Op) -> str:
    """Return ``, called in train_step (train.py:88)``, nothing if that is not known."""
    return f", called in {op.where}" if op.where else ""


def ranks(numbers: Sequence[int]) -> str:
    """Return ``rank 3`` or ``ranks 0-5, 7``."""
    runs: list[list[int]] = []
    for rank in numbers:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    hidden = len(numbers) - sum(b - a + 1 for a, b in runs[:_SHOWN])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:_SHOWN]]
    more = f" and {hidden} more" if hidden else ""
    return f"rank{'s' if len(numbers) != 1 else ''} {', '.join(shown)}{more}"


def act(numbers: Sequence[int], verb: str) -> str:
    """Return ``rank 3 waits`` or ``ranks 0-5 wait``."""
    return f"{ranks(numbers)} {verb}{'s' if len(numbers) == 1 else ''}"


def sentence(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
