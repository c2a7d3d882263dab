"""The tables that rocprofv3 writes as CSV, told by their headers, and their rows as columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_NUMBER: Final = re.compile(r"\d{1,18}$")
_AGENT: Final = re.compile(r"(\d{1,6})$")
_DIRECTIONS: Final = {
    "HOST_TO_DEVICE": "HtoD",
    "DEVICE_TO_HOST": "DtoH",
    "DEVICE_TO_DEVICE": "DtoD",
    "HOST_TO_HOST": "HtoH",
}


class Table(StrEnum):
    """A kind of table."""

    KERNELS = "kernel_trace"
    COPIES = "memory_copy_trace"
    CALLS = "api_trace"
    STATS = "stats"
    COUNTERS = "counter_collection"


# Columns by which each table is known, in the names of rocprofv3 (ROCm 6.2 and later); `rocprof
# --stats` writes the same summary.
_KNOWN: Final = (
    (Table.COUNTERS, ("Kernel_Name", "Counter_Name", "Counter_Value")),
    (Table.KERNELS, ("Kernel_Name", "Start_Timestamp", "End_Timestamp")),
    (Table.COPIES, ("Direction", "Start_Timestamp", "End_Timestamp")),
    (Table.CALLS, ("Domain", "Function", "Start_Timestamp", "End_Timestamp")),
    (Table.STATS, ("Name", "Calls", "TotalDurationNs", "AverageNs")),
)


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one table: its kind, and where its columns stand."""

    table: Table
    columns: dict[str, int]

    @classmethod
    def of(cls, text: str) -> Header | None:
        """Return what table a line heads; None if it heads none."""
        row = cells(text)
        if row is None:
            return None
        columns = {name: index for index, name in enumerate(row)}
        for table, wanted in _KNOWN:
            if all(name in columns for name in wanted):
                return cls(table, columns)
        return None

    def cell(self, row: Sequence[str], name: str) -> str:
        """Return the cell of a column; empty if the table has no such column."""
        index = self.columns.get(name)
        return "" if index is None else row[index]


def cells(text: str) -> list[str] | None:
    """Return the cells of one line of CSV; None if it is none."""
    try:
        row = next(csv.reader([text], strict=True), None)
    except csv.Error:
        return None
    return row if row and 4 <= len(row) <= 256 else None


def whole(text: str) -> int | None:
    """Return a number of at most 18 digits, None if it is none."""
    text = text.strip()
    return int(text) if text.isascii() and _NUMBER.match(text) else None


def agent(text: str) -> int | None:
    """Return an agent's number: ``Agent 7``, ``GPU-0`` or ``8``; None for a CPU's or none."""
    if text.startswith("CPU"):
        return None
    hit = _AGENT.search(text.strip()) if text.isascii() else None
    return None if hit is None else int(hit[1])


def direction(text: str) -> str:
    """Return a copy's direction as traces name it."""
    return next((short for key, short in _DIRECTIONS.items() if text.endswith(key)), "other")
