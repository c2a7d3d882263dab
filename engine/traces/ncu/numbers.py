"""Numbers and units as Nsight Compute prints them, in one unit for each kind of quantity."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

# An English thousands separator, or a decimal comma and thousands dots of other locales.
_ENGLISH: Final = re.compile(
    r"^-?\d{1,3}(?:,\d{3})*(?:\.\d+)?$|^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$"
)
_OTHER: Final = re.compile(r"^-?\d{1,3}(?:[.\u202f\u00a0 ]\d{3})*(?:,\d+)?$|^-?\d+,\d+$")
_SCALES: Final[Mapping[str, tuple[str, float]]] = {
    "%": ("percent", 1.0),
    "ns": ("us", 1e-3),
    "nsecond": ("us", 1e-3),
    "us": ("us", 1.0),
    "usecond": ("us", 1.0),
    "ms": ("us", 1e3),
    "msecond": ("us", 1e3),
    "s": ("us", 1e6),
    "second": ("us", 1e6),
    "hz": ("GHz", 1e-9),
    "khz": ("GHz", 1e-6),
    "mhz": ("GHz", 1e-3),
    "ghz": ("GHz", 1.0),
    "cycle/second": ("GHz", 1e-9),
    "cycle/usecond": ("GHz", 1e-3),
    "cycle/nsecond": ("GHz", 1.0),
    "byte/second": ("GB/s", 1e-9),
    "kbyte/second": ("GB/s", 1e-6),
    "mbyte/second": ("GB/s", 1e-3),
    "gbyte/second": ("GB/s", 1.0),
    "tbyte/second": ("GB/s", 1e3),
    "byte/s": ("GB/s", 1e-9),
    "kbyte/s": ("GB/s", 1e-6),
    "mbyte/s": ("GB/s", 1e-3),
    "gbyte/s": ("GB/s", 1.0),
    "tbyte/s": ("GB/s", 1e3),
}


def number(text: str) -> float | None:
    """Return a printed number, None for ``n/a``, ``nan`` and what else is none."""
    text = text.strip()
    if len(text) > 40:
        return None
    if _ENGLISH.match(text):
        value = float(text.replace(",", ""))
    elif _OTHER.match(text):
        value = float(re.sub(r"[.\u202f\u00a0 ]", "", text).replace(",", "."))
    else:
        return None
    return value if math.isfinite(value) else None


def converted(value: float, unit: str, wanted: str) -> float | None:
    """Return a value in the unit of a `KernelReadingEntry`; None if it is of another kind."""
    kind, scale = _SCALES.get(unit.strip().lower(), ("", 1.0))
    if kind == wanted:
        return value * scale
    if wanted in ("count", "ratio"):
        return value if not kind else None
    # Without a unit a metric's own name says what it is: percent is never scaled.
    return value if wanted == "percent" and not unit.strip() else None
