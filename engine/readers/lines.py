"""One pass over the lines of a text, each offered to the readers that it may be for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from engine.readers.base import Reader, Skimmer
from engine.readers.scan import Scan
from engine.readers.text import MAX_LINE, clean


class Pass:
    """One pass over the lines of a text: which reader gets what, and what none wanted."""

    def __init__(self, readers: Sequence[Reader], before: int = 0) -> None:
        """Read; readers that are given several texts number on from the lines ``before``."""
        self._scan = Scan(readers)
        self._shift = {id(r): before for r in readers if getattr(r, "together", False)}
        self._skimming = [cast("Skimmer", r) for r in readers if hasattr(r, "skims")]
        self._open: list[Reader] = []
        self._number = 1
        self.unread = 0
        self.cut = 0

    @property
    def lines(self) -> int:
        """How many lines have been read."""
        return self._number - 1

    def block(self, block: bytes) -> None:
        """Take whole lines."""
        skimmed = 0
        for reader in self._skimming:
            if any(mark in block for mark in reader.skims):
                skimmed += reader.skim(self._number + self._shift.get(id(reader), 0), block)
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
        taken = any(r.feed(number + self._shift.get(id(r), 0), text) for r in offered)
        self._open = [r for r in offered if r.open]
        if not taken:
            self.unread += bare[:1] != b"#"
