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

    def find(self, kind: str, what: re.Pattern[str], reading: Reading) -> None:
        """Put a mark wherever a pattern matches, unless its reading is None."""

        def replace(found: re.Match[str]) -> str:
            value = reading(found)
            if value is None or _FIRST + len(self.marks) > _LAST:
                return found[0]
            self.marks.append(Mark(kind, value))
            return f" {chr(_FIRST + len(self.marks) - 1)} "

        self.text = what.sub(replace, self.text)

    def at(self, char: str) -> Mark | None:
        """Return the mark that a character is, or None for any other character."""
        number = ord(char) - _FIRST
        return self.marks[number] if 0 <= number < len(self.marks) else None

    def values(self, kind: str) -> list[str | float]:
        """Return what the marks of a kind stand for, in the order in which they were found."""
        return [mark.value for mark in self.marks if mark.kind == kind]


def pattern(*parts: str) -> re.Pattern[str]:
    """Return the parts as one pattern that does not look at case."""
    return re.compile("".join(parts), re.IGNORECASE)


def shape(*parts: str) -> re.Pattern[str]:
    """Return the parts as one pattern for a clause's shape, where case tells marks from words."""
    return re.compile("".join(parts))


def word_set(*lines: str) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(" ".join(lines).split())


def any_of(*lines: str) -> str:
    """Return a pattern for any of the words of some lines."""
    return f"(?:{'|'.join(' '.join(lines).split())})"
