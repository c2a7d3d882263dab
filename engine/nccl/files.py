"""Read files of records into a tally; say what a file is that has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from engine.errors import InputError
from engine.nccl import inspector, plugintrace, promtext
from engine.nccl.records import Record
from engine.nccl.tally import Tally
from engine.readers.text import Blocks, Source

_HEAD = 65_536
# A record that was pretty-printed for people: lines of it are kept until its brackets match.
_MOST_PRETTY = 65_536

_HOW: Final = (
    "set NCCL_PROFILER_PLUGIN and NCCL_INSPECTOR_ENABLE=1; how: gpuwhy ask 'NCCL Inspector'"
)

SUFFIXES: Final = (".log", ".jsonl", ".json", ".txt", ".prom")
"""Names that are read in a folder, also with ``.gz`` and ``.zst`` behind them."""

_PACKED = (".gz", ".zst")
_MOST_FILES = 65_536

Progress = Callable[[int, int | None], None]


class Format(StrEnum):
    """What a file is."""

    INSPECTOR = "inspector"
    PROMETHEUS = "inspector_prometheus"
    TRACE = "plugin_trace"


@dataclass(frozen=True, slots=True)
class Given:
    """A file to read: how to name it, and its path or chunks of bytes.

    ``listed``: nobody named it, it stands in a folder, so it may be something else.
    """

    name: str
    source: Path | Iterable[bytes]
    listed: bool = False


@dataclass(slots=True)
class Files:
    """What was read beside the tally itself.

    Attributes:
        files: how many held records; ``others`` in folders did not.
        sources: what wrote them.
        unread_lines: lines that should have held a record.
        warnings: what else could not be read.
        errors: files that were named and could not be read.
    """

    files: int = 0
    others: int = 0
    sources: list[str] = field(default_factory=list)
    unread_lines: int = 0
    warnings: list[str] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


def given(paths: Sequence[Path]) -> list[Given]:
    """Return the files named, and of folders those with the right names, in order.

    Raises:
        InputError: a folder holds no such file.
    """
    found: list[Given] = []
    for path in paths:
        if not path.is_dir():
            found.append(Given(str(path), path))
            continue
        inside = [p for p in sorted(path.rglob("*")) if _named(p) and p.is_file()]
        if not inside:
            raise InputError(
                f"the folder {path} holds no file of NCCL Inspector ({', '.join(SUFFIXES)})",
                hint=_HOW,
                code="no_durations",
            )
        found += [Given(str(p), p, listed=True) for p in inside[:_MOST_FILES]]
    return found


def _named(path: Path) -> bool:
    name = path.name
    for end in _PACKED:
        name = name.removesuffix(end)
    return name.endswith(SUFFIXES)


def format_of(head: bytes) -> Format | None:
    """Return the format that the first bytes of a file tell, None if they tell none."""
    if any(mark in head for mark in inspector.MARKS):
        return Format.INSPECTOR
    if any(mark in head for mark in promtext.MARKS):
        return Format.PROMETHEUS
    if any(mark in head for mark in plugintrace.MARKS):
        return Format.TRACE
    return None


def not_durations(name: str, head: bytes) -> InputError:
    """Return the error for a file without records."""
    if b"NCCL INFO" in head or b"NCCL WARN" in head:
        return InputError(
            f"{name} is an NCCL_DEBUG log: no duration stands in it",
            hint=f"{_HOW} (or nsys, Flight Recorder)",
            code="no_durations",
        )
    return InputError(
        f"{name} holds no record of NCCL Inspector or of a profiler plugin",
        hint="what a log shows: gpuwhy read FILE; how to record: gpuwhy ask 'NCCL Inspector'",
        code="no_records",
    )


def lines_to_records(kind: Format) -> Callable[[bytes], Iterator[Record]]:
    """Return what turns the lines of one file, in order, into records."""
    if kind is Format.PROMETHEUS:
        return promtext.PromText().feed
    if kind is Format.TRACE:
        return plugintrace.PluginTrace().feed
    return _Inspector().feed


def tally_of(
    sources: Iterable[Given],
    tally: Tally,
    on_progress: Progress | None = None,
) -> Files:
    """Count the records of files; one that cannot be read does not stop the others.

    Args:
        sources: what to read; gzip and zstd are unpacked.
        tally: gets the records.
        on_progress: told how many bytes of how many of the current file were read.

    Raises:
        InputError: none of them holds records.
    """
    files = Files()
    skipped: list[InputError] = []
    for one in sources:
        try:
            _read(one, tally, files, on_progress)
        except InputError as error:
            (skipped if one.listed else files.errors).append(_with_name(error, one.name))
    files.others = len(skipped)
    if not files.files and (files.errors or skipped):
        # Of files in a folder the log that people take for one says most.
        raise next((e for e in skipped if e.code == "no_durations"), (files.errors + skipped)[0])
    if skipped:
        more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        files.warnings.append(f"skipped: {skipped[0].message}{more}")
    return files


def _read(one: Given, tally: Tally, files: Files, on_progress: Progress | None) -> None:
    opened = Source(one.source, on_progress)
    kind = format_of(opened.head)
    if kind is None:
        raise not_durations(one.name, opened.head)
    files.files += 1
    files.sources.append(str(kind))
    feed = lines_to_records(kind)
    blocks = Blocks(opened.chunks())
    try:
        for block in blocks:
            files.unread_lines += _count(block, feed, tally, kind)
    except InputError as error:
        # What was read up to there counts.
        files.warnings.append(_with_name(error, one.name).one_line())
    if blocks.cut:
        files.warnings.append(f"{one.name}: {blocks.cut} line(s) were too long and were cut")
    files.warnings += [f"{one.name}: {note}" for note in opened.notes]


def _with_name(error: InputError, name: str) -> InputError:
    if name in error.message:
        return error
    return InputError(f"{name}: {error.message}", hint=error.hint, code=error.code)


def _count(
    block: bytes, feed: Callable[[bytes], Iterator[Record]], tally: Tally, kind: Format
) -> int:
    """Count the records of a block; return how many of its lines should have held one."""
    unread = 0
    for line in block.split(b"\n"):
        found = False
        for record in feed(line):
            tally.add(record)
            found = True
        unread += not found and kind is Format.INSPECTOR and inspector.is_whole_record(line)
    return unread


class _Inspector:
    """Records a line, and pretty-printed ones over several lines."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = self._depth = 0

    def feed(self, raw: bytes) -> Iterator[Record]:
        if self._depth == 0:
            if any(mark in raw for mark in inspector.MARKS):
                found = inspector.parse_record(raw)
                if found is not None:
                    yield found
                return
            if not raw.lstrip().startswith(b"{"):
                return
            self._lines, self._size = [], 0
        self._lines.append(raw)
        self._size += len(raw)
        self._depth += raw.count(b"{") - raw.count(b"}")
        if self._size > _MOST_PRETTY or self._depth < 0:
            self._depth = 0
        elif self._depth == 0:
            found = inspector.parse_record(b"\n".join(self._lines))
            if found is not None:
                yield found
