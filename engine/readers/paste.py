"""`read`: offer every line of a paste to the readers and put their findings together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.catalogue.types import Catalogue
from engine.model import Class, Read
from engine.readers.base import Context, Diagnose, Reader, Result
from engine.readers.table import READERS
from engine.readers.text import MAX_LINE, Blocks, chunks_of, clean

T = TypeVar("T")

_LAST = (Class.BENIGN, Class.BLIND)


def read(
    source: Iterable[bytes] | bytes | Path,
    catalogue: Catalogue,
    diagnose: Diagnose | None = None,
) -> Read:
    """Say what text shows: kernel log lines, ``nvidia-smi`` output, exporter metrics, mixed.

    Args:
        source: a file, bytes, or chunks of bytes cut anywhere.
        catalogue: knowledge; the rules are not used here.
        diagnose: judges exporter text by the rules; without it only oddities of such text and
            what single readings say are reported.

    Returns:
        Findings with the root cause first. Lines that start with ``#`` are a poster's remarks and
        not counted as unread.

    Raises:
        InputError: the file cannot be read, or the input is packed or binary.
    """
    context = Context(catalogue, diagnose)
    readers = [make(context) for make in READERS]
    triggers = tuple({t: None for r in readers for t in r.triggers})
    blocks = Blocks(chunks_of(source))
    number = unread = 0
    for lines in blocks:
        if not any(r.open for r in readers) and not _any_trigger(lines, triggers):
            number += len(lines)
            unread += sum(1 for line in map(bytes.strip, lines) if line and line[0] != 0x23)
            continue
        for raw in lines:
            number += 1
            if raw.strip() and not _offer(readers, number, raw):
                unread += raw.lstrip()[:1] != b"#"
    results = [r.finish() for r in readers]
    notes = [note for result in results for note in result.notes]
    if blocks.cut:
        notes.append(f"{blocks.cut} line(s) over {MAX_LINE} bytes were cut: their start was read.")
    findings = tuple(f for result in results for f in result.findings)
    return Read(
        kinds=_unique(k for result in results for k in result.kinds),
        findings=findings,
        causes=_ranked(results, catalogue),
        unread_lines=unread,
        errata=_unique(e for f in findings for e in f.errata),
        diagnoses=tuple(d for result in results for d in result.diagnoses),
        notes=_unique(notes),
        unknown=_unique(u for result in results for u in result.unknown),
    )


def _any_trigger(lines: Sequence[bytes], triggers: Iterable[bytes]) -> bool:
    block = b"\n".join(lines)
    return any(trigger in block for trigger in triggers)


def _offer(readers: Sequence[Reader], number: int, raw: bytes) -> bool:
    """Give a line to the first reader that takes it."""
    text: str | None = None
    for reader in readers:
        if reader.open or any(trigger in raw for trigger in reader.triggers):
            text = clean(raw) if text is None else text
            if reader.feed(number, text):
                return True
    return False


def _ranked(results: Iterable[Result], catalogue: Catalogue) -> tuple[str, ...]:
    """Causes in the readers' order, with benign and blind ones after all others."""

    def late(cause: str) -> bool:
        info = catalogue.taxonomy.get(cause)
        return info is not None and info.class_ in _LAST

    causes = _unique(c for result in results for c in result.causes)
    return tuple(sorted(causes, key=late))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
