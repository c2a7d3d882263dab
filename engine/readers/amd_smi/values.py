"""Values as the tools print them: a number with its unit, ``N/A``, or an object in JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from engine.readers.quantities import short

_NUMBER: Final = re.compile(
    r"^\s{0,8}(?P<number>-?[0-9]{1,20}(?:\.[0-9]{1,9})?)\s{0,4}"
    r"(?P<unit>°?[CcFf]|[kKmMGTP]?[Ww]|[kKMG]?[Hh]z|[MmKkGT]i?[Bb](?:ytes)?|[GM]T/s|[MGkK]b/s|%|J|uJ"
    r"|RPM|mV|V)?\s{0,8}$"
)
# The largest values of the fields' types stand for "not supported" (AMD SMI, GPU violations).
_UNSUPPORTED: Final = frozenset({2.0**64 - 1, 2.0**32 - 1, 65535.0})
_LIST: Final = 512
_SCALES: Final = {
    "mw": 0.001,
    "kw": 1000.0,
    "ghz": 1000.0,
    "khz": 0.001,
    "gb": 1024.0,
    "gib": 1024.0,
    "kb": 1 / 1024,
    "tb": 1024.0 * 1024.0,
    "mt/s": 0.001,
    "uj": 1e-6,
}


def reading(raw: object) -> float | None:
    """Return a value as a number in W, MHz, °C, %, MB, GT/s or as a count; None if there is none.

    Args:
        raw: text such as ``134 W``, a number, or ``{"value": 134, "unit": "W"}``.
    """
    if isinstance(raw, str):
        found = _NUMBER.match(raw[:64])
        if found is None:
            return None
        number = float(found["number"])
        if number in _UNSUPPORTED:
            return None
        return number * _SCALES.get((found["unit"] or "").lower(), 1.0)
    if isinstance(raw, Mapping):
        value, unit = raw.get("value"), raw.get("unit")
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        return reading(f"{value} {unit}" if isinstance(unit, str) else value)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    value = float(raw) if abs(raw) < 1e30 else None  # NaN fails the comparison as well
    return None if value is None or value in _UNSUPPORTED else value


def most(raw: object) -> float | None:
    """Return the highest value of a list (JSON, or text ``[0 %, N/A]``), or the one value."""
    if isinstance(raw, str) and raw.lstrip().startswith("["):
        parts: list[object] = list(raw.strip().strip("[]").split(",")[:_LIST])
    elif isinstance(raw, list):
        parts = raw[:_LIST]
    else:
        return reading(raw)
    return max((v for one in parts if (v := reading(_bare(one))) is not None), default=None)


def _bare(raw: object) -> object:
    return raw.strip(" '\"") if isinstance(raw, str) else raw


def word(raw: object, limit: int = 48) -> str | None:
    """Return a printed word, None for ``N/A`` and the like."""
    if not isinstance(raw, str):
        return None
    text = short(raw, limit)
    return None if not text or text.upper() in ("N/A", "NA", "NONE", "UNKNOWN") else text
