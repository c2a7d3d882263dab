"""One pass over the lines of a text, each offered to the readers that it may be for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from engine.readers.base import Asked, Reader, Skimmer
from engine.readers.guard import Guard
from engine.readers.scan import Scan
from engine.readers.talk import LONG, mentions, without_quotes
from engine.readers.text import MAX_LINE, bare
from engine.redact import secrets_in

# First characters of a line that may be blank or a poster's remark.
_LEADING = np.zeros(256, dtype=np.bool_)
_LEADING[list(b" \t\r\f\v\n#")] = True


_LINE_FEED = 10
# More secrets are not looked for in parts; whole ones are masked whatever their number.
_SECRETS = 1_000


class Pass:
    """One pass over the lines of a text: which reader gets what, and what none wanted."""

    def __init__(self, readers: Sequence[Reader], guard: Guard, before: int = 0) -> None:
        """Read; readers that are given several texts number on from the lines ``before``."""
        self._guard = guard
        self._scan = Scan(readers)
        self._shift = {id(r): before for r in readers if getattr(r, "together", False)}
        self._skimming = [cast("Skimmer", r) for r in readers if hasattr(r, "skims")]
        self._open: list[Reader] = []
        # The reader that has lines to itself while it is open, and the lines it has not decided on.
        self._holder = next((r for r in readers if getattr(r, "holds", False)), None)
        self._held: list[tuple[int, bytes]] = []
        self._number = 1
        self._long = False
        self._asked = [cast("Asked", r) for r in readers if hasattr(r, "long")]
        self.unread = 0
        self.cut = 0
        self.secrets: set[str] = set()

    @property
    def lines(self) -> int:
        """How many lines have been read."""
        return self._number - 1

    def block(self, block: bytes) -> None:
        """Take whole lines."""
        block = bare(block)
        if not self._long and (self._number > 1 or block.count(b"\n") > LONG):
            self._long = True
            for one in self._asked:
                one.long = True
        skimmed = 0
        for reader in self._skimming:
            if any(mark in block for mark in reader.skims):
                number = self._number + self._shift.get(id(reader), 0)
                skimmed += self._guard.skim(reader, number, block)
        unread_before, at = self.unread, 0
        while at < len(block):
            if not self._open and not self._held:
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
        self._number += lines.count(b"\n")
        self.unread += _saying(lines)

    def finish(self) -> None:
        """Offer to the others what is held still: there are no more lines."""
        self._release()

    def _line(self, raw: bytes) -> None:
        number = self._number
        self._number += 1
        if not raw.strip():
            return
        if len(raw) > MAX_LINE:
            self.cut += 1
            raw = raw[:MAX_LINE]
        if self._held:
            self._hold(number, raw)
        else:
            self._offer(number, raw)

    def _hold(self, number: int, raw: bytes) -> None:
        """Give a line to the holder alone; what it refuses in the end, the others get."""
        assert self._holder is not None
        self._held.append((number, raw))
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        if len(self.secrets) < _SECRETS:
            self.secrets |= secrets_in(text)
        shift = self._shift.get(id(self._holder), 0)
        taken = self._guard.feed(self._holder, number + shift, text)
        if self._holder.open:
            return
        if taken:
            self._held = []
        else:
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for number, raw in held:
            self._offer(number, raw, again=True)

    def _offer(self, number: int, raw: bytes, *, again: bool = False) -> None:
        offered = self._scan.candidates(raw, self._open)
        holder = self._holder
        if holder is not None and holder in offered:
            if again:
                offered.remove(holder)
            elif not raw.rstrip().endswith((b"}", b"]")):
                self._hold(number, raw)
                return
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        if len(self.secrets) < _SECRETS:
            self.secrets |= secrets_in(text)
        if any(not r.open for r in offered):
            offered = self._meant(raw, text, offered)
        feed, shift = self._guard.feed, self._shift
        taken = any(feed(r, number + shift.get(id(r), 0), text) for r in offered)
        if holder is not None and holder.open:
            self._held = [(number, raw)]
        self._open = [r for r in offered if r.open and r is not holder]
        if not taken:
            self.unread += raw.lstrip()[:1] != b"#"

    def _meant(self, raw: bytes, text: str, offered: list[Reader]) -> list[Reader]:
        """Leave out readers of a message that a line only mentions."""
        if mentions(text, long=self._long):
            return [r for r in offered if r.open or r is self._holder]
        bare = without_quotes(raw) if self._long else None
        if bare is None:
            return offered
        wanted = self._scan.candidates(bare, self._open)
        return [r for r in offered if r in wanted]


def _saying(lines: bytes) -> int:
    """Return how many of some whole lines are neither blank nor a poster's remark."""
    characters = np.frombuffer(lines, dtype=np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(characters[:-1] == _LINE_FEED) + 1))
    doubtful = starts[_LEADING[characters[starts]]]
    said = sum(
        lines[at : lines.find(b"\n", at)].lstrip()[:1] not in {b"", b"#"}
        for at in doubtful.tolist()
    )
    return len(starts) - len(doubtful) + said
