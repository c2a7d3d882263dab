"""Numbers as people write them: ``70B``, ``188.5 GB/s``, ``80GiB``, ``0.9``, ``90%``, ``2 min``.

Decimal prefixes are powers of 1,000 and binary ones (``GiB``) powers of 1,024; a size of ``256M``
is one of nccl-tests, 256 MiB. ``Gb`` and ``Gbit`` are bits: ``400 Gb/s`` is 50 GB/s.
"""

from __future__ import annotations

import re

from engine.errors import UsageError

# A comma only parts thousands: "188,5" could be ten times what was meant.
_NUMBER = re.compile(
    r"\s*([+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)"
    r"(?:[eE][+-]?[0-9]+)?)(?![,0-9])\s*(.*?)\s*",
    re.DOTALL,
)
_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_COUNTS = {"": 1.0, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "b": 1e9, "B": 1e9, "bn": 1e9}
_COUNTS |= {"t": 1e12, "T": 1e12, "G": 1e9, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_TIMES = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6}
_TIMES |= {"µs": 1e-6, "ns": 1e-9, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}
_LONGEST = 40


def read_number(text: str, unit: str, name: str) -> float:
    """Return a number in a unit.

    Args:
        text: what was written, with or without a unit.
        unit: what is wanted: ``GB/s``, ``TFLOP/s``, ``bytes``, ``GB``, ``count``, ``s``, ``ratio``,
            ``FLOP/byte``, ``tokens/s``. A number without a unit is in this one.
        name: of the input, for the message.

    Raises:
        UsageError: it is no number, or in another kind of unit.
    """
    found = _NUMBER.fullmatch(text[: _LONGEST + 1])
    if not found or len(text) > _LONGEST:
        raise UsageError(
            f"{name}={text[:_LONGEST]!r} is no number", hint=f"write it as in {name}=8"
        )
    value, said = float(found[1].replace(",", "").replace("_", "")), found[2]
    scale = 1.0 if not said else _scale(said, unit)
    if scale is None:
        raise UsageError(f"{name} cannot be in {said!r}", hint=f"give it in {unit}")
    return value * scale


def _scale(said: str, unit: str) -> float | None:
    if unit == "ratio":
        return 0.01 if said in {"%", "percent"} else None
    if unit == "count":
        return _COUNTS.get(said)
    if unit == "s":
        return _TIMES.get(said)
    if unit in {"bytes", "GB"}:
        size = _size(said, per_second=False)
        return None if size is None else size / (1e9 if unit == "GB" else 1.0)
    if unit == "GB/s":
        size = _size(said, per_second=True)
        return None if size is None else size / 1e9
    if unit == "TFLOP/s":
        found = re.fullmatch(
            r"([kKMGTPE]?)(?:FLOPS|FLOP/s|FLOPs|flops|flop/s|flops/s|FLOPs/s)", said
        )
        return _DECIMAL[found[1]] / 1e12 if found else None
    if unit == "FLOP/byte":
        return 1.0 if said.casefold() in {"flop/byte", "flops/byte", "flop/b", "flops/b"} else None
    if unit == "tokens/s":
        found = re.fullmatch(r"([kKM]?)\s*(?:(?:tokens?|tok|t)(?:/s|ps| per second))?", said)
        return _DECIMAL[found[1]] if found else None
    return None


def _size(said: str, *, per_second: bool) -> float | None:
    """Return the bytes in a unit of size, or of size a second."""
    if per_second:
        said, seconds = re.subn(r"(?:ps|/s|/sec| per second)$", "", said)
        if not seconds:
            return None
    found = re.fullmatch(r"((?:[KMGTP]i|[kKMGTPE]?))(B|bytes?|b|bits?)", said)
    if not found:
        # nccl-tests takes 256M for 256 MiB.
        return _BINARY.get(f"{said.upper()}i") if len(said) == 1 and not per_second else None
    scale = _BINARY.get(found[1], _DECIMAL.get(found[1], 1.0))
    return scale / 8 if found[2] in {"b", "bit", "bits"} else scale
