"""A file that is a trace goes to `engine.traces` as a whole, not line by line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

from engine import traces
from engine.readers.base import Context, Result
from engine.readers.text import Source


def read_tracefile(source: Source, context: Context) -> list[Result] | None:
    """Return what a trace shows; None if the input is none.

    Raises:
        InputError: it is a trace that cannot be read, with what to do.
    """
    kind = traces.kind_of(source.head, source.path.name if source.path else None)
    if kind is None:
        return None
    if not traces.needs_file(kind):
        return [traces.read_trace(source.chunks(), kind, context)]
    if source.path is not None and not source.packed:
        return [traces.read_trace(source.path, kind, context)]
    with tempfile.NamedTemporaryFile(prefix="gpuwhy-", suffix=".trace") as file:
        _spool(source, file)
        return [traces.read_trace(Path(file.name), kind, context)]


def _spool(source: Source, file: IO[bytes]) -> None:
    for chunk in source.chunks():
        file.write(chunk)
    file.flush()
