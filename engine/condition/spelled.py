"""Series in PromQL: which ones hold a signal of an entity, whatever they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.catalogue.types import Catalogue
from engine.condition.selectors import LabelProfile, constant, duration, selector
from engine.condition.tree import LOOKBACK, Expression, reach_s, signals_of
from engine.samples import Matcher

# How far back an entity may have been seen last and still be asked about: the usual fetch window.
SEEN_S = 900


@dataclass(frozen=True, slots=True)
class Scope:
    """By which labels series are grouped, and how far back everything is shifted.

    ``names``: metric names (a regular expression) of which every entity that matters has one;
    empty if that is not known.
    """

    by: tuple[str, ...]
    offset_s: int = 0
    names: str = ""

    @property
    def labels(self) -> str:
        """The labels as PromQL writes them."""
        return ", ".join(self.by)


class Spelled:
    """Writes the selectors of one condition, for one catalogue and one label profile."""

    def __init__(self, tree: Expression, catalogue: Catalogue, profile: LabelProfile) -> None:
        self.catalogue = catalogue
        self.profile = profile
        self.scope = Scope(profile.entity)
        self.host_scope = Scope(tuple(dict.fromkeys((*profile.entity, profile.host))))
        self.seen_s = max(SEEN_S, reach_s(tree))
        own = [catalogue.signals[s] for s in signals_of(tree)]
        # GPU and node series carry different labels: of a condition over both only the GPU part
        # is pushed down.
        gpu = not own or any(signal.scope == "gpu" for signal in own)
        self._level = "gpu" if gpu else own[0].scope
        core = [signal.id for signal in catalogue.signals.values() if signal.core]
        self._usual = self.names_of((*signals_of(tree), *core))

    def names_of(self, signals: Iterable[str]) -> str:
        """Return a regular expression for all metric names of some signals."""
        known = [self.catalogue.signals[signal] for signal in signals]
        names = {sp.name for s in known if s.scope == self._level for sp in s.spellings}
        return "|".join(sorted(names))

    def anchor(self, scope: Scope, *matchers: Matcher) -> str:
        """Return 1 for every entity that matters: by default, one with any usual reading."""
        names = "|".join(self.profile.everywhere) or scope.names or self._usual
        about = (Matcher("__name__", "=~", names), *self._matchers(scope), *matchers)
        series = selector("", about)
        return f"group by ({scope.labels}) (last_over_time({series}[{self.window(self.seen_s)}]))"

    def window(self, seconds: int) -> str:
        """Return a range as PromQL writes it, one millisecond longer if its ends must be in it."""
        return f"{seconds * 1000 + 1}ms" if self.profile.closed else duration(seconds)

    def _matchers(self, scope: Scope) -> tuple[Matcher, ...]:
        return (*self.profile.selector, *(Matcher(label, "!=", "") for label in scope.by))

    def series(
        self,
        signal: str,
        scope: Scope,
        wrap: Callable[[str, str], str],
        *,
        scaled: bool = True,
    ) -> str | None:
        """Return the union of a signal's spellings, None if it has none here.

        Args:
            signal: its id.
            scope: says which labels must be there, and the offset.
            wrap: makes an expression of a selector and what stands behind its brackets.
            scaled: bring the result to the signal's unit; not for counts of samples.
        """
        known = self.catalogue.signals[signal]
        if known.scope != self._level:
            return None
        offset = f" offset {duration(scope.offset_s)}" if scope.offset_s else ""
        parts = []
        for spelling in known.spellings:
            match = tuple(Matcher(k, "=", v) for k, v in sorted(spelling.match.items()))
            text = wrap(selector(spelling.name, (*match, *self._matchers(scope))), offset)
            scale = spelling.scale if scaled else 1.0
            parts.append(text if scale == 1 else f"{text} * {constant(scale)}")
        return " or ".join(parts) or None

    def windowed(
        self, function: str, signal: str, window_s: int, scope: Scope, *, scaled: bool = True
    ) -> str | None:
        """Return the union of a range function over the window of each series of a signal."""
        window = self.window(window_s)
        return self.series(
            signal, scope, lambda name, at: f"{function}({name}[{window}]{at})", scaled=scaled
        )

    def newest(self, signal: str, scope: Scope) -> str | None:
        """Return the newest sample of each series, without those outside the signal's range.

        Not a plain selector: that would lose series marked stale, which local evaluation has.
        """
        found = self.windowed("last_over_time", signal, LOOKBACK, scope)
        if found is None:
            return None
        known = self.catalogue.signals[signal]
        low = "" if known.low is None else f" >= {constant(known.low)}"
        high = "" if known.high is None else f" <= {constant(known.high)}"
        return f"({found}){low}{high}"
