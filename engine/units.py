"""Writing numbers for people: a value never stands without its unit.

Canonical units are those of the signals in ``knowledge/signals``; what each prints as stands in
one table, so that every sentence, table and evidence line says it the same way.
"""

from __future__ import annotations

_SUFFIX = {
    "celsius": " °C",
    "MHz": " MHz",
    "W": " W",
    "J": " J",
    "MiB": " MiB",
    "GiB": " GiB",
    "percent": " %",
    "ns": " ns",
    "s": " s",
    "B/s": " B/s",
    "bitmask": "",
    "count": "",
    "enum": "",
    "code": "",
    "bool": "",
    "ratio": "",
    "": "",
}
_BYTES_PER_S = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))


def number(value: float) -> str:
    """Write a number with three or four significant digits, never in exponent form if avoidable."""
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN test
        return "no number"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if abs(value) >= 100:
        return f"{value:.1f}".rstrip("0").rstrip(".")
    if abs(value) >= 0.01:
        return f"{value:.3g}"
    return f"{value:.2g}"


def quantity(value: float, unit: str) -> str:
    """Write a value with its unit: ``88 °C``, ``510 MHz``, ``0.21``, ``0x88``, ``0.42 MB/s``."""
    if unit == "bitmask":
        return f"0x{int(value):X}"
    if unit == "ratio":
        return f"{100 * value:.3g} %"
    if unit == "B/s":
        for size, name in _BYTES_PER_S:
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
        return f"{number(value)} B/s"
    if unit in {"bool", "enum", "code", "count"}:
        return number(value)
    suffix = _SUFFIX.get(unit)
    return f"{number(value)}{suffix}" if suffix is not None else f"{number(value)} {unit}"


def duration(seconds: float) -> str:
    """Write a span of time in its largest sensible unit: ``90 s``, ``15 min``, ``2 h``, ``3 d``."""
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size and (seconds % size == 0 or seconds >= 2 * size):
            return f"{number(round(seconds / size, 1))} {name}"
    return f"{number(round(seconds, 1))} s"
