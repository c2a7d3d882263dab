"""Rows of a table as nccl-tests prints them, from the first release to the newest, and rccl-tests.

A row is size (B), count, type, redop, root (not in old releases), then for out-of-place and
in-place each time (us), algbw and busbw (GB/s, 10^9 bytes) and ``#wrong``. With ``-I 1`` four
columns about single iterations follow each placement, with ``-S 1`` a time stamp ends the row.
Formats: NVIDIA/nccl-tests 2.19.6 src/util.cu, v2.0.0 src/common.cu; ROCm/rccl-tests src/common.cu.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

TYPES = (
    *("int8", "char", "uint8", "int32", "int", "uint32", "int64", "uint64"),
    *("half", "float", "double", "bfloat16", "float16", "float32", "float64", "bf16", "fp16"),
    *("fp32", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"),
)
"""Data types as any release spells them."""
REDOPS = frozenset({"sum", "prod", "max", "min", "avg", "mulsum", "none", "mean"})

_ROW = re.compile(
    r"(?:^|[\s>:|\]#])(\d{1,20})[ \t]+(\d{1,20})[ \t]+("
    + "|".join(sorted(TYPES, key=len, reverse=True))
    + r")((?:[ \t]+[^\s]{1,24}){3,32})[ \t]*$"
)
_NUMBER = re.compile(r"^[-+]?\d{1,20}(?:\.\d{0,9})?(?:[eE][-+]?\d{1,3})?$", re.ASCII)
_ROOT = re.compile(r"^(?:-1|\d{1,6})$", re.ASCII)
_STAMP = re.compile(r"^\d{4}-\d{2}-\d{2}$", re.ASCII)
_HEADER = re.compile(r"\b(?:time|cputime)\b.{0,40}\balgbw\b.{0,40}\bbusbw\b")
_CELL = re.compile(r"[\s|,]{1,200}")
# "algbw 268 busbw 469" is a sentence.
_FIGURE = re.compile(r"\b(?:time|algbw|busbw)\b[ \t:=]{0,4}\d")

# Columns of a placement: time, algbw, busbw; #wrong; i_min, i_max, i_p99, i_cv%.
_BARE, _CHECKED, _ITERATIONS = 3, 4, 8
# Printed figures have two to three significant digits; sizes of uneven parts are not exact.
_FIT = 0.05


@dataclass(frozen=True, slots=True)
class Layout:
    """What the header says about the columns.

    Attributes:
        root: there is a root column.
        deltas: the last column is the largest deviation (``error``), not a count (``#wrong``).
        placements: blocks of columns in a row, 1 or 2.
    """

    root: bool = True
    deltas: bool = False
    placements: int = 2


@dataclass(frozen=True, slots=True)
class Placement:
    """One block of figures; bandwidths in GB/s (10^9 bytes), None where a cell holds no number.

    Attributes:
        wrong: elements that are wrong, None where nothing was checked (``N/A``).
        delta: largest deviation in old tables, which print it where newer ones count.
        flagged: rccl-tests marks the deviation with an asterisk: over its threshold.
        slowest_us: slowest single iteration.
        cv_percent: coefficient of variation of single iterations.
    """

    time_us: float
    algbw: float
    busbw: float
    wrong: int | None = None
    delta: float | None = None
    flagged: bool = False
    slowest_us: float | None = None
    cv_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row: sizes in bytes, figures by placement (out-of-place first if both were printed)."""

    line: int
    size: int
    count: int
    type: str
    redop: str
    root: int | None
    placements: tuple[Placement, ...]

    @property
    def best(self) -> Placement:
        """The placement that the verdict is on: the first that moved data."""
        return next((p for p in self.placements if p.busbw > 0), self.placements[0])


def number(text: str) -> float | None:
    """Return a printed number, None for ``N/A``, NaN and what is no number."""
    if not _NUMBER.match(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def parse_header(text: str) -> Layout | None:
    """Return the layout that a line of column names stands for; None if it is none."""
    if not _HEADER.search(text) or _FIGURE.search(text):
        return None
    words = _CELL.split(text.strip())
    return Layout(
        root="root" in words,
        deltas="error" in words or "res" in words,
        placements=min(2, words.count("busbw")),
    )


def parse_row(line: int, text: str, layout: Layout | None) -> Row | None:
    """Return the row in a line; None if there is none.

    Prefixes of launchers (``[1,0]<stdout>:``, ``0: ``) are skipped.
    """
    found = _ROW.search(text)
    if found is None:
        return None
    size, count = int(found[1]), int(found[2])
    words = found[4].split()
    if len(words) > 2 and _STAMP.match(words[-2]):
        del words[-2:]
    redop = words.pop(0) if words[0] in REDOPS else ""
    root, cells = _root(words, size, layout)
    deltas = layout is not None and layout.deltas
    placements = _placements(cells, deltas=deltas)
    if not placements:
        return None
    return Row(line, size, count, found[3], redop, root, placements)


def _root(words: list[str], size: int, layout: Layout | None) -> tuple[int | None, list[str]]:
    """Split off the root column where there is one.

    A pasted row may lack its header, and a large time is printed without decimals: the reading in
    which algbw is size / time wins.
    """
    could = bool(_ROOT.match(words[0])) and len(words) - 1 >= _BARE
    with_root = could and (layout is None or layout.root)
    if could and layout is None:
        if words[0] == "-1" or _fits(words[1:], size):
            with_root = True
        else:
            with_root = not _fits(words, size) and len(words) % _CHECKED == 1
    if with_root:
        return int(words[0]), words[1:]
    return None, words


def _fits(cells: list[str], size: int) -> bool:
    time, algbw = number(cells[0]), number(cells[1])
    if not time or algbw is None:
        return False
    wanted = size / time / 1e3
    return abs(algbw - wanted) <= max(0.02, _FIT * wanted)


def _placements(cells: list[str], *, deltas: bool) -> tuple[Placement, ...]:
    total = len(cells)
    if total in {_ITERATIONS, 2 * _ITERATIONS} and not _two_blocks(cells):
        width = _ITERATIONS
    elif total in {_BARE, 2 * _BARE}:
        width = _BARE
    elif total in {_CHECKED, 2 * _CHECKED}:
        width = _CHECKED
    else:
        return ()
    blocks = [cells[at : at + width] for at in range(0, total, width)]
    made = [_placement(block, deltas=deltas) for block in blocks]
    return tuple(p for p in made if p is not None)


def _two_blocks(cells: list[str]) -> bool:
    """Tell two plain placements from one with figures of single iterations: both have 8 cells.

    In the second reading cells 5 to 7 are times (minimum, maximum, 99th percentile) in order.
    """
    if len(cells) != _ITERATIONS:
        return False
    low, high, tail = (number(c) for c in cells[4:7])
    if low is None or high is None or tail is None:
        return True
    mean = number(cells[0])
    return not (low <= tail <= high and mean is not None and low <= mean * 1.5 and mean <= high)


def _placement(block: list[str], *, deltas: bool) -> Placement | None:
    time, algbw, busbw = (number(cell) for cell in block[:3])
    if time is None or algbw is None or busbw is None or min(time, algbw, busbw) < 0:
        return None
    wrong = delta = None
    flagged = False
    if len(block) > _BARE:
        cell = block[3]
        flagged = cell.endswith("*")
        checked = number(cell.rstrip("*"))
        if deltas or (checked and _is_deviation(cell, checked)):
            delta = checked
        elif checked is not None and checked >= 0:
            wrong = int(checked)
    slowest = cv = None
    if len(block) == _ITERATIONS:
        slowest, cv = number(block[5]), number(block[7])
    return Placement(time, algbw, busbw, wrong, delta, flagged, slowest, cv)


def _is_deviation(cell: str, value: float) -> bool:
    """Tell the deviation of an old table without its header from a count, which is whole.

    Deviations are printed as ``%5.0le``, counts as ``%g``: only large ones have an exponent.
    """
    return value != int(value) or ("e" in cell and value < 1e5)
