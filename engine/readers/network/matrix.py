"""Matrices of copy bandwidth between devices: cells, and which device or pair stands out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.readers.quantities import decimal, median

_COLUMNS: Final = re.compile(
    r"^\s{0,12}(?:D\\D|[GC]PU)?\s{1,12}((?:[0-9]{1,3}\s{1,12}){0,127}[0-9]{1,3})\s*$"
)
_ROW: Final = re.compile(r"^\s{1,12}([0-9]{1,3})\s{1,12}(\S{1,16}(?:\s{1,16}\S{1,16}){0,127})\s*$")
# A cell this far below the median is named: ours; repeated runs on sound links differ by a few %.
LOW: Final = 0.75
# PCIe Gen5 x16 carries 63 GB/s one way: what is faster goes over NVLink.
NVLINK_GBS: Final = 70.0


@dataclass(slots=True)
class Matrix:
    """One matrix: ``cells[row, column]`` in the unit of the table, usually GB/s."""

    line: int
    title: str
    columns: tuple[int, ...] = ()
    cells: dict[tuple[int, int], float] = field(default_factory=dict)

    MAX_CELLS = 16_384

    def header(self, text: str) -> bool:
        """Take the line of column numbers."""
        found = _COLUMNS.match(text.expandtabs())
        if found is None or self.columns:
            return False
        columns = tuple(int(c) for c in found[1].split())
        if columns != tuple(range(columns[0], columns[0] + len(columns))):
            return False
        self.columns = columns
        return True

    def row(self, text: str) -> bool:
        """Take a row under the header."""
        found = _ROW.match(text.expandtabs())
        if found is None or not self.columns:
            return False
        cells = found[2].split()
        if len(cells) != len(self.columns):
            return False
        for column, cell in zip(self.columns, cells, strict=True):
            value = decimal(cell)
            if value is not None and len(self.cells) < self.MAX_CELLS:
                self.cells[int(found[1]), column] = value
        return True

    @property
    def pairs(self) -> Mapping[tuple[int, int], float]:
        """The cells between different devices."""
        return {pair: v for pair, v in self.cells.items() if pair[0] != pair[1]}


def low_pairs(matrix: Matrix) -> tuple[dict[tuple[int, int], float], float]:
    """Return the pairs far below the others, and what the others have (a median).

    One bad device of four spoils half of the pairs: where the median shows nothing, the pairs are
    held against the faster half, and count if one device is in all of them.
    """
    pairs = matrix.pairs
    middle = median(list(pairs.values()))
    low = _below(pairs, middle)
    if low or not pairs:
        return low, middle
    upper = median([v for v in pairs.values() if v >= middle])
    low = _below(pairs, upper)
    return (low, upper) if shared_by(low, pairs) is not None else ({}, middle)


def _below(
    pairs: Mapping[tuple[int, int], float], reference: float
) -> dict[tuple[int, int], float]:
    return {pair: v for pair, v in sorted(pairs.items()) if v < LOW * reference}


def shared_by(
    pairs: Mapping[tuple[int, int], float], every: Mapping[tuple[int, int], float]
) -> int | None:
    """Return the device that is in all of some pairs and in no other, None if there is none."""
    if not pairs:
        return None
    common = set.intersection(*(set(pair) for pair in pairs))
    for device in sorted(common):
        of_device = {pair for pair in every if device in pair}
        if len(of_device) > 1 and len(pairs) >= len(of_device) / 2:
            return device
    return None
