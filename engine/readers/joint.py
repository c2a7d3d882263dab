"""Documents that say more together than alone, such as the dumps that the ranks of a job wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.readers.base import Context, Result

MAX_DOCUMENTS: Final = 4_096
"""So many documents of a kind are kept: more ranks than most jobs have."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document: the name of the input that it stands in, its line from 1, what was kept."""

    name: str
    line: int
    value: Any


Together = Callable[[Sequence[Document], Context], Result]
"""Says what documents of one kind show, in the order in which they were read."""


class Joint:
    """Keeps documents of such kinds until all inputs have been read."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[Together, list[Document]] = {}
        self._more = 0

    def keep(self, together: Together, document: Document) -> None:
        """Keep a document."""
        kept = self._kept.setdefault(together, [])
        if len(kept) < MAX_DOCUMENTS:
            kept.append(document)
        else:
            self._more += 1

    def results(self) -> list[Result]:
        """Return what the documents of each kind show."""
        found = []
        for together, documents in self._kept.items():
            result = together(documents, self._context)
            if self._more:
                result.notes.append(f"{self._more} more document(s) of this kind were not read.")
            found.append(result)
        return found
