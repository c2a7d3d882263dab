"""`read`: offer every line of a paste to the readers and put their findings together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from engine.catalogue.types import Catalogue
from engine.errors import InputError
from engine.model import Read
from engine.readers.base import Context, Diagnose, MakesReader, Reader, Result
from engine.readers.documents import MAX_DOCUMENT, DocumentReader, fits, parse, read_document
from engine.readers.guard import Guard
from engine.readers.joint import Joint
from engine.readers.lines import Pass
from engine.readers.mention import SHORT, mentioned
from engine.readers.ranking import ranked
from engine.readers.redact import redacted
from engine.readers.storage.order import worst_first
from engine.readers.stories.figures import figures_in
from engine.readers.table import READERS, STORAGE
from engine.readers.text import MAX_LINE, Blocks, OnProgress, Source
from engine.readers.tracefile import read_tracefile
from engine.traces.flightrecorder import is_pickle, read_pickle

T = TypeVar("T")

# Places in the order of results, before and after those of the readers.
_FIRST, _LAST_OF_ALL = -1, 1 << 20


def read(
    source: Iterable[bytes] | bytes | Path,
    catalogue: Catalogue,
    diagnose: Diagnose | None = None,
    on_progress: OnProgress | None = None,
) -> Read:
    """Say what one text or trace shows; kinds of text may be mixed.

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
    reading = Reading(catalogue, diagnose)
    reading.add(source.name if isinstance(source, Path) else "", source, on_progress)
    return reading.finish()[0][0]


