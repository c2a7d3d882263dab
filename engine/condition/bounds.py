"""Numbers in PromQL: a query, or two that bound what local evaluation gives.

PromQL cannot say everything that the condition language means (`increase` there extrapolates;
a signal split over several series has no common average). Each number therefore compiles to a
lower and an upper bound; where the meaning is the same the two are one query. A comparison then
uses the bounds so that its result holds every entity for which it is true.

Margins that remain, since a query on raw data cannot tell: samples exactly on the edge of a
window on servers that leave the left end open; blank samples inside a window (a blank newest
sample hides the older reading that local evaluation would take).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue, GpuModel, Signal
from engine.condition.selectors import LabelProfile, constant, duration, selector
from engine.condition.tree import (
    LOOKBACK,
    Absolute,
    Age,
    Attr,
    Binary,
    Coalesce,
    Expression,
    Negative,
    Number,
    Numeric,
    PastNumber,
    PeerCount,
    Peers,
    Reading,
    Share,
    reach_s,
    signals_of,
)
from engine.samples import Matcher

# How far back an entity may have been seen last and still be asked about: the usual fetch window.
SEEN_S = 900
# Larger than any reading; times zero it is zero.
HUGE = "1e300"


@dataclass(frozen=True, slots=True)
class Scope:
    """By which labels series are grouped, and how far back everything is shifted."""

    by: tuple[str, ...]
    offset_s: int = 0

    @property
    def labels(self) -> str:
        """The labels as PromQL writes them."""
        return ", ".join(self.by)


@dataclass(frozen=True, slots=True)
class Bound:
    """A number as PromQL.

    ``exact``: lower and upper are the number itself. ``known``: there is a result exactly where
    local evaluation knows the number. ``scalar``: a bare constant, without labels.
    """

    lower: str
    upper: str
    exact: bool = True
    known: bool = True
    scalar: bool = False


class Bounds:
    """Compiles numbers for one condition, one catalogue and one label profile."""

    def __init__(self, tree: Expression, catalogue: Catalogue, profile: LabelProfile) -> None:
        self.catalogue = catalogue
        self.profile = profile
        self.scope = Scope(profile.entity)
        self.host_scope = Scope(tuple(dict.fromkeys((*profile.entity, profile.host))))
        self.seen_s = max(SEEN_S, reach_s(tree))
        own = [catalogue.signals[s] for s in signals_of(tree)]
        # GPU and node series carry different labels: of a mixed condition only the GPU part is
        # pushed down.
        self.level = "gpu" if any(s.scope == "gpu" for s in own) or not own else own[0].scope
        core = [s for s in catalogue.signals.values() if s.core and s.scope == self.level]
        names = {sp.name for s in (*own, *core) if s.scope == self.level for sp in s.spellings}
        self._names = "|".join(sorted(names))

    # Series

    def anchor(self, scope: Scope, *matchers: Matcher) -> str:
        """Return 1 for every entity that the server has any usual reading of."""
        all_ = (Matcher("__name__", "=~", self._names), *self._matchers(scope), *matchers)
        inner = ",".join(selector("", [m]).strip("{}") for m in all_)
        return f"group by ({scope.labels}) (last_over_time({{{inner}}}[{duration(self.seen_s)}]))"

    def _matchers(self, scope: Scope) -> tuple[Matcher, ...]:
        given = self.profile.selector
        return (*given, *(Matcher(label, "!=", "") for label in scope.by))

    def series(self, signal: str, scope: Scope, wrap: Callable[[str, str], str]) -> str | None:
        """Return the union of a signal's spellings in its canonical unit, None if there are none.

        ``wrap`` makes an expression of a selector and what stands behind its brackets (an offset).
        """
        known = self.catalogue.signals[signal]
        if known.scope != self.level:
            return None
        offset = f" offset {duration(scope.offset_s)}" if scope.offset_s else ""
        parts = []
        for spelling in known.spellings:
            match = tuple(Matcher(k, "=", v) for k, v in sorted(spelling.match.items()))
            text = wrap(selector(spelling.name, (*match, *self._matchers(scope))), offset)
            parts.append(text if spelling.scale == 1 else f"{text} * {constant(spelling.scale)}")
        return " or ".join(parts) or None

    def over_time(self, function: str, signal: str, window_s: int, scope: Scope) -> str | None:
        """Return the union of ``FUNCTION_over_time`` of each series of a signal."""
        window = duration(window_s)
        return self.series(signal, scope, lambda s, at: f"{function}_over_time({s}[{window}]{at})")

    def newest(self, signal: str, scope: Scope) -> str | None:
        """Return the newest sample of each series, without those outside the signal's range.

        Not a plain selector: that would lose series marked stale, which local evaluation has.
        """
        found = self.over_time("last", signal, LOOKBACK, scope)
        known = self.catalogue.signals[signal]
        return None if found is None else self.in_range(found, known)

    @staticmethod
    def in_range(series: str, signal: Signal) -> str:
        """Drop samples outside a signal's range."""
        low = "" if signal.low is None else f" >= {constant(signal.low)}"
        high = "" if signal.high is None else f" <= {constant(signal.high)}"
        return f"({series}){low}{high}"

    # Numbers

    def number(self, node: Numeric, scope: Scope) -> Bound | None:
        """Return a number's bounds, None if PromQL has none that help."""
        match node:
            case Number(value=value):
                return Bound(constant(value), constant(value), scalar=True)
            case Attr(name=name):
                return self._attr(name, scope)
            case Reading():
                return self._reading(node, scope)
            case Age(signal=signal):
                return self._age(signal, scope)
            case Share():
                return self._share(node, scope)
            case Binary():
                return self._binary(node, scope)
            case Negative():
                inner = self.number(node.operand, scope)
                if inner is None:
                    return None
                return replace(inner, lower=f"(-{inner.upper})", upper=f"(-{inner.lower})")
            case Absolute():
                inner = self.number(node.operand, scope)
                if inner is None or self._not_negative(node.operand):
                    return inner
                text = f"abs({inner.upper})"
                return replace(inner, lower=text, upper=text) if inner.exact else None
            case Coalesce():
                return self._coalesce(node, scope)
            case PastNumber(operand=operand, offset_s=offset_s):
                return self.number(operand, replace(scope, offset_s=scope.offset_s + offset_s))
            case Peers() | PeerCount():
                return None

    def _attr(self, name: str, scope: Scope) -> Bound | None:
        """Give every GPU the constant of its model, exact model names before patterns."""
        tables = (self._by_value(name, _exact_names), self._by_value(name, _pattern))
        parts = [
            f"{self.anchor(scope, Matcher(self.profile.model, '=~', regex))} * {constant(value)}"
            for table in tables
            for value, regex in table.items()
        ]
        if not parts:
            return None
        text = f"({f' or on({scope.labels}) '.join(parts)})"
        return Bound(text, text)

    def _by_value(self, name: str, regex: Callable[[GpuModel], str]) -> dict[float, str]:
        found: dict[float, list[str]] = {}
        for model in self.catalogue.models:
            if name in model.attrs and regex(model):
                found.setdefault(model.attrs[name], []).append(regex(model))
        return {value: "|".join(parts) for value, parts in found.items()}

    def _reading(self, node: Reading, scope: Scope) -> Bound | None:
        single = self.profile.one_series
        if node.function == "last":
            newest = self.newest(node.signal, scope)
            return None if newest is None else self._spread(newest, newest, scope, exact=single)
        if self.over_time("last", node.signal, node.window_s, scope) is None:
            return None
        if node.function in {"rate", "increase"}:
            return self._growth(node, scope)
        over = {
            name: self.over_time(name, node.signal, node.window_s, scope) or ""
            for name in ("avg", "min", "max", "stddev", "count")
        }
        by = scope.labels
        if node.function in {"min", "max"}:
            text = f"{node.function} by ({by}) ({over[node.function]})"
            return Bound(text, text)
        if node.function == "avg":
            return self._spread(over["avg"], over["avg"], scope, exact=single)
        if node.q is not None:
            if not single:
                return self._spread(over["min"], over["max"], scope, exact=False)
            window, q = duration(node.window_s), constant(node.q)
            ranked = self.series(
                node.signal, scope, lambda s, at: f"quantile_over_time({q}, {s}[{window}]{at})"
            )
            return self._spread(ranked or "", ranked or "", scope, exact=True)
        return self._variation(node, scope, over)

    def _spread(self, low: str, high: str, scope: Scope, *, exact: bool) -> Bound:
        """Bound a value that lies between those of the series by the least and the greatest."""
        upper = f"max by ({scope.labels}) ({high})"
        lower = upper if exact else f"min by ({scope.labels}) ({low})"
        return Bound(lower, upper, exact=exact)

    def _variation(self, node: Reading, scope: Scope, over: dict[str, str]) -> Bound:
        """Bound ``changes`` and ``stddev``; PromQL gives 0 for a single sample, which is unknown."""
        by = scope.labels
        if node.function == "stddev":
            if self.profile.one_series:
                return replace(self._spread(over["stddev"], over["stddev"], scope, exact=True), known=False)
            spread = self._movement(over, scope)
            return Bound(f"({spread} * 0)", spread, exact=False, known=False)
        window = duration(node.window_s)
        lower = self.series(node.signal, scope, lambda s, at: f"changes({s}[{window}]{at})")
        lower = f"max by ({by}) ({lower})"
        if self.profile.one_series:
            return Bound(lower, lower, known=False)
        return Bound(lower, f"sum by ({by}) ({over['count']})", exact=False, known=False)

    def _movement(self, over: dict[str, str], scope: Scope) -> str:
        """Return greatest minus least sample: zero means that nothing moved in the window."""
        by = scope.labels
        return f"(max by ({by}) ({over['max']}) - on({by}) min by ({by}) ({over['min']}))"
