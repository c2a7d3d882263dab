"""CSV of ``amd-smi`` (metric, static, monitor) and of ``rocm-smi --csv``.

A column's name is only the last key of its path. ``amd-smi static`` uses two of the names of
``amd-smi metric`` for limits: its other columns tell which it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Final

from engine.readers.amd_smi.fields import csv_path, put
from engine.readers.amd_smi.rocm import put_key
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.amd_smi.values import reading

_AMD: Final = re.compile(r"^(?:timestamp,)?gpu,[a-z][a-z0-9_]{1,80},")
_ROCM: Final = re.compile(r"^device,[A-Z]")
_CARD: Final = re.compile(r"^card(\d{1,4})$")
_STATIC: Final = frozenset({"market_name", "min_power", "slowdown_hotspot_temperature"})
_LIMITS: Final = {"max_power": "limit.max_power", "socket_power": "limit.socket_power"}


class CsvForm:
    """Reads a heading and the rows under it."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._columns: list[str] = []
        self._rocm = False

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is a heading with at least one column that is known."""
        del number
        line = text.strip()
        rocm = _ROCM.match(line) is not None
        if not rocm and not _AMD.match(line):
            return False
        columns = _cells(line)
        probe = AmdGpu(0)
        known = [c for c in columns if (put_key(probe, c, "1") if rocm else csv_path(c))]
        if known:
            self._columns, self._rocm = columns, rocm
        return bool(known)

    def take(self, number: int, text: str) -> bool:
        """Take a row."""
        line = text.strip()
        if line.startswith(("gpu,", "timestamp,gpu,", "device,")):
            return self.starts(number, text)
        cells = _cells(line)
        if len(cells) != len(self._columns):
            return False
        row = dict(zip(self._columns, cells, strict=True))
        return self._of_rocm(number, row) if self._rocm else self._of_amd(number, row)

    def _of_amd(self, number: int, row: dict[str, str]) -> bool:
        index = reading(row["gpu"])
        if index is None or not 0 <= index < 1024:
            return False
        gpu = AmdGpu(number, int(index), self._host)
        static = bool(_STATIC & row.keys())
        for column, cell in row.items():
            path = (_LIMITS.get(column) if static else None) or csv_path(column)
            if path is not None and column != "gpu":
                put(gpu, path, cell)
        self._emit(gpu)
        return True

    def _of_rocm(self, number: int, row: dict[str, str]) -> bool:
        card = _CARD.match(row["device"])
        if card is None:
            return False
        gpu = AmdGpu(number, int(card[1]), self._host)
        for column, cell in row.items():
            put_key(gpu, column, cell)
        self._emit(gpu)
        return True


def _cells(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line[:16_384]]), [])][:1_024]
    except csv.Error:
        return []
