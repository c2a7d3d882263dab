"""Whether the patterns of causes can hold, for all causes and all entities in a few numpy calls.

The same three-valued logic as the inference, without what is derived from other causes: such
references count as met. It serves coverage ("could be checked, could not be seen") and tells which
entities need no inference at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from engine.catalogue.types import CauseRule, Pattern
from engine.samples import Ints

Trits = npt.NDArray[np.int8]


class States:
    """The patterns of all causes, laid out as rows of one matrix of truths.

    Row k of the matrix is symptom k; two more rows are constant: true (what a pattern without an
    ``any`` needs) and false (what one without ``none`` or ``unless`` needs).
    """

    def __init__(self, causes: Mapping[str, CauseRule], symptoms: Iterable[str]) -> None:
        self._symptoms = tuple(symptoms)
        rows = {name: k for k, name in enumerate(self._symptoms)}
        true, false = len(rows), len(rows) + 1
        patterns = [p for rule in causes.values() for p in rule.patterns]
        self._causes = tuple(causes)
        self._first = _starts([len(rule.patterns) for rule in causes.values()])
        self._all = _Part([[rows.get(s, true) for s in p.all] or [true] for p in patterns])
        self._any = _Part([_any_rows(p, rows, true) for p in patterns])
        self._none = _Part([[rows.get(s, false) for s in p.none] or [false] for p in patterns])
        self._unless = _Part([[rows.get(s, false) for s in p.unless] or [false] for p in patterns])

    def of(self, truth: Mapping[str, Trits]) -> dict[str, Trits]:
        """Return for every cause 1 (its patterns hold), 0 (cannot tell) or -1, per entity."""
        n = len(next(iter(truth.values())))
        ones = np.ones(n, dtype=np.int8)
        rows = [*(truth[s] for s in self._symptoms), ones, -ones]
        matrix = np.concatenate(rows).reshape(len(rows), n)
        state = self._all.reduce(np.minimum, matrix)
        np.minimum(state, self._any.reduce(np.maximum, matrix), out=state)
        np.minimum(state, -self._none.reduce(np.maximum, matrix), out=state)
        state[self._unless.reduce(np.maximum, matrix) == 1] = -1
        best = np.maximum.reduceat(state, self._first, axis=0)
        return dict(zip(self._causes, best, strict=True))


class _Part:
    """One list of row numbers per pattern, none empty."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self._rows = np.array([k for some in rows for k in some], dtype=np.int64)
        self._first = _starts([len(some) for some in rows])

    def reduce(self, ufunc: np.ufunc, matrix: Trits) -> Trits:
        reduced: Trits = ufunc.reduceat(matrix[self._rows], self._first, axis=0)
        return reduced


def _any_rows(pattern: Pattern, rows: Mapping[str, int], true: int) -> list[int]:
    if any(s not in rows for s in pattern.any):
        return [true]
    return [rows[s] for s in pattern.any] or [true]


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
