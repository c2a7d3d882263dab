"""Numbers and names of captures for people."""

from __future__ import annotations


def gpu(index: int) -> str:
    """Return what a GPU is called; below 0: the capture does not say which it is."""
    return f"GPU {index}" if index >= 0 else "unknown GPU"


def ms(value: float) -> str:
    """Return a time (ms)."""
    if value >= 10_000:
        return f"{value / 1e3:.1f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def percent(value: float) -> str:
    """Return a share (percent)."""
    return f"{value:.0f} %" if value >= 99.5 or not value else f"{value:.2g} %"


def short(name: str, length: int = 60) -> str:
    """Return a kernel's name without its types and arguments, cut."""
    bare = name.removeprefix("void ").split("<", 1)[0].split("(", 1)[0].strip() or name
    return clipped(bare, length)


def clipped(name: str, length: int = 40) -> str:
    """Return a name of at most so many characters."""
    return name if len(name) <= length else name[: length - 3] + "..."
