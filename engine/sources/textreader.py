"""The fast reader of the text exposition format and OpenMetrics.

Files with many samples a series repeat the same bytes before the last ``} `` of a line again and
again. So those bytes are looked up in a dictionary that leads to the series; only the first line of
a series is parsed. What follows (value and time) is collected and turned into numbers a block at a
time. Whatever is out of the ordinary (exemplars, tabs, missing values) takes the careful way
through `engine.sources.sampleline`, which also decides what counts as malformed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.samples import Floats
from engine.sources.sampleline import (
    MS_FROM,
    STAMP_LIMIT,
    LineError,
    parse_head,
    parse_tail,
)
from engine.sources.table import SeriesIndex, Sink
from engine.sources.text import show

# Heads of lines nobody asked for are remembered too, about 300 bytes each. At this many they are
# forgotten, so that memory follows what is asked for and not what the file holds.
UNWANTED_HEADS = 100_000

# Deleting all other bytes from a block of tails leaves its shape: which separators, in which order.
_SHAPELESS = bytes(set(range(256)) - set(b" \t\n\v\f\r_#"))
_A_DAY = 86_400.0


@dataclass(slots=True)
class Skipped:
    """Lines of one file that hold no sample: how many, and the first with its number and reason."""

    count: int = 0
    line: int = 0
    reason: str = ""

    def add(self, line: int, reason: str) -> None:
        """Note one line."""
        self.count += 1
        if self.count == 1 or line < self.line:
            self.line, self.reason = line, reason


class TextReader:
    """Reads one file, block by block, into a sink.

    Attributes:
        skipped: the malformed lines met.
        samples: how many samples were read, wanted or not.
        comments: how many comment lines were met.
    """

    def __init__(
        self, sink: Sink, *, defaults: Mapping[str, str] | None = None, stamp: float | None = None
    ) -> None:
        """Start a file.

        Args:
            sink: takes the samples.
            defaults: labels for series that lack them, for example the exporter's address.
            stamp: if given, the time (s) of every sample, whatever its line says.
        """
        self.skipped = Skipped()
        self.samples = 0
        self.comments = 0
        self.stamp = stamp
        self._sink = sink
        self._index: SeriesIndex = sink.index
        self._defaults = dict(defaults or {})
        self._ids: dict[bytes, int] = {}
        self._unwanted = 0
        self._lines = 0
        self._newest = -math.inf

    def read(self, blocks: Iterable[bytes]) -> None:
        """Read blocks of whole lines; only the last line may lack its line end."""
        self._lines = 0
        for block in blocks:
            if block.isspace():
                self._lines += block.count(b"\n")
                continue
            text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
            if text.endswith(b"\n"):
                self._feed(text[:-1].split(b"\n"))
                continue
            *whole, last = text.split(b"\n")
            self._feed(whole)
            self._feed_last(last)

    def _feed(self, lines: list[bytes]) -> None:
        if self._unwanted > UNWANTED_HEADS:
            self._ids = {head: series for head, series in self._ids.items() if series >= 0}
            self._unwanted = 0
        ids: list[int] = []
        tails: list[bytes] = []
        numbers: list[int] = []
        known = self._ids.get
        for number, line in enumerate(lines, self._lines + 1):
            head, _, tail = line.rpartition(b"} ")
            series = known(head)
            if series is None:
                other = self._first_sight(line, head, number)
                if other is None:
                    continue
                series, tail = other
            ids.append(series)
            tails.append(tail)
            numbers.append(number)
        self._lines += len(lines)
        if ids:
            self._convert(ids, tails, numbers)

    def _first_sight(self, line: bytes, head: bytes, number: int) -> tuple[int, bytes] | None:
        """Find the series of a line whose head is not known; None if the line holds no sample."""
        if not head:
            # No labels: the name, up to the first space, is the head.
            head, _, tail = line.partition(b" ")
            if head in self._ids and b"{" not in tail:
                return self._ids[head], tail
        text = line.strip()
        if not text:
            return None
        if text.startswith(b"#"):
            self.comments += 1
            return None
        labelled = line.startswith(head + b"} ")
        tail = line[len(head) + 2 :] if labelled else b""
        if labelled and b" # " not in line and self._is_unwanted(head):
            series = self._index.unwanted(self._index.clocks.number_in(head))
            self._remember(head, series)
            return series, tail
        try:
            name, labels, end = parse_head(line)
        except LineError as e:
            self.skipped.add(number, str(e))
            return None
        series = self._index.id_of(name, {**self._defaults, **labels})
        if line[:end] == (head + b"}" if labelled else head):
            self._remember(head, series)
        rest = line[end:].partition(b"#")[0].strip()
        if not rest:
            self.skipped.add(number, f"no value after {_shown(name, labels)}")
            return None
        return series, rest

    def _is_unwanted(self, head: bytes) -> bool:
        names = self._index.wanted.names
        name = head.partition(b"{")[0].strip()
        return names is not None and name != b"" and name not in names

    def _remember(self, head: bytes, series: int) -> None:
        self._ids[head] = series
        self._unwanted += series < 0

    def _convert(self, ids: list[int], tails: list[bytes], numbers: list[int]) -> None:
        """Turn the tails of a block into numbers: in bulk if they are regular, else one by one."""
        tails.append(b"")
        joined = b"\n".join(tails)
        tails.pop()
        shape = joined.translate(None, _SHAPELESS)
        n = len(ids)
        flat: Floats | None = None
        if shape in (b" \n" * n, b"\n" * n):
            try:
                flat = np.array(list(map(float, joined.split())), dtype=np.float64)
            except ValueError:
                flat = None
        if flat is not None and len(flat) == n:
            self._emit(np.array(ids), flat, np.full(n, np.nan))
        elif flat is not None and len(flat) == 2 * n and np.all(np.abs(flat[1::2]) < STAMP_LIMIT):
            stamps = flat[1::2]
            self._emit(np.array(ids), flat[0::2], np.where(stamps > MS_FROM, stamps / 1000, stamps))
        else:
            self._convert_carefully(ids, tails, numbers)

    def _convert_carefully(self, ids: list[int], tails: list[bytes], numbers: list[int]) -> None:
        good: list[int] = []
        values: list[float] = []
        stamps: list[float] = []
        for series, tail, number in zip(ids, tails, numbers, strict=True):
            try:
                value, stamp = parse_tail(tail)
            except LineError as e:
                self.skipped.add(number, self._reason(e, series))
                continue
            good.append(series)
            values.append(value)
            stamps.append(stamp)
        if good:
            self._emit(np.array(good), np.array(values), np.array(stamps))

    def _reason(self, error: LineError, series: int) -> str:
        if series < 0:
            return str(error)
        shown = _shown(self._index.names[series], self._index.labels[series])
        return f"{error} after {shown}"

    def _feed_last(self, line: bytes) -> None:
        """Read a last line without line end: if it was cut, what is left may still look whole.

        1764432000000 (ms) less its last two digits reads as seconds of the year 2529, which would
        become the newest time of all. A time cut off wholly would make a sample without one.
        """
        before = self._newest
        if self.stamp is None and math.isfinite(before) and not line.lstrip().startswith(b"#"):
            try:
                _, _, end = parse_head(line)
                _, stamp = parse_tail(line[end:])
            except LineError:
                pass  # reported by the ordinary way below
            else:
                if math.isnan(stamp) or stamp > before + _A_DAY:
                    self._lines += 1
                    self.skipped.add(self._lines, f"cut off: {show(line, 60)}")
                    return
        self._feed([line])

    def _emit(self, ids: np.typing.NDArray[np.int64], values: Floats, stamps: Floats) -> None:
        self.samples += len(ids)
        self._newest = float(np.fmax(self._newest, np.fmax.reduce(stamps)))
        if self.stamp is not None:
            stamps = np.full(len(ids), self.stamp)
        self._sink.add(ids, values, stamps)


def _shown(name: str, labels: Mapping[str, str]) -> str:
    return f"{show(name, 80)}{{…}}" if labels else show(name, 80)
