"""Numbers in tools' output: read without raising, bounded, with their unit; lists for sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_INTEGER = re.compile(r"^[+-]?[0-9]{1,20}$", re.ASCII)
_DECIMAL = re.compile(
    r"^[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(?:[eE][+-]?[0-9]{1,3})?$"
)
_SIZE = re.compile(r"^([0-9]{1,20}(?:\.[0-9]{1,6})?) ?([kKMGTPE]?)(i?)(B?|[Bb]ytes)?$")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def integer(text: str) -> int | None:
    """Return a decimal integer of at most 20 digits, None for anything else."""
    text = text.strip()
    return int(text) if _INTEGER.match(text) else None


def decimal(text: str) -> float | None:
    """Return a plain decimal number, None for anything else (``nan``, ``-``, ``N/A``)."""
    text = text.strip().replace(",", ".") if text.count(",") == 1 else text.strip()
    if not _DECIMAL.match(text):
        return None
    value = float(text)
    return value if abs(value) < 1e30 else None


def size_bytes(text: str, *, binary: bool = True) -> float | None:
    """Return a size such as ``3.6T``, ``512 KiB`` or ``1.5GB`` in bytes.

    Args:
        text: the size.
        binary: a bare letter is a power of 1024, as ``df -h`` and ``lfs df -h`` print it; a
            letter with ``i`` always is.
    """
    found = _SIZE.match(text.strip())
    if found is None:
        return None
    base = 1024 if found[3] or (binary and found[4] in ("", None)) else 1000
    return float(found[1]) * float(base ** _POWERS[found[2]])


def short(text: str, limit: int = 64) -> str:
    """Return a name from untrusted text: printable, at most ``limit`` characters."""
    text = _UNPRINTABLE.sub("?", text.strip())
    return text if len(text) <= limit else text[: limit - 1] + "~"


def listed(items: Iterable[object], limit: int = 6) -> str:
    """Write items as ``a, b, c and 4 more``."""
    names = [str(item) for item in items]
    shown = names if len(names) <= limit + 1 else names[:limit]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Write a count with its noun: ``1 port``, ``8 ports``."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def median(values: Sequence[float]) -> float:
    """Return the middle of some values, the lower one of two; 0 for none."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0.0
