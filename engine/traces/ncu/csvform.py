"""Nsight Compute's CSV (``--csv``): one row for each metric of a launch, or one for each launch."""

from __future__ import annotations

import csv
from typing import Final

from engine.traces.ncu.numbers import number
from engine.traces.ncu.profile import Profile

HEAD: Final = b'"Kernel Name"'
_MAX_COLUMNS: Final = 4_096
_FIXED: Final = frozenset(
    (
        "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
        "Stream", "Block Size", "Grid Size", "Device", "CC", "Section Name", "Invocations",
        "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
        "Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg", "thread Domain",
    )
)  # fmt: skip


class CsvForm:
    """One table of ncu's CSV: its header, and the rows that follow."""

    def __init__(self, header: list[str]) -> None:
        self._header = header
        self._column = {name: index for index, name in enumerate(header)}
        self._long = "Metric Name" in self._column
        self._value = next(
            (self._column[n] for n in ("Metric Value", "Average") if n in self._column), None
        )
        self._units: list[str] | None = None

    @classmethod
    def of(cls, text: str) -> CsvForm | None:
        """Return a table if a line is the header of one."""
        header = cells(text)
        if not header or "Kernel Name" not in header or "ID" not in header:
            return None
        return cls(header) if len(header) >= 4 else None

    def row(self, text: str, number_: int, profile: Profile) -> bool:
        """Take a row; return whether it is one of this table."""
        row = cells(text)
        if row is None or len(row) != len(self._header):
            return False
        if not self._long and self._units is None:
            # The row below the header of the wide form holds the units.
            self._units = row
            if not row[self._column["ID"]].strip():
                return True
        name, launch = row[self._column["Kernel Name"]], row[self._column["ID"]]
        if not name.strip():
            return False
        kernel = profile.kernel(name, launch, number_)
        if kernel is None:
            return True
        kernel.launched(self._cell(row, "Grid Size"), self._cell(row, "Block Size"))
        if not self._long:
            units = self._units or []
            for index, column in enumerate(self._header):
                value = None if column in _FIXED else number(row[index])
                if value is not None:
                    unit = units[index] if index < len(units) else ""
                    profile.put(kernel, launch, column, unit, value)
            return True
        value = None if self._value is None else number(row[self._value])
        if value is not None:
            times = number(self._cell(row, "Invocations")) or 1.0
            kernel.invocations = max(kernel.invocations, times)
            profile.put(
                kernel,
                launch,
                self._cell(row, "Metric Name"),
                self._cell(row, "Metric Unit"),
                value,
                min(times, 1e9),
            )
        return True

    def _cell(self, row: list[str], column: str) -> str:
        index = self._column.get(column)
        return "" if index is None else row[index]


def cells(text: str) -> list[str] | None:
    """Return the cells of one line of CSV; None if it is none."""
    try:
        row = next(csv.reader([text], strict=True), None)
    except csv.Error:
        return None
    return row if row and 2 <= len(row) <= _MAX_COLUMNS else None
