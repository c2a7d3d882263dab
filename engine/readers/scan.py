"""Find the lines that a reader may want, by one pass of RE2 over a block.

Hundreds of byte strings can start something that a reader knows; most lines of a log hold none.
RE2 looks for all of them at once, in time linear in the text, some hundred MB/s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import re2

from engine.readers.base import Reader


class Scan:
    """The triggers and patterns of some readers, as one expression and reader by reader."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        patterns = [
            (tuple(r.triggers), re.compile(p) if (p := getattr(r, "pattern", None)) else None)
            for r in readers
        ]
        self._wanted = list(zip(readers, patterns, strict=True))
        self._any = _compiled(
            tuple(
                [re2.escape(t) for r in readers for t in r.triggers]
                + [b"(?:" + p + b")" for r in readers if (p := getattr(r, "pattern", None))]
            )
        )

    def first(self, block: bytes, start: int) -> int:
        """Return where the next trigger stands, -1 if there is none."""
        found = self._any.search(block, start)
        return -1 if found is None else int(found.start())

    def candidates(self, line: bytes) -> list[Reader]:
        """Return the readers that may want a line, in their order, the open ones among them."""
        return [
            reader
            for reader, (triggers, pattern) in self._wanted
            if reader.open
            or any(trigger in line for trigger in triggers)
            or (pattern is not None and pattern.search(line))
        ]


def lines_known(text: bytes) -> int:
    """Return how many lines of a text hold something that can start what a reader knows."""
    from engine.readers.table import READERS  # noqa: PLC0415 - the table imports the readers

    # Classes, which the table's type does not say: anything that makes a reader will do for it.
    triggers = {re2.escape(t): None for make in READERS for t in getattr(make, "triggers", ())}
    found = _compiled(tuple(triggers)).finditer(text)
    return len({text.count(b"\n", 0, hit.start()) for hit in found})


@cache
def _compiled(parts: tuple[bytes, ...]) -> re2._Regexp[bytes]:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(b"|".join(dict.fromkeys(parts)), options)
