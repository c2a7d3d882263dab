"""Captures of what GPUs did: read, turned into figures, and judged.

Timelines: exports of Nsight Systems (SQLite, Parquet), traces of the PyTorch profiler and other
traces in Chrome's JSON. `engine.traces.formats` has the table of formats.
"""

from __future__ import annotations

from engine.readers.base import Context, Result
from engine.traces.figures import Limits
from engine.traces.formats import FORMATS, Capture, figures_of
from engine.traces.model import Figures
from engine.traces.summary import summary

__all__ = [
    "Capture",
    "Figures",
    "Limits",
    "figures_of",
    "kind_of",
    "needs_file",
    "read_trace",
    "summary",
]

_BY_KIND = {one.kind: one for one in FORMATS}


def kind_of(head: bytes, name: str | None) -> str | None:
    """Say which format of captures a file is.

    Args:
        head: its first bytes, unpacked, 64 KiB of them if there are so many.
        name: the file's name, if it has one.

    Returns:
        The format's id, None if it is no capture.
    """
    lower = (name or "").lower()
    return next((one.kind for one in FORMATS if one.claims(head, lower)), None)


def needs_file(kind: str) -> bool:
    """Return whether captures of a format must be files on disk, not chunks of bytes."""
    return _BY_KIND[kind].whole


def read_trace(source: Capture, kind: str, context: Context) -> Result:
    """Return what a capture shows.

    Args:
        source: the file, or its bytes cut anywhere where the format allows that.
        kind: what `kind_of` said.
        context: the knowledge.

    Raises:
        InputError: it cannot be read, with what to do.
    """
    return _BY_KIND[kind].read(source, context)
