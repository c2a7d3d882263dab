"""Columns of Python values from JSON, gathered until numpy pays, and their times as integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.traces.intervals import Ints

_ROWS = 8_192
# 146 years: what is later is no time.
_MAX_US = 4.6e15
_NS_PER_US = 1_000


class Rows:
    """Columns of one kind of event; a full set goes to ``flush``."""

    def __init__(self, columns: int, flush: Callable[[list[list[Any]]], None]) -> None:
        self._columns: list[list[Any]] = [[] for _ in range(columns)]
        self._flush = flush

    def extend(self, *values: list[Any]) -> None:
        """Add some rows, a list for each column."""
        for column, more in zip(self._columns, values, strict=True):
            column.extend(more)
        if len(self._columns[0]) >= _ROWS:
            self.flush()

    def append(self, *values: Any) -> None:
        """Add one row."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        if len(self._columns[0]) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand over what is there."""
        if self._columns[0]:
            columns, self._columns = self._columns, [[] for _ in self._columns]
            self._flush(columns)


class Clock:
    """Turns times in microseconds (numbers, or text) into nanoseconds since the first of them.

    Subtracting first keeps the nanoseconds of times since 1970 that have decimals.
    """

    def __init__(self) -> None:
        self._base: float | None = None

    def absolute_ns(self, ns: int) -> int:
        """Return a time as the trace gave it (ns)."""
        return ns + round((self._base or 0.0) * _NS_PER_US)

    def times(
        self, ts: list[Any], dur: list[Any]
    ) -> tuple[tuple[Ints, Ints], npt.NDArray[np.bool_] | None]:
        """Return starts and ends (ns) of the rows that have sensible times, and which those are.

        The second is None if all rows have.
        """
        begin, length = _floats(ts), _floats(dur)
        with np.errstate(invalid="ignore"):
            kept = (begin >= 0) & (begin < _MAX_US) & (length >= 0) & (length < _MAX_US)
        every = bool(kept.all())
        if not every:
            begin, length = begin[kept], length[kept]
        if begin.size and self._base is None:
            self._base = float(begin[0])
        starts = np.rint((begin - (self._base or 0.0)) * _NS_PER_US).astype(np.int64)
        ends = starts + np.rint(length * _NS_PER_US).astype(np.int64)
        return (starts, ends), None if every else kept


def _floats(values: list[Any]) -> npt.NDArray[np.float64]:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.array([_float(value) for value in values], dtype=np.float64)
    return found if found.ndim == 1 else np.full(len(values), np.nan)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return float("nan")
    if isinstance(value, str) and len(value) > 32:
        return float("nan")
    try:
        return float(value)
    except (ValueError, OverflowError):
        return float("nan")
