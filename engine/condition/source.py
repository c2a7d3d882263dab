"""The text of a condition and where it was written, so that every fault names its exact place."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.catalogue.nearest import did_you_mean
from engine.catalogue.types import Place
from engine.condition.tree import Span
from engine.errors import CatalogueError, Problem

MAX_WINDOW_S = 7 * 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(?:\d{1,9}[smhdw])+")
_PART = re.compile(r"(\d+)([smhdw])")


class Source:
    """A condition's text with its `Place`.

    ``place`` is that of the text's first character; where the text has several lines (a YAML
    block), each is taken to start in the same column.
    """

    def __init__(self, text: str, place: Place) -> None:
        self.text = text
        self.place = place

    def error(self, span: Span, message: str, hint: str = "") -> CatalogueError:
        """Return an error that points at the first character of ``span``."""
        before = self.text[: span[0]]
        line = self.place.line + before.count("\n")
        column = self.place.column + span[0] - (before.rfind("\n") + 1)
        return CatalogueError([Problem(self.place.file, line, column, message, hint)])

    def unknown(self, span: Span, what: str, name: str, known: Iterable[str]) -> CatalogueError:
        """Return an error for a name that does not exist, offering the nearest that does."""
        return self.error(span, f"unknown {what} {_short(name)!r}", did_you_mean(name, known))

    def seconds(self, span: Span, duration: str) -> int:
        """Return the seconds of a duration such as ``90s``, ``5m`` or ``1h30m`` (up to 7d)."""
        if not _DURATION.fullmatch(duration):
            raise self.error(
                span, f"{_short(duration)!r} is no duration", 'write it like "90s" or "5m"'
            )
        total = sum(int(n) * _UNITS[unit] for n, unit in _PART.findall(duration))
        if not 0 < total <= MAX_WINDOW_S:
            raise self.error(span, f"{_short(duration)!r} is out of bounds", 'use "1s" up to "7d"')
        return total


def _short(text: str) -> str:
    """Cut what a message quotes: a bad text may be long."""
    return text if len(text) <= 60 else f"{text[:57]}..."
