"""Units of expressions, and numbers written for people with their unit."""

from __future__ import annotations

import math

from engine.catalogue.types import Catalogue
from engine.condition.tree import (
    Absolute,
    Age,
    Attr,
    Binary,
    Coalesce,
    Negative,
    Number,
    Numeric,
    PastNumber,
    PeerCount,
    Peers,
    Reading,
    Share,
)

# The end of a ``gpu.*`` attribute's name says its unit.
_ENDINGS = {
    "_per_direction": "GB/s",
    "_gbps": "GB/s",
    "_flop_per_byte": "FLOP/B",
    "_tflops": "TFLOP/s",
    "_mhz": "MHz",
    "_gib": "GiB",
    "_w": "W",
    "_c": "celsius",
}
_WRITTEN = {"celsius": "°C", "percent": "%", "J/s": "W"}
_PLAIN = frozenset({"", "count", "code", "enum"})
# What things are counted in.
_COUNTED = frozenset({"count", "requests", "tokens"})
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SPANS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def attr_unit(name: str) -> str:
    """Return the unit that the name of a ``gpu.*`` attribute ends in, or an empty string."""
    return next((unit for end, unit in _ENDINGS.items() if name.endswith(end)), "")


def unit_of(node: Numeric, catalogue: Catalogue) -> str:
    """Return the unit of an expression, an empty string for a pure number."""
    match node:
        case Number(unit=unit):
            return unit
        case Attr(name=name):
            return attr_unit(name)
        case Reading(function=function, signal=signal):
            unit = catalogue.signals[signal].unit
            if function == "changes":
                return "count"
            if function == "rate":
                return "ratio" if unit == "s" else f"{unit}/s"  # seconds in a second: a share
            return unit
        case Age():
            return "s"
        case Share():
            return "ratio"
        case PeerCount(function=function):
            return "ratio" if function == "share" else "count"
        case Binary():
            return _binary_unit(node, catalogue)
        case Coalesce(options=options):
            return next((u for o in options if (u := unit_of(o, catalogue))), "")
        case Negative() | Absolute() | Peers() | PastNumber():
            return unit_of(node.operand, catalogue)


def _binary_unit(node: Binary, catalogue: Catalogue) -> str:
    left, right = unit_of(node.left, catalogue), unit_of(node.right, catalogue)
    if node.op in "+-":
        return left or right
    if isinstance(node.right, Number):
        # Nanoseconds spent per second, scaled by a billion, are a fraction of the time.
        factor = node.right.value if node.op == "*" else 1 / node.right.value
        if left in {"ns", "ns/s"} and math.isclose(factor, 1e-9):
            return "s" if left == "ns" else "ratio"
        if left == "percent" and math.isclose(factor, 0.01):
            return "ratio"
        return left
    if node.op == "*":
        return right if isinstance(node.left, Number) else ""
    if (left, right) == ("ratio", "count/s"):
        return "s"  # a share of the time over events a second: the time of one event
    if left == right:
        return "ratio"
    return left if right in _COUNTED else ""  # seconds of so many requests are seconds a request


def digits(value: float, significant: int = 3) -> str:
    """Write a number with about three significant digits, whole ones in full."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if abs(value) >= 10.0 ** (significant - 1):
        return f"{value:.0f}"
    return f"{value:.{significant}g}"


def written(value: float, unit: str, significant: int = 3) -> str:
    """Write a number with its unit: ``88 °C``, ``510 MHz``, ``21 %``, ``12.4 GB/s``, ``0x88``."""
    if not math.isfinite(value):
        return "unknown"
    if unit == "bitmask":
        return f"{int(value):#x}"
    if unit in _PLAIN:
        return digits(value, significant)
    if unit in {"ratio", "ns/s"}:
        part = value / 1e9 if unit == "ns/s" else value
        of_time = " of the time" if unit == "ns/s" else ""
        if part and abs(part) < 1e-4:
            return f"{digits(part, significant)}{of_time}"
        return f"{digits(part * 100, significant)} %{of_time}"
    if unit == "ns":
        return written(value / 1e9, "s", significant)
    if unit == "B/s":
        scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s), (1.0, ""))
        return f"{digits(value / scale, significant)} {prefix}B/s"
    if unit.startswith("count/"):
        return f"{digits(value, significant)}/{unit.removeprefix('count/')}"
    return f"{digits(value, significant)} {_WRITTEN.get(unit, unit)}"


def span_of(seconds: float) -> str:
    """Write a span of time in words: ``5 minutes``, ``90 seconds``, ``1 hour``."""
    for size, name in _SPANS:
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{digits(seconds)} seconds"
