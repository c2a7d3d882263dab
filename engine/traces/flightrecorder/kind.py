"""Flight Recorder dumps as a kind of input: all ranks' dumps are judged together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from engine.errors import InputError
from engine.model import Severity
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.joint import Document
from engine.traces.flightrecorder.dump import Dump, dump_of, is_dump, own_frame
from engine.traces.flightrecorder.judge import judge
from engine.traces.flightrecorder.pickled import MAX_PICKLE, loads
from engine.traces.flightrecorder.words import findings

KIND: Final = "flight_recorder"
_PROTOCOLS: Final = tuple(bytes((0x80, protocol)) for protocol in (2, 3, 4, 5))


def is_pickle(head: bytes) -> bool:
    """Return whether a file's first bytes are those of a pickle; no text begins like that."""
    return head.startswith(_PROTOCOLS)


def read_pickle(chunks: Iterable[bytes]) -> Mapping[str, Any]:
    """Return what a pickled dump holds.

    Raises:
        InputError: it is broken, too large, would execute something, or is something else.
    """
    kept: list[bytes] = []
    size = 0
    for chunk in chunks:
        kept.append(chunk)
        size += len(chunk)
        if size > MAX_PICKLE:
            break
    value = loads(b"".join(kept))
    if not is_dump(value) or not isinstance(value, Mapping):
        raise InputError(
            "the pickle is no dump of PyTorch's Flight Recorder",
            hint="no other pickles are read",
        )
    return value


def _named(document: Document) -> Dump:
    return dump_of(document.value, document.name)


def _slim(value: Any) -> Any:
    """Keep one frame of each stack: stacks make most of a dump."""
    if not isinstance(value, Mapping) or not isinstance(value.get("entries"), list | tuple):
        return value
    return {**value, "entries": [_short_stack(entry) for entry in value["entries"]]}


def _short_stack(entry: Any) -> Any:
    if not isinstance(entry, Mapping) or "frames" not in entry:
        return entry
    frame = own_frame(entry["frames"])
    return {**entry, "frames": [] if frame is None else [frame]}


def _together(documents: Sequence[Document], context: Context) -> Result:
    del context
    dumps = [_named(document) for document in documents]
    result = Result(kinds=[KIND])
    judged = judge(dumps)
    result.findings = findings(judged, KIND)
    result.causes = list(
        dict.fromkeys(
            f.cause for f in result.findings if f.cause and f.severity is not Severity.INFO
        )
    )
    if unnamed := [d.name for d in dumps if d.rank is None]:
        result.notes.append(
            f"The rank of {len(unnamed)} dump(s) is not known from the file name; they are "
            "numbered in their order. Keep the names that PyTorch gives (..._rank_N)."
        )
    if left := sum(d.left_out for d in dumps):
        result.notes.append(f"{left} older entries of the dumps were not read.")
    return result


FLIGHT_RECORDER = DocumentKind(KIND, is_dump, None, together=_together, slim=_slim)
