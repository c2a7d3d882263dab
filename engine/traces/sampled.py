"""Rows kept by key in bounded memory: all of them, or every second, fourth … by a hash of the key.

Two tables sample the same keys, so that rows that belong together are kept together. A key below 1
is no key; where all rows have the same, it says nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.traces.intervals import Ints

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: 2^64 over the golden ratio
_SHIFT = np.uint64(40)
_FULL = (1 << 24) - 1  # the bits that the shift leaves
_PARTS = 64


class SampledRows:
    """Columns of int64 under an int64 key, at most ``limit`` rows.

    Attributes:
        mask: a row is kept if its key's hash has none of these bits; 0 keeps every row.
    """

    def __init__(self, columns: int, limit: int) -> None:
        self._limit = limit
        self._parts: list[tuple[Ints, ...]] = []
        self._columns = columns
        self._count = 0
        self.mask = 0

    def add(self, keys: Ints, *columns: Ints) -> None:
        """Add rows; later ones of the same key come after earlier ones."""
        kept = keys > 0
        if self.mask:
            kept &= _kept(keys, self.mask)
        if not bool(kept.all()):
            keys, columns = keys[kept], tuple(c[kept] for c in columns)
        if not keys.size:
            return
        self._parts.append((keys, *columns))
        self._count += keys.size
        while self._count > self._limit and self.mask < _FULL:
            self.mask = 2 * self.mask + 1
            self._parts = [_thinned(self._joined(), self.mask)]
            self._count = self._parts[0][0].size
        if self._count > self._limit:  # keys that hash alike
            self._parts = [tuple(column[: self._limit] for column in self._joined())]
            self._count = self._limit
        if len(self._parts) >= _PARTS:
            self._joined()

    def rows(self, mask: int | None = None) -> tuple[Ints, ...]:
        """Return keys and columns; ``mask`` thins them to what another table kept."""
        found = self._joined()
        keys = found[0]
        if keys.size > 1 and bool((keys == keys[0]).all()):
            return tuple(column[:0] for column in found)
        return _thinned(found, mask) if mask else found

    def _joined(self) -> tuple[Ints, ...]:
        if not self._parts:
            return tuple(np.empty(0, dtype=np.int64) for _ in range(self._columns + 1))
        if len(self._parts) > 1:
            joined = tuple(np.concatenate(column) for column in zip(*self._parts, strict=True))
            self._parts = [joined]
        return self._parts[0]


def positions(keys: Ints, wanted: Ints) -> Ints:
    """Return where each wanted key stands in sorted keys, or -1."""
    if not keys.size:
        return np.full(wanted.size, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    found: Ints = np.where(keys[at] == wanted, at, -1)
    return found


def _thinned(rows: tuple[Ints, ...], mask: int) -> tuple[Ints, ...]:
    kept = _kept(rows[0], mask)
    return tuple(column[kept] for column in rows)


def _kept(keys: Ints, mask: int) -> npt.NDArray[np.bool_]:
    hashed = (keys.astype(np.uint64) * _FACTOR) >> _SHIFT
    found: npt.NDArray[np.bool_] = (hashed & np.uint64(mask)) == 0
    return found
