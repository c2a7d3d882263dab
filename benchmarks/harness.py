"""What the benchmarks share: a row of the table, runs that take turns, and the table itself."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

_HEADINGS = ("what", "measured", "floor or peer", "ratio / difference", "target", "met?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``met`` is None where there is no target."""

    what: str
    measured: str
    peer: str = ""
    difference: str = ""
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the texts of all columns."""
        met = {True: "yes", False: "NO", None: ""}[self.met]
        return (self.what, self.measured, self.peer, self.difference, self.target, met)


def timed(run: Callable[[], object]) -> float:
    """Run once and return the wall time (s)."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def medians(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Run everything once a round, in turn, and return the median time (s) of each.

    Taking turns means that whatever else the machine does meanwhile strikes all alike.
    """
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        gc.collect()
        for run, kept in zip(runs, times, strict=True):
            kept.append(timed(run))
    return [median(kept) for kept in times]


async def medians_async(rounds: int, *runs: Callable[[], Awaitable[object]]) -> list[float]:
    """Do the same as `medians` for coroutines; who goes first changes from round to round."""
    times: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        turns = list(zip(runs, times, strict=True))
        for run, kept in turns if number % 2 else reversed(turns):
            began = time.perf_counter()
            await run()
            kept.append(time.perf_counter() - began)
    return [median(kept) for kept in times]


def ms(seconds: float) -> str:
    """Return a time in milliseconds."""
    return f"{seconds * 1e3:.1f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"


def table(rows: Sequence[Row]) -> str:
    """Return the rows under their headings, columns aligned."""
    lines = [_HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADINGS))]
    rule = tuple("-" * width for width in widths)
    texts = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (lines[0], rule, *lines[1:])
    )
    return "\n".join(texts)
