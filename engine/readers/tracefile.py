"""A file that is a trace goes to `engine.traces` as a whole, not line by line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

from engine import traces
from engine.errors import InputError
from engine.readers.base import Context, Result
from engine.readers.documents import is_inside
from engine.readers.text import HEAD, Source


def read_tracefile(source: Source, context: Context) -> list[Result] | None:
    """Return what a trace shows; None if the input is none.

    Raises:
        InputError: it is a trace that cannot be read, with what to do.
    """
    kind = traces.kind_of(source.head, source.path.name if source.path else None)
    if kind is None or _only_begins_with(source.head):
        return None
    if not traces.needs_file(kind):
        return [traces.read_trace(source.chunks(), kind, context)]
    if source.path is not None and not source.packed:
        source.left()
        return [traces.read_trace(source.path, kind, context)]
    with tempfile.NamedTemporaryFile(prefix="gpuwhy-", suffix=".trace") as file:
        _spool(source, file)
        try:
            return [traces.read_trace(Path(file.name), kind, context)]
        except InputError as error:
            raise _about_input(error, Path(file.name).name, source) from error


def _about_input(error: InputError, spooled: str, source: Source) -> InputError:
    """Return an error that names the input, not the file that it was copied to."""
    name = source.path.name if source.path else "the trace"
    return InputError(
        error.message.replace(spooled, name),
        hint=error.hint.replace(spooled, name),
        code=error.code,
    )


def _only_begins_with(head: bytes) -> bool:
    """Return whether a short text begins with a trace in JSON, and more stands below it."""
    if len(head) >= HEAD or head[:1] not in {b"[", b"{"}:
        return False
    return not all(map(is_inside, head.decode("utf-8", "replace").splitlines()))


def _spool(source: Source, file: IO[bytes]) -> None:
    for chunk in source.chunks():
        file.write(chunk)
    file.flush()
