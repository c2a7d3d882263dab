"""Metrics files: text exposition or OpenMetrics, one or many, with or without times.

Files are streamed once for every call, in a thread, so that a gigabyte neither fills memory nor
blocks the event loop. Times are milliseconds in the text format and seconds in OpenMetrics; they
are told apart by size (see `engine.sources.sampleline`).
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from engine.errors import InputError
from engine.samples import Batch, Matcher, Selection
from engine.sources.matching import Wanted, distinct
from engine.sources.metricsfile import Cancelled, MetricsFile
from engine.sources.table import LastSeen, Leftovers, Samples, SeriesIndex, Sink
from engine.sources.text import some
from engine.sources.textblocks import blocks
from engine.sources.textreader import TextReader

Progress = Callable[[int, int], None]


class FileSource:
    """Readings from metrics files, merged as if they were one.

    Samples without times are taken in the order they are found (`RawSeries.timed` is False). Where
    two samples of a series have the same time, the one read last counts.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        on_progress: Progress | None = None,
        *,
        stdin: BinaryIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Name the files; nothing is opened yet.

        Args:
            paths: files, plain or gzip; ``-`` is standard input.
            on_progress: called from the reading thread with bytes done and bytes in all, once a
                block of 256 KiB.
            stdin: what ``-`` reads; the process's standard input by default.
            clock: Unix seconds, when a pipe without times in it was read.

        Raises:
            InputError: no files, or standard input named twice.
        """
        if not paths:
            raise InputError("no metrics file is named")
        if [os.fspath(p) for p in paths].count("-") > 1:
            raise InputError("standard input (-) is named twice")
        self._files = [MetricsFile(path, stdin) for path in paths]
        self._on_progress = on_progress
        self._clock = clock
        self._lock = asyncio.Lock()
        self._newest: float | None = None
        self._shifts: Mapping[str, float] = {}
        self._told: set[str] = set()
        self._pending: list[str] = []

    @property
    def name(self) -> str:
        """The files' names."""
        return some([f.label for f in self._files])

    @property
    def rereads(self) -> bool:
        """Every call reads the files from the start."""
        return True

    @property
    def queries(self) -> int:
        """Files send no requests."""
        return 0

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Read the files once for all selections; see `engine.sources.port.Source`."""
        sink = Samples(SeriesIndex(Wanted(selections)), *self._moment(at))
        await self._pass(sink)
        series, left = sink.series()
        self._tell_leftovers(left)
        moment = sink.moment()
        if moment is None and at is not None and series:
            self._tell(f"{self.name}: no sample has a time, so the time asked for is not used")
        warnings = self.take_warnings()
        written = self._written() if moment is None and series else None
        return Batch(series, moment, 0, warnings, written)

    def _moment(self, at: float | None) -> tuple[float | None, Mapping[str, float]]:
        """Return the moment to read for, and the clocks that are ahead unless it was named."""
        known = at is None or at == self._newest
        return (self._newest, self._shifts) if known else (at, {})

    def _written(self) -> float:
        """Return when the newest of the files was written to; a pipe is written now."""
        times = [file.written for file in self._files]
        known = [t for t in times if t is not None]
        return max(known) if len(known) == len(times) else self._clock()

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """Read the files once; see `engine.sources.port.Source`."""
        selection = Selection(tuple(names), tuple(matchers), window_s)
        sink = LastSeen(SeriesIndex(Wanted([selection])), *self._moment(at))
        await self._pass(sink)
        return distinct(sink.present(), labels)

    def take_warnings(self) -> list[str]:
        """Return the warnings that no answer has carried yet, and forget them."""
        taken, self._pending = self._pending, []
        return taken

    async def aclose(self) -> None:
        """Throw away the copies of pipes and standard input."""
        for file in self._files:
            file.close()

    async def _pass(self, sink: Sink) -> None:
        stop = threading.Event()
        async with self._lock:  # passes share the copies of pipes
            try:
                await asyncio.to_thread(self._read, sink, stop)
            finally:
                stop.set()  # a cancelled caller must not wait for the rest of a large file
        if self._newest is None and sink.at is None:
            self._newest = sink.moment()
            told = sink.told()
            self._shifts = told.shifts
            if told.warning:
                self._tell(f"{self.name}: {told.warning}")

    def _read(self, sink: Sink, stop: threading.Event) -> None:
        for file in self._files:
            file.prepare(stop)
        total = sum(f.size for f in self._files)
        before = 0
        for file in self._files:
            self._read_one(file, sink, stop, before, total)
            before += file.size
        sink.written = self._written()

    def _read_one(
        self, file: MetricsFile, sink: Sink, stop: threading.Event, before: int, total: int
    ) -> None:
        def on_read(done: int) -> None:
            if stop.is_set():
                raise Cancelled
            if self._on_progress is not None:
                self._on_progress(min(before + done, total), total)

        reader = TextReader(sink)
        with file.open() as stream:
            pieces = blocks(
                stream,
                file.label,
                on_read=on_read,
                on_damage=lambda why: self._tell(f"{file.label}: {why}"),
            )
            try:
                reader.read(pieces)
            except OSError as e:  # a bad disk, a network share that went away
                raise file.unreadable(e) from e
        bad = reader.skipped
        if not reader.samples and bad.count:
            raise InputError(
                f"{file.label}:{bad.line}: {bad.reason}; no line of it could be read",
                hint="metrics come as Prometheus or OpenMetrics text",
            )
        if not reader.samples and not reader.comments:
            raise InputError(f"{file.label} is empty", hint="check what should have written it")
        if bad.count:
            lines = "1 line" if bad.count == 1 else f"{bad.count} lines"
            self._tell(f"{file.label}:{bad.line}: {bad.reason}; {lines} skipped, the rest is used")

    def _tell_leftovers(self, left: Leftovers) -> None:
        if left.repeated:
            self._tell(
                f"{self.name}: {left.repeated} samples repeat a time of their series (first: "
                f"{left.examples['repeated']}); the one read last counts"
            )
        if left.untimed:
            self._tell(
                f"{self.name}: {left.untimed} samples without a time stand among others with one "
                f"(first: {left.examples['untimed']}) and are not used"
            )

    def _tell(self, warning: str) -> None:
        if warning not in self._told:
            self._told.add(warning)
            self._pending.append(warning)
