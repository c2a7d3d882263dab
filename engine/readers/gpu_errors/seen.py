"""Messages that mean the same: how often they came, and from which ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_MAX_RANKS = 1024
_MAX_SHOWN = 8
# torchrun's and DeepSpeed's tags, a logger's words, and the workers of vLLM and SGLang.
_RANK = re.compile(
    r"\[(?:default|rank) ?(\d{1,6})\]:?|\b[Rr]ank[ =:]{1,2}(\d{1,6})\b|\b(?:Worker_)?TP(\d{1,4})\b"
)
# A rank's name stands at the start of a line; a message may speak of others'.
_HEAD = 200


@dataclass(slots=True)
class Seen:
    """Messages that mean the same."""

    line: int
    count: int = 0
    ranks: dict[int, None] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Count one more, with the rank that it names."""
        self.count += 1
        rank = _RANK.search(text[:_HEAD])
        if rank and len(self.ranks) < _MAX_RANKS:
            self.ranks[int(next(g for g in rank.groups() if g is not None))] = None

    @property
    def data(self) -> dict[str, Any]:
        """The count and the ranks as finding data."""
        ranks = {"ranks": sorted(self.ranks)} if self.ranks else {}
        return {"count": self.count} | ranks

    @property
    def who(self) -> str:
        """Who met it, as the start of a sentence."""
        ranks = sorted(self.ranks)
        if not ranks:
            return "The program"
        shown = ", ".join(map(str, ranks[:_MAX_SHOWN])) + (" …" if len(ranks) > _MAX_SHOWN else "")
        return f"Rank{'' if len(ranks) == 1 else 's'} {shown}"

    @property
    def times(self) -> str:
        """How often, to be put behind a word."""
        return f" ({self.count} times)" if self.count > 1 else ""
