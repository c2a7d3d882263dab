"""A message as clauses: words without case, contractions or slips, and marks for what is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.router.spans import Mark, Marked
from bot.router.spelling import CONTRACTIONS, meant

_TOKEN = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|\d[\w.%]*|[\ue000-\uf8ff]|[?!.,;:\n]|[^\s\w]|\w+")
_ENDS = frozenset("?!.;\n")
# Marks that a clause may carry without being about them.
_TIMES = frozenset({"AT", "WINDOW", "SPAN", "SINCE", "THEN", "BETWEEN"})
_KINDS = _TIMES | {"TARGET", "NAMED", "CODE", "REASON", "SELECTOR"}


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a message that says one thing.

    Attributes:
        tokens: words in lower case, corrected; a mark is its kind in capitals.
        typed: the same as typed, in lower case.
        marks: the marks in order.
        question: it ends with a question mark.
    """

    tokens: tuple[str, ...]
    typed: tuple[str, ...]
    marks: tuple[Mark, ...]
    question: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens that are no marks."""
        return tuple(token for token in self.tokens if token not in _KINDS)

    @property
    def shape(self) -> str:
        """All tokens, joined by blanks."""
        return " ".join(self.tokens)

    def values(self, kind: str) -> list[str]:
        """Return the different values of the marks of a kind, in order."""
        return list(dict.fromkeys(str(mark.value) for mark in self.marks if mark.kind == kind))


def clauses(marked: Marked) -> list[Clause]:
    """Return the clauses of a marked text; punctuation is gone."""
    return [clause for clause in _split(marked) if clause.tokens]


def _split(marked: Marked) -> Iterator[Clause]:
    tokens: list[str] = []
    typed: list[str] = []
    marks: list[Mark] = []
    named = False

    def ended(*, question: bool) -> Clause:
        clause = Clause(tuple(tokens), tuple(typed), tuple(marks), question)
        tokens.clear()
        typed.clear()
        marks.clear()
        return clause

    for found in _TOKEN.finditer(marked.text):
        piece = found[0]
        mark = marked.at(piece) if len(piece) == 1 else None
        if mark:
            tokens.append(mark.kind)
            typed.append(mark.kind)
            marks.append(mark)
            named |= mark.kind not in _TIMES
        elif piece in _ENDS:
            yield ended(question=piece == "?" or "?" in marked.text[found.end() : found.end() + 2])
            named = False
        elif piece == "," or piece.lower() == "but":
            # What comes before a comma stands alone unless it names something.
            if not named:
                yield ended(question=False)
        elif piece[0].isalnum():
            words = CONTRACTIONS.get(piece.lower(), piece.lower().removesuffix("'s")).split()
            typed.extend(words)
            tokens.extend(map(meant, words))
    yield ended(question=False)
