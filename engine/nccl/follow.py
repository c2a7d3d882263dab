"""Follow files that grow: new ones in folders, rotation, truncation, half-written lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from engine.nccl.files import Format, format_of, lines_to_records
from engine.nccl.inspector import is_whole_record
from engine.nccl.records import Record

SUFFIXES: Final = (".log", ".jsonl", ".json", ".txt")
"""Names that are followed in a folder; Inspector's own are ``HOST-pidN.log``."""

_CHUNK = 1 << 20
# A line that is longer than any record is given up.
_LONGEST = 1 << 20
_MOST_FILES = 4_096
# A file that was deleted is let go after so many polls: it may only be changing its name.
_MOST_MISSED = 30
# So much of a file without a record, and it is taken for something else.
_PATIENCE = 1 << 18


@dataclass(slots=True)
class _Followed:
    path: Path
    job: str | None
    file: BinaryIO | None = None
    identity: tuple[int, int] = (0, 0)
    offset: int = 0
    rest: bytes = b""
    feed: Callable[[bytes], Iterator[Record]] | None = None
    looked: int = 0
    skipped: bool = False
    missed: int = 0


@dataclass(slots=True)
class Counts:
    """What following met.

    Attributes:
        files: followed now.
        other: files that hold no records.
        lines: whole lines read; ``bad`` of them should have held a record and did not.
        rotated, truncated: how often a file was replaced, or began anew.
        gone: files that were deleted.
        left_out: files beyond the most that are followed.
    """

    files: int = 0
    other: int = 0
    lines: int = 0
    bad: int = 0
    rotated: int = 0
    truncated: int = 0
    gone: int = 0
    left_out: int = 0
    errors: dict[str, str] = field(default_factory=dict)


class Follower:
    """Reads what was added to files, a bounded piece at each `poll`.

    Attributes:
        counts: for metrics.
        backlog: bytes that were there and not read at the last poll.
    """

    def __init__(self, given: Sequence[Path]) -> None:
        """Follow files, and all files of folders.

        Args:
            given: files, which may not exist yet, and folders.
        """
        self._given = list(given)
        self._followed: dict[Path, _Followed] = {}
        self.counts = Counts()
        self.backlog = 0

    def poll(self) -> Iterator[Record]:
        """Yield records added since the last time, at most about 1 MiB of each file."""
        self._scan()
        self.backlog = 0
        for one in self._followed.values():
            if not one.skipped:
                yield from self._read(one)
        for one in [o for o in self._followed.values() if _gone(o)]:
            self._let_go(one)

    def close(self) -> None:
        """Close all files."""
        for one in self._followed.values():
            if one.file is not None:
                one.file.close()
                one.file = None

    def _scan(self) -> None:
        self.counts.left_out = 0
        for given in self._given:
            try:
                given.stat()
                if given.is_dir():
                    for path in sorted(given.rglob("*")):
                        if path.suffix in SUFFIXES and path.is_file():
                            self._follow(path)
                elif given not in self._followed:
                    self._follow(given)
            except OSError as error:
                self.counts.errors[str(given)] = error.strerror or str(error)
            else:
                if given not in self._followed:
                    self.counts.errors.pop(str(given), None)

    def _follow(self, path: Path) -> None:
        if path in self._followed:
            return
        if len(self._followed) >= _MOST_FILES:
            self.counts.left_out += 1
            return
        self._followed[path] = _Followed(path, _job_of(path))
        self.counts.files += 1

    def _read(self, one: _Followed) -> Iterator[Record]:
        try:
            if one.file is None:
                one.file = one.path.open("rb")
                status = os.fstat(one.file.fileno())
                one.identity, one.offset, one.rest = (status.st_dev, status.st_ino), 0, b""
            chunk = self._chunk(one)
        except OSError as error:
            self.counts.errors[str(one.path)] = error.strerror or str(error)
            one.missed += isinstance(error, FileNotFoundError)
            if one.file is not None:
                one.file.close()
                one.file = None
            return
        self.counts.errors.pop(str(one.path), None)
        if chunk:
            yield from self._lines(one, chunk)

    def _chunk(self, one: _Followed) -> bytes:
        """Return the next piece; at the end of a file that was replaced, open the new one."""
        assert one.file is not None
        size = one.file.seek(0, 2)
        if size < one.offset:
            self.counts.truncated += 1
            one.offset, one.rest, one.feed, one.looked = 0, b"", None, 0
        one.file.seek(one.offset)
        chunk = one.file.read(_CHUNK)
        one.offset += len(chunk)
        self.backlog += max(0, size - one.offset)
        if chunk:
            one.missed = 0
        if not chunk and self._replaced(one):
            self.counts.rotated += 1
            one.file.close()
            one.file = None
            one.feed, one.looked = None, 0
            # The new file is read at the next poll; that it is there counts as backlog.
            self.backlog += 1
        return chunk

    def _replaced(self, one: _Followed) -> bool:
        try:
            status = one.path.stat()
        except FileNotFoundError:
            one.missed += 1  # being replaced just now, or gone for good
            return False
        one.missed = 0
        return (status.st_dev, status.st_ino) != one.identity

    def _let_go(self, one: _Followed) -> None:
        if one.file is not None:
            one.file.close()
        del self._followed[one.path]
        self.counts.errors.pop(str(one.path), None)
        self.counts.gone += 1
        self.counts.files -= not one.skipped

    def _lines(self, one: _Followed, chunk: bytes) -> Iterator[Record]:
        data = one.rest + chunk
        if one.feed is None:
            kind = format_of(data[: _CHUNK + _LONGEST])
            if kind is None or kind is Format.PROMETHEUS:
                self._undecided(one, data, known=kind is not None)
                return
            one.feed = lines_to_records(kind)
        lines = data.split(b"\n")
        one.rest = lines.pop()
        if len(one.rest) > _LONGEST:
            one.rest = b""
            self.counts.bad += 1
        for line in lines:
            self.counts.lines += 1
            found = False
            for record in one.feed(line):
                found = True
                yield record if record.job or not one.job else record._replace(job=one.job)
            self.counts.bad += not found and is_whole_record(line)

    def _undecided(self, one: _Followed, data: bytes, *, known: bool) -> None:
        """Wait for a first record; after enough text without one the file is left alone."""
        one.looked += len(data) - len(one.rest)
        one.rest = data[-_LONGEST:]
        if known or one.looked > _PATIENCE:
            one.skipped, one.rest = True, b""
            self.counts.other += 1
            self.counts.files -= 1
            if one.file is not None:
                one.file.close()
                one.file = None


def _gone(one: _Followed) -> bool:
    return one.missed > _MOST_MISSED or (one.skipped and not one.path.exists())


def _job_of(path: Path) -> str | None:
    """Return the Slurm job in the name of the folder: ``nccl-inspector-1234``."""
    for part in reversed(path.parts[:-1]):
        job = part.removeprefix("nccl-inspector-")
        if job != part and job.isascii() and job.isdigit():
            return job[:16]
    return None
