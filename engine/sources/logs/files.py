"""Events from log files: plain text, JSON lines, journald's export format; ``-`` is stdin.

A file is read once and forgotten; only its Xids are kept. Rotated logs may be packed (gzip, zstd).
Times of syslog have no year: they are put into the year that ends with the window.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import BinaryIO

from engine.errors import InputError
from engine.readers.logline import LogLine, Records
from engine.readers.stamp import Stamp
from engine.readers.text import BLOCK, Blocks, Source, clean
from engine.sources.logs.parse import MARKS, EventParser
from engine.sources.logs.port import LogEvent, Unread
from engine.sources.metricsfile import Cancelled, MetricsFile
from engine.sources.text import some

_FIELDS = (b"__REALTIME_TIMESTAMP=", b"_HOSTNAME=")
_WANTED = (*(mark.encode() for mark in MARKS), *_FIELDS)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MAX_LINE = 65_536
_MOST_RECORDS = 200_000
_CHECK = "check the path and its mode; the user must be allowed to read it"
_TEXT = (
    "give the kernel log as text, plain or packed (gzip, zstd, xz, bzip2): "
    "journalctl -k -o json, or dmesg --time-format iso"
)
_HINTS = {"is a directory": "name the log files in it", "is binary": _TEXT}
# What tells a kernel log from other text: its name in syslog or the journal, or how dmesg begins.
_KERNEL = re.compile(
    rb"NVRM: |\bXid\b|\bkernel(?:\[\d{1,7}\])?: |\"kernel\"|=kernel\b|__REALTIME_TIMESTAMP="
    rb"|(?:^|[\s>\"])\[ {0,6}\d{1,9}\.\d{3,6}\] "
    rb"|^(?:<\d{1,3}>)?\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d"
    rb"|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[,.]\d{6}[+-]\d\d:?\d\d |^\d{1,3},\d{1,12},\d{1,18},[-c]",
    re.MULTILINE,
)


class LogFiles:
    """Events of some files."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        stdin: BinaryIO | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Nothing is read yet; reading takes longer than a server's answer may."""
        self._files = tuple(MetricsFile(path, stdin) for path in paths)
        self.timeout_s = timeout_s
        self._warnings: list[str] = []
        self._unread: list[Unread] = []
        self._lines: list[tuple[MetricsFile, list[LogLine]]] | None = None
        self._stop = threading.Event()

    @property
    def name(self) -> str:
        """The files."""
        return some([file.label for file in self._files])

    @property
    def needs_hosts(self) -> bool:
        """A file is read whole."""
        return False

    @property
    def queries(self) -> int:
        """No requests are sent."""
        return 0

    async def events(self, hosts: Sequence[str] | None, start: float, end: float) -> list[LogEvent]:
        """Read the files; see `engine.sources.logs.port.LogSource`."""
        del hosts
        if self._lines is None:
            try:
                self._lines = await asyncio.to_thread(self._read)
            except asyncio.CancelledError:
                self._stop.set()  # nobody waits any longer: the thread is to end
                raise
        found: list[LogEvent] = []
        for file, lines in self._lines:
            parser = EventParser(f"kernel log {file.label}", start, end)
            parser.feed(_placed(line, end) for line in lines)
            found += parser.done()
            self._tell(parser, file.label)
        return sorted(found, key=lambda event: event.order)

    def take_unread(self) -> list[Unread]:
        """Return the files that could not be read."""
        taken, self._unread = self._unread, []
        return taken

    def take_warnings(self) -> list[str]:
        """Return the warnings not taken yet."""
        taken, self._warnings = self._warnings, []
        return taken

    async def aclose(self) -> None:
        """Stop reading, if that still goes on, and throw copies of pipes away."""
        self._stop.set()
        for file in self._files:
            file.close()

    def _read(self) -> list[tuple[MetricsFile, list[LogLine]]]:
        return [(file, list(self._of(file))) for file in self._files]

    def _of(self, file: MetricsFile) -> Iterator[LogLine]:
        """Yield the records of one file that can hold an Xid; what cannot be read is told."""
        records = Records()
        number = kept = 0
        known = False
        try:
            file.prepare(self._stop)
            with file.open() as stream:
                for block in Blocks(Source(self._chunks(stream)).chunks()):
                    known = known or _KERNEL.search(block) is not None
                    if not any(mark in block for mark in _WANTED):
                        number += block.count(b"\n")
                        continue
                    for raw in block.split(b"\n")[:-1]:
                        number += 1
                        if kept < _MOST_RECORDS and any(mark in raw for mark in _WANTED):
                            lines, _ = records.feed(number, clean(raw[:_MAX_LINE]))
                            kept += len(lines)
                            yield from lines
                yield from records.flush()
            if not known:
                self._warnings.append(
                    f"no line of a kernel log in {file.label}; check that it is the right file"
                )
        except Cancelled:
            return
        except InputError as error:
            self._unread.append(_unread(file, error))
        except (OSError, ValueError) as error:
            self._unread.append(_unread(file, file.unreadable(error)))
        if kept >= _MOST_RECORDS:
            said = f"only the first {_MOST_RECORDS} records that may hold an Xid are read"
            self._unread.append(Unread(file.label, said, "give a part of it"))

    def _chunks(self, stream: BinaryIO) -> Iterator[bytes]:
        while chunk := stream.read(BLOCK):
            if self._stop.is_set():
                raise Cancelled
            yield chunk

    def _tell(self, parser: EventParser, shown: str) -> None:
        if parser.unplaced:
            self._warnings.append(
                f"{shown}: {parser.unplaced} Xid(s) without a time of day are left out; give "
                "dmesg --time-format iso, or journalctl -k -o json"
            )
        if parser.local:
            self._warnings.append(f"{shown}: its times have no zone and are taken as UTC")


def _unread(file: MetricsFile, error: InputError) -> Unread:
    """Say why a file could not be read, its name once, and what to do about it."""
    why = error.message.removeprefix(file.label).lstrip(": ")
    hint = next((fix for words, fix in _HINTS.items() if words in why), error.hint)
    return Unread(file.label, why, hint or _CHECK)


def _placed(line: LogLine, end: float) -> LogLine:
    """Give a time without a year the latest year that does not put it after the window."""
    stamp = line.stamp
    if stamp is None or stamp.form != "yearless" or stamp.text is None:
        return line
    day, clock = stamp.text[4:6], stamp.text[7:]
    # A log may be written by a clock that is ahead: a day of grace.
    latest = datetime.fromtimestamp(min(max(end, 0.0), 32_503_680_000.0) + 86_400, UTC)
    for year in (latest.year, latest.year - 1):
        text = f"{year}-{_MONTHS.index(stamp.text[:3]) + 1:02d}-{int(day):02d}T{clock[:8]}"
        try:
            moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            continue  # the 29th of February of another year
        if moment <= latest:
            order = moment.timestamp() + stamp.order % 1.0
            return replace(line, stamp=Stamp(text, order, "local", stamp.boot_s))
    return line
