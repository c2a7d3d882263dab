"""What is a reading and what is not: DCGM blanks, NaN, impossible values.

The blank markers are those of NVIDIA/DCGM ``dcgmlib/dcgm_structs.h`` (4.6.0). Prometheus stores
floats, so the 64-bit integer markers arrive rounded to 9.223372036854776e18. Anything from 9.2e18
up is no reading, and that one is a marker. 2^47 and the three values above it are the
floating-point markers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.samples import Dropped, Floats

INT32_BLANK = 2147483632.0
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
FP64_BLANK = 140737488355328.0
_INT64_FLOOR = 9.2e18
# Beside 2^63 so far a 64-bit marker may lie, as floats of six digits print it (relative).
_INT64_ROUNDED = 1e-6
_UINT32_MAX = 4294967295.0
_UINT64_MAX = 18446744073709551615.0
_SUFFIXES = ("BLANK", "NOT_FOUND", "NOT_SUPPORTED", "NOT_PERMISSIONED")

Bools = npt.NDArray[np.bool_]


def no_reading(values: Floats, low: float | None, high: float | None, *, counter: bool) -> Bools:
    """Return which values are no readings: NaN, infinite, a blank marker, or out of [low, high].

    A counter may pass through the 32-bit marker by counting, so that one is not tested there.
    """
    bad = blank(values)
    if not counter:
        bad |= blank32(values)
    if low is not None:
        bad |= values < low
    if high is not None:
        bad |= values > high
    return bad


def below_markers(values: Floats) -> bool:
    """Return whether all values are finite and less than any blank marker, as most are."""
    return not values.size or bool(values.min() > -np.inf and values.max() < INT32_BLANK)


def blank(values: Floats) -> Bools:
    """Return which values are NaN, infinite, or as large as a 64-bit blank marker."""
    bad: Bools = ~np.isfinite(values)
    bad |= values >= _INT64_FLOOR
    bad |= (values >= FP64_BLANK) & (values <= FP64_BLANK + 3)
    return bad


def blank32(values: Floats) -> Bools:
    """Return which values are a 32-bit blank marker."""
    bad: Bools = (values >= INT32_BLANK) & (values <= INT32_BLANK + 3)
    return bad


def reason(value: float, written: str = "") -> str:
    """Say why one value is no reading, by DCGM's own name where it has one.

    Args:
        value: the value.
        written: its text, if there is one: a float cannot tell the four 64-bit markers apart.
    """
    if value != value:  # noqa: PLR0124 - the NaN test that needs no import
        return "NaN"
    if value == _UINT64_MAX:
        return "UINT64_MAX"
    if abs(value / INT64_BLANK - 1.0) <= _INT64_ROUNDED:
        whole = written.isascii() and written.isdecimal() and len(written) < 20
        offset = int(written) - INT64_BLANK if whole else 0
        return f"INT64_{_SUFFIXES[offset] if 0 <= offset < len(_SUFFIXES) else 'BLANK'}"
    for base, kind in ((FP64_BLANK, "FP64"), (INT32_BLANK, "INT32")):
        if base <= value <= base + 3:
            return f"{kind}_{_SUFFIXES[int(value - base)]}"
    if value == _UINT32_MAX:
        return "UINT32_MAX"
    return "out of range"


def dropped(values: Floats) -> Dropped:
    """Count why values were thrown away; ``values`` are only those."""
    counts: dict[str, int] = {}
    for value in values.tolist():
        why = reason(value)
        counts[why] = counts.get(why, 0) + 1
    return Dropped(dict(sorted(counts.items())), float(values[0]) if len(values) else None)
