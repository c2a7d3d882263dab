"""Times and sizes of collectives as people read them."""

from __future__ import annotations

from engine.nccl.model import GroupFigures

_UNITS = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))


def time(us: float) -> str:
    """Write microseconds in the unit that fits: ``12.3 us``, ``4.56 ms``, ``1.2 s``."""
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} us"


def size(count: int) -> str:
    """Write bytes: ``256 MiB``, ``17.5 KiB``, ``8 B``."""
    for power, unit in _UNITS:
        if count >= 1 << power:
            return f"{count / (1 << power):.4g} {unit}"
    return f"{count} B"


def size_class(group: GroupFigures) -> str:
    """Write the sizes of a group: one, or the least and greatest of its bucket."""
    if group.size_min == group.size_max:
        return size(group.size_max)
    return f"{size(group.size_min)} to {size(group.size_max)}"