class Reading:
    """Reads several inputs.

    Each is judged by itself, except for kinds that belong together (the logs of a job's ranks, two
    profiles of a kernel): readers and documents of such kinds are given all inputs.

    Attributes:
        causes: after `finish`, those of all inputs, best first.
    """

    def __init__(self, catalogue: Catalogue, diagnose: Diagnose | None = None) -> None:
        self._catalogue = catalogue
        self._context = Context(catalogue, diagnose)
        self._shared: dict[int, Reader] = {}
        self._joint = Joint(self._context)
        self._inputs: list[_Input] = []
        self._lines = 0
        self._secrets: set[str] = set()
        self._guard = Guard()
        self.causes: tuple[str, ...] = ()

    def add(
        self,
        name: str,
        source: Iterable[bytes] | bytes | Path,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Read one input; arguments as in `read`.

        Raises:
            InputError: as `read`; the other inputs are not harmed.
        """
        if isinstance(source, Path) and source.is_dir():
            source = _file_of(source)
        opened = Source(source, on_progress)
        one = _Input(self._lines)
        if is_pickle(opened.head):
            read_document(read_pickle(opened.chunks()), self._context, 1, self._joint, name)
            results: list[Result] | None = []
        else:
            results = read_tracefile(opened, self._context)
        if results is None:
            chunks: Iterable[bytes] = opened.chunks()
            document = None
            if opened.head.lstrip()[:1] in (b"{", b"["):
                whole, chunks = _spooled(chunks)
                document = None if whole is None else self._document(whole, name)
                one.large = whole is None or not fits(whole)
            results = [document] if document else self._text(one, chunks, name)
        one.ordered += [(_FIRST, result) for result in results]
        one.ordered.append((_LAST_OF_ALL, Result(notes=opened.notes)))
        self._inputs.append(one)

    def finish(self) -> tuple[list[Read], Read | None]:
        """Return what each input shows, in their order, and what only several together show.

        A finding that names a line stands with the input that holds it. Of a single input, all is
        in its part.
        """
        together = _Input(0)
        for number, reader in sorted(self._shared.items()):
            self._share(number, self._guard.finish(reader), together)
        together.ordered += [(len(READERS), result) for result in self._joint.results()]
        if len(self._inputs) == 1:
            self._inputs[0].ordered += together.ordered
            together = _Input(0)
        if self._guard.notes and self._inputs:
            self._inputs[0].ordered.append((_LAST_OF_ALL, Result(notes=self._guard.notes)))
        everything = [pair for one in (*self._inputs, together) for pair in one.ordered]
        self.causes = ranked(_sorted(everything), self._catalogue)
        parts = [self._whole(one) for one in self._inputs]
        return parts, self._whole(together) if together.ordered else None

    def _document(self, whole: bytes, name: str) -> Result | None:
        """Return what an input shows that is one JSON document of a known kind."""
        value = parse(whole)
        if value is None:
            return None
        return read_document(value, self._context, 1, self._joint, name)

    def _whole(self, one: _Input) -> Read:
        if one.large and not any(result.kinds for _, result in one.ordered):
            said = (
                "The input begins like a JSON document. Those over "
                f"{MAX_DOCUMENT >> 20} MiB, or of very many values, are not read: give the part "
                "that matters."
            )
            one.ordered.append((_LAST_OF_ALL, Result(notes=[said])))
        whole = _together(_sorted(one.ordered), self._catalogue, one.unread)
        return redacted(whole, self._secrets)

    def _text(self, one: _Input, chunks: Iterable[bytes], name: str) -> list[Result]:
        readers = [self._reader(n, make) for n, make in enumerate(READERS)]
        for reader in readers:
            if isinstance(reader, DocumentReader):
                reader.join(self._joint, name)
        run = Pass(readers, self._guard, self._lines)
        blocks = Blocks(chunks)
        start = b""
        for block in blocks:
            start += block[: SHORT + 1 - len(start)]
            run.block(block)
        run.finish()
        one.ordered += [
            (n, self._guard.finish(r)) for n, r in enumerate(readers) if n not in self._shared
        ]
        if run.unread and not any(r.kinds or r.findings for _, r in one.ordered):
            said_of = mentioned(start, self._catalogue)
            one.ordered.append((_LAST_OF_ALL, Result(notes=said_of)))
            one.ordered.append((_LAST_OF_ALL, figures_in(start, self._context)))
        cut = blocks.cut + run.cut
        if cut:
            said = f"{cut} line(s) over {MAX_LINE} bytes were cut: their start was read."
            one.ordered.append((_LAST_OF_ALL, Result(notes=[said])))
        self._lines += run.lines
        self._secrets |= run.secrets
        one.unread = run.unread
        return []

    def _reader(self, number: int, make: MakesReader) -> Reader:
        reader = self._shared.get(number)
        if reader is None:
            reader = make(self._context)
            if getattr(reader, "together", False):
                self._shared[number] = reader
        return reader

    def _share(self, number: int, result: Result, together: _Input) -> None:
        """Give each finding of a reader that had all inputs to the input whose line it names."""
        starts = [one.start for one in self._inputs]
        rest = replace(result, findings=[])
        for finding in result.findings:
            if finding.line is None or len(starts) == 1:
                rest.findings.append(finding)
                continue
            index = max(0, bisect_left(starts, finding.line) - 1)
            own = replace(finding, line=finding.line - starts[index])
            causes = [own.cause] if own.cause else []
            part = Result(kinds=list(result.kinds), findings=[own], causes=causes)
            self._inputs[index].ordered.append((number, part))
        if rest.kinds or rest.findings or rest.notes:
            together.ordered.append((number, rest))


@dataclass(slots=True)
class _Input:
    """One input: how many lines came before it, and what it shows, in the readers' order.

    ``large``: it begins like a JSON document, of more than is parsed.
    """

    start: int
    ordered: list[tuple[int, Result]] = field(default_factory=list)
    unread: int = 0
    large: bool = False


def _sorted(ordered: Iterable[tuple[int, Result]]) -> list[Result]:
    """Return results in the order of their readers; those of storage tools by severity."""
    places = sorted(ordered, key=itemgetter(0))
    storage = [result for n, result in places if n in STORAGE]
    before = [result for n, result in places if n < STORAGE.start]
    after = [result for n, result in places if n >= STORAGE.stop]
    return [*before, *worst_first(storage), *after]


def _together(results: Sequence[Result], catalogue: Catalogue, unread: int) -> Read:
    findings = tuple(f for result in results for f in result.findings)
    return Read(
        kinds=_unique(k for result in results for k in result.kinds),
        findings=findings,
        causes=ranked(results, catalogue),
        unread_lines=unread,
        errata=_unique(e for f in findings for e in f.errata),
        diagnoses=tuple(d for result in results for d in result.diagnoses),
        notes=_unique(n for result in results for n in result.notes),
        unknown=_unique(u for result in results for u in result.unknown),
    )


def _file_of(folder: Path) -> Path:
    """Return one of the files that `nsys export --type parquetdir` wrote into a folder.

    Raises:
        InputError: there are none.
    """
    found = next(iter(sorted(folder.glob("*.parquet"))), None)
    if found is None:
        raise InputError(
            f"{folder} is a folder",
            hint=f"give the files in it: gpuwhy read {folder}/*; a folder is read as a whole only "
            "if nsys export --type parquetdir wrote it",
        )
    return found


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
    whole = b"".join(kept)
    return whole, [whole]


def _again(kept: list[bytes], rest: Iterable[bytes]) -> Iterable[bytes]:
    yield from kept
    kept.clear()
    yield from rest


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
