"""Find the lines that a reader may want, by one pass of RE2 over a block.

Hundreds of byte strings can start something that a reader knows; most lines of a log hold none.
RE2 looks for all of them at once, in time linear in the text, some hundred MB/s, and says of a line
that holds one which readers it may be for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import re2

from engine.readers.base import Reader


class Scan:
    """The triggers and patterns of some readers, as one expression and as a set of them."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._owners, expressions = _expressions(tuple(type(reader) for reader in readers))
        self._any, self._each = _compiled(expressions)

    def first(self, block: bytes, start: int) -> int:
        """Return where the next trigger stands, -1 if there is none."""
        found = self._any.search(block, start)
        return -1 if found is None else int(found.start())

    def candidates(self, line: bytes, open_: Sequence[Reader]) -> list[Reader]:
        """Return the readers that may want a line, in their order, the open ones among them."""
        wanted = {self._owners[hit] for hit in self._each.Match(line) or ()}
        if not open_:
            return [self._readers[number] for number in sorted(wanted)]
        return [r for number, r in enumerate(self._readers) if number in wanted or r.open]


def lines_known(text: bytes) -> int:
    """Return how many lines of a text hold something that can start what a reader knows."""
    from engine.readers.table import READERS  # noqa: PLC0415 - the table imports the readers

    # Classes, which the table's type does not say: anything that makes a reader will do for it.
    triggers = {re2.escape(t): None for make in READERS for t in getattr(make, "triggers", ())}
    found = _compiled(tuple(triggers))[0].finditer(text)
    return len({text.count(b"\n", 0, hit.start()) for hit in found})


@cache
def _expressions(classes: tuple[type[Reader], ...]) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
    """Return the expressions of some readers, and for each the number of its reader."""
    owners: list[int] = []
    expressions: list[bytes] = []
    for number, reader in enumerate(classes):
        own = [re2.escape(trigger) for trigger in reader.triggers]
        pattern = getattr(reader, "pattern", None)
        if pattern is not None:
            own.append(b"(?:" + pattern + b")")
        expressions += own
        owners += [number] * len(own)
    return tuple(owners), tuple(expressions)


@cache
def _compiled(expressions: tuple[bytes, ...]) -> tuple[re2._Regexp[bytes], re2.Set]:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = 16 << 20
    each = re2.Set.SearchSet(options)
    for expression in expressions:
        each.Add(expression)
    each.Compile()
    return re2.compile(b"|".join(dict.fromkeys(expressions)), options), each
