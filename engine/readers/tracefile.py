"""A file that is a trace goes to `engine.traces` as a whole, not line by line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from engine import traces
from engine.errors import InputError
from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.documents import is_inside
from engine.readers.text import HEAD, Source

TEXT_CUT: Final = "text_cut"
"""Id of the finding that a text ends in the middle: it is told before all others."""
# What `engine.traces` remarks of such a trace.
_CUT: Final = "The trace ends in the middle"
_NO_DATA: Final = "no_data"


def read_tracefile(source: Source, context: Context) -> list[Result] | None:
    """Return what a trace shows; None if the input is none.

    Raises:
        InputError: it is a trace that cannot be read, with what to do.
    """
    kind = traces.kind_of(source.head, source.path.name if source.path else None)
    if kind is None or _only_begins_with(source.head):
        return None
    if not traces.needs_file(kind):
        return [_cut_first(traces.read_trace(source.chunks(), kind, context))]
    if source.path is not None and not source.packed:
        source.left()
        return [_cut_first(traces.read_trace(source.path, kind, context))]
    with tempfile.NamedTemporaryFile(prefix="gpuwhy-", suffix=".trace") as file:
        _spool(source, file)
        try:
            return [_cut_first(traces.read_trace(Path(file.name), kind, context))]
        except InputError as error:
            raise _about_input(error, Path(file.name).name, source) from error


def _cut_first(result: Result) -> Result:
    """Say first that a trace ends in the middle, and what it holds only as of the part before."""
    if not any(note.startswith(_CUT) for note in result.notes):
        return result
    empty = result.causes == [_NO_DATA]
    result.findings = [
        Finding(
            kind=result.kinds[0] if result.kinds else "trace",
            id=TEXT_CUT,
            severity=Severity.MEDIUM if empty else Severity.LOW,
            says="The trace ends in the middle: the file was cut, or the program ended before it "
            "was written. What follows is of the part before the cut"
            + (", which tells nothing of the GPU." if empty else "."),
            action="Compare its size with the original and copy it again, or capture again and let "
            "the profiler finish writing (its stop, or the end of its with block).",
            entity=None,
            line=None,
            cause=_NO_DATA if empty else None,
            data={"cut": True},
        ),
        *(_of_part(one) if one.cause == _NO_DATA else one for one in result.findings),
    ]
    return result


def _of_part(one: Finding) -> Finding:
    says = one.says.replace("The capture holds", "The part before the cut holds", 1)
    says = says.replace("none was done, or it was not traced", "it may stand in what is missing", 1)
    return replace(one, says=says, action="Read the whole trace first.", severity=Severity.INFO)


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
