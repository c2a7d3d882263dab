"""Marking what is found in a sentence, so that its shape can be read without its names.

"why is gpu 5 on node-3 slow?" becomes "why is TARGET slow?": finders mark times, codes and targets
one after another, and what one has marked the next no longer sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

# A mark is one character of Unicode's private use area: no word, no digit, and never in a message
# (`bot.router.slacktext` takes such characters out).
_FIRST, _LAST = 0xE000, 0xF8FF

Reading: TypeAlias = "Callable[[re.Match[str]], str | float | None]"


class Mark(NamedTuple):
    """What was found: its kind, in capitals, and what it stands for."""

    kind: str
    value: str | float


@dataclass(slots=True)
class Marked:
    """A text with one character in place of each thing found."""

    text: str
    marks: list[Mark] = field(default_factory=list)

    def find(self, kind: str, pattern: re.Pattern[str], reading: Reading) -> None:
        """Put a mark wherever a pattern matches, unless its reading is None."""

        def replace(found: re.Match[str]) -> str:
            value = reading(found)
            if value is None or _FIRST + len(self.marks) > _LAST:
                return found[0]
            self.marks.append(Mark(kind, value))
            return f" {chr(_FIRST + len(self.marks) - 1)} "

        self.text = pattern.sub(replace, self.text)

    def at(self, char: str) -> Mark | None:
        """Return the mark that a character is, or None for any other character."""
        number = ord(char) - _FIRST
        return self.marks[number] if 0 <= number < len(self.marks) else None
