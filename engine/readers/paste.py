"""`read`: offer every line of a paste to the readers and put their findings together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.catalogue.types import Catalogue
from engine.model import Class, Read
from engine.readers.base import Context, Diagnose, Reader, Result, Skimmer
from engine.readers.documents import MAX_DOCUMENT, parse, read_document
from engine.readers.redact import redacted
from engine.readers.scan import Scan
from engine.readers.table import READERS
from engine.readers.text import MAX_LINE, Blocks, OnProgress, Source, clean
from engine.readers.tracefile import read_tracefile

T = TypeVar("T")

_LAST = (Class.BENIGN, Class.BLIND)


def read(
    source: Iterable[bytes] | bytes | Path,
    catalogue: Catalogue,
    diagnose: Diagnose | None = None,
    on_progress: OnProgress | None = None,
) -> Read:
    """Say what text or a trace shows; kinds of text may be mixed.

    Args:
        source: a file, bytes, or chunks of bytes cut anywhere; gzip and zstd are unpacked.
        catalogue: knowledge; the rules are not used here.
        diagnose: judges readings by the rules; without it only what the text says by itself and
            oddities are reported.
        on_progress: told how much has been read.

    Returns:
        Findings with the root cause first. Lines that start with ``#`` are a poster's remarks and
        not counted as unread. Secrets in what is quoted are masked.

    Raises:
        InputError: the file cannot be read, or the input is binary or packed in a way that is not
            understood.
    """
    context = Context(catalogue, diagnose)
    opened = Source(source, on_progress)
    results = read_tracefile(opened, context)
    unread = 0
    if results is None:
        chunks: Iterable[bytes] = opened.chunks()
        document = None
        if opened.head.lstrip()[:1] in (b"{", b"["):
            whole, chunks = _spooled(chunks)
            value = None if whole is None else parse(whole)
            document = None if value is None else read_document(value, context, 1)
        results, unread = ([document], 0) if document else _lines(chunks, context)
    results.append(Result(notes=opened.notes))
    return redacted(_together(results, catalogue, unread))


class _Pass:
    """One pass over the lines of a text: which reader gets what, and what none wanted."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._scan = Scan(readers)
        self._skimming = [r for r in readers if isinstance(r, Skimmer)]
        self._open: list[Reader] = []
        self._number = 1
        self.unread = 0
        self.cut = 0

    def block(self, block: bytes) -> None:
        """Take whole lines."""
        skimmed = 0
        for reader in self._skimming:
            if any(mark in block for mark in reader.skims):
                skimmed += reader.skim(self._number, block)
        unread_before, at = self.unread, 0
        while at < len(block):
            if not self._open:
                found = self._scan.first(block, at)
                start = len(block) if found < 0 else block.rfind(b"\n", at, found) + 1 or at
                if start > at:
                    self._skip(block[at:start])
                    at = start
                    continue
            end = block.find(b"\n", at)
            self._line(block[at:end])
            at = end + 1
        if skimmed:
            self.unread = max(unread_before, self.unread - skimmed)

    def _skip(self, lines: bytes) -> None:
        """Count lines without a trigger; blank ones and remarks are not unread."""
        split = lines.split(b"\n")
        self._number += len(split) - 1
        self.unread += sum(1 for line in map(bytes.strip, split) if line and line[0] != 0x23)

    def _line(self, raw: bytes) -> None:
        number = self._number
        self._number += 1
        bare = raw.strip()
        if not bare:
            return
        if len(raw) > MAX_LINE:
            self.cut += 1
            raw = raw[:MAX_LINE]
        text = clean(raw)
        offered = self._scan.candidates(raw, self._open)
        taken = any(reader.feed(number, text) for reader in offered)
        self._open = [r for r in offered if r.open]
        if not taken:
            self.unread += bare[:1] != b"#"


def _lines(chunks: Iterable[bytes], context: Context) -> tuple[list[Result], int]:
    readers = [make(context) for make in READERS]
    one = _Pass(readers)
    blocks = Blocks(chunks)
    for block in blocks:
        one.block(block)
    results = [r.finish() for r in readers]
    cut = blocks.cut + one.cut
    if cut:
        results.append(
            Result(notes=[f"{cut} line(s) over {MAX_LINE} bytes were cut: their start was read."])
        )
    return results, one.unread


def _together(results: Sequence[Result], catalogue: Catalogue, unread: int) -> Read:
    findings = tuple(f for result in results for f in result.findings)
    return Read(
        kinds=_unique(k for result in results for k in result.kinds),
        findings=findings,
        causes=_ranked(results, catalogue),
        unread_lines=unread,
        errata=_unique(e for f in findings for e in f.errata),
        diagnoses=tuple(d for result in results for d in result.diagnoses),
        notes=_unique(n for result in results for n in result.notes),
        unknown=_unique(u for result in results for u in result.unknown),
    )


def _spooled(chunks: Iterable[bytes]) -> tuple[bytes | None, Iterable[bytes]]:
    """Return the whole input if it is small enough for a document, and its chunks again."""
    kept: list[bytes] = []
    size = 0
    source = iter(chunks)
    for chunk in source:
        kept.append(chunk)
        size += len(chunk)
        if size > MAX_DOCUMENT:
            return None, _again(kept, source)
    return b"".join(kept), kept


def _again(kept: list[bytes], rest: Iterable[bytes]) -> Iterable[bytes]:
    yield from kept
    kept.clear()
    yield from rest


def _ranked(results: Iterable[Result], catalogue: Catalogue) -> tuple[str, ...]:
    """Causes in the readers' order, with benign and blind ones after all others."""

    def late(cause: str) -> bool:
        info = catalogue.taxonomy.get(cause)
        return info is not None and info.class_ in _LAST

    causes = _unique(c for result in results for c in result.causes)
    return tuple(sorted(causes, key=late))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
