"""From what fires at each moment to spans: when a rule began to fire, when it ended, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.history.replaymodel import Ended, Firing
from engine.model import Confidence, Entity

# A rule and what it is said of (`Entity.key`).
Key = tuple[str, tuple[str, str, str]]
_WORDS = (None, Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)
# So many are listed; more is a rule that flaps, and what it fires on is known by then.
MOST_FIRINGS = 20_000


@dataclass(frozen=True, slots=True)
class Fire:
    """A rule that fires at a moment; ``confidence`` is None for a symptom."""

    entity: Entity
    confidence: Confidence | None


@dataclass(slots=True)
class _Open:
    entity: Entity
    start: float
    end: float
    moments: int
    confidence: Confidence | None
    from_before: bool


@dataclass(slots=True)
class Total:
    """Sums of a rule's firings, those that are not listed included (s)."""

    firings: int = 0
    lasted_s: float = 0.0
    longest_s: float = 0.0


class Episodes:
    """Collects firings over moments that come in order, ``step_s`` apart."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._open: dict[Key, _Open] = {}
        self._began = False
        self.firings: list[Firing] = []
        self.left_out = 0
        self.totals: dict[str, Total] = {}
        self.entities: dict[str, set[tuple[str, str, str]]] = {}

    def look(self, at: float, fired: Mapping[Key, Fire], why: Callable[[Key], Ended]) -> None:
        """Take one moment (Unix s): what fires, and why what did before does not any more."""
        for key in [key for key in self._open if key not in fired]:
            self._close(key, why(key))
        for key, fire in fired.items():
            one = self._open.get(key)
            if one is None:
                self._open[key] = _Open(fire.entity, at, at, 1, fire.confidence, not self._began)
            else:
                one.end, one.moments = at, one.moments + 1
                one.confidence = max(one.confidence, fire.confidence, key=_WORDS.index)
        self._began = True

    def unread(self) -> None:
        """Take a span that could not be read: nothing is known to go on over it."""
        self._began = False
        for key in list(self._open):
            self._close(key, Ended.UNREAD)

    def finish(self) -> None:
        """Close what fires to the end, and put all in order of time."""
        for key in list(self._open):
            self._close(key, Ended.GOES_ON)
        self.firings.sort(key=lambda f: (f.start, f.rule, f.entity.key))

    def _close(self, key: Key, ended: Ended) -> None:
        one = self._open.pop(key)
        lasted_s = one.moments * self._step_s
        total = self.totals.setdefault(key[0], Total())
        total.firings += 1
        total.lasted_s += lasted_s
        total.longest_s = max(total.longest_s, lasted_s)
        self.entities.setdefault(key[0], set()).add(key[1])
        if len(self.firings) >= MOST_FIRINGS:
            self.left_out += 1
            return
        self.firings.append(
            Firing(
                rule=key[0],
                entity=one.entity,
                start=one.start,
                end=one.end,
                lasted_s=lasted_s,
                confidence=one.confidence,
                from_before=one.from_before,
                ended=ended,
            )
        )
