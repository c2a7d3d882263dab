"""Readings of a GPU at several moments: loops of ``--query-gpu`` and ``dmon``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_CSV: Final = re.compile(
    r"^([0-9]{4})/([0-9]{2})/([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?$"
)
_CLOCK: Final = re.compile(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})$")
_DATE: Final = re.compile(r"^([0-9]{4})([0-9]{2})([0-9]{2})$")
# Any day will do where the output has only the time of day.
_SOME_DAY: Final = ("2000", "01", "01")


@dataclass(frozen=True, slots=True)
class Moment:
    """Numbers (as in `GpuState.numbers`) and the clock event mask at one time (s)."""

    at: float
    numbers: dict[str, float]
    mask: int | None = None


def csv_time(text: str) -> float | None:
    """Return the seconds of a ``timestamp`` cell (local time, taken as UTC), None if it is none."""
    found = _CSV.match(text)
    if found is None:
        return None
    fraction = float(f"0.{found[7]}") if found[7] else 0.0
    whole = _seconds(*found.groups()[:6])
    return None if whole is None else whole + fraction


def monitor_time(date: str | None, clock: str) -> float | None:
    """Return the seconds of the Date and Time columns of ``dmon -o DT``."""
    time = _CLOCK.match(clock)
    day = _DATE.match(date) if date is not None else None
    if time is None or (date is not None and day is None):
        return None
    return _seconds(*(day.groups() if day else _SOME_DAY), *time.groups())


def _seconds(*parts: str) -> float | None:
    try:
        year, month, day, hour, minute, second = map(int, parts)
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
