"""Numbers in PromQL: a query, or two that bound what local evaluation gives.

PromQL cannot say everything that the condition language means (`increase` there extrapolates;
a signal split over several series has no common average). Each number therefore compiles to a
lower and an upper bound; where the meaning is the same the two are one query. A comparison then
uses the bounds so that its result holds every entity for which it is true.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from engine.condition.selectors import constant
from engine.condition.spelled import Scope, Spelled
from engine.condition.tree import (
    Absolute,
    Age,
    Attr,
    Binary,
    Coalesce,
    Negative,
    Number,
    Numeric,
    PastNumber,
    PeerCount,
    Peers,
    Reading,
    Share,
    walk,
)
from engine.samples import Matcher

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")

# Larger than any reading, and zero times it is zero (which infinity would not give).
HUGE = "1e300"
# A divisor that may be zero is kept off zero, so that the bound stays a number.
TINY = "1e-300"
# How old the newest sample of an entity may be for `age` to know it: no server is asked for more.
OLDEST_S = 3600


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


class Numbers(Spelled, ABC):
    """Compiles numbers to bounds."""

    @abstractmethod
    def peers(self, node: Peers | PeerCount, scope: Scope) -> Bound | None:
        """Return the bounds of a number over the host's GPUs."""

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
                if inner is None or self.never_negative(node.operand):
                    return inner
                text = f"abs({inner.upper})"
                return replace(inner, lower=text, upper=text) if inner.exact else None
            case Coalesce():
                return self._coalesce(node, scope)
            case PastNumber(operand=operand, offset_s=offset_s):
                return self.number(operand, replace(scope, offset_s=scope.offset_s + offset_s))
            case Peers() | PeerCount():
                return self.peers(node, scope)

    def _attr(self, name: str, scope: Scope) -> Bound | None:
        """Give every GPU the constant of its model, exact model names before patterns."""
        parts = []
        for regexes in (self._exact_names(name), self._patterns(name)):
            # `or` keeps what stands first: the order of the models must stay.
            for value, group in groupby(regexes, key=lambda pair: pair[0]):
                regex = "|".join(found for _, found in group)
                anchor = self.anchor(scope, Matcher(self.profile.model, "=~", regex))
                parts.append(f"{anchor} * {constant(value)}")
        text = f"({f' or on({scope.labels}) '.join(parts)})"
        return Bound(text, text) if parts else None

    def _patterns(self, attr: str) -> list[tuple[float, str]]:
        models = self.catalogue.models
        return [(m.attrs[attr], m.pattern) for m in models if attr in m.attrs and m.pattern]

    def _exact_names(self, attr: str) -> list[tuple[float, str]]:
        """Return the exact model names that the patterns alone would give another value."""
        found = []
        for model in self.catalogue.models:
            for name in model.match:
                value = model.attrs.get(attr)
                first = next((m for m in self.catalogue.models if m.regex.fullmatch(name)), None)
                if value is not None and (first is None or first.attrs.get(attr) != value):
                    found.append((value, _SPECIAL.sub(r"\\\g<0>", name)))
        return found

    def _reading(self, node: Reading, scope: Scope) -> Bound | None:
        if node.function == "last":
            newest = self.newest(node.signal, scope)
            return None if newest is None else self._between(newest, newest, scope)
        over = {
            name: self.windowed(f"{name}_over_time", node.signal, node.window_s, scope)
            for name in ("avg", "min", "max", "stddev")
        }
        low, high = over["min"], over["max"]
        if low is None or high is None:
            return None
        match node.function:
            case "max" | "min" as function:
                text = f"{function} by ({scope.labels}) ({over[function]})"
                return Bound(text, text)
            case "avg":
                return self._between(over["avg"], over["avg"], scope)
            case "quantile" if self.profile.one_series and node.q is not None:
                q, window = constant(node.q), self.window(node.window_s)
                ranked = self.series(
                    node.signal, scope, lambda s, at: f"quantile_over_time({q}, {s}[{window}]{at})"
                )
                return self._between(ranked, ranked, scope)
            case "quantile":
                return self._between(low, high, scope)
            case "stddev" if self.profile.one_series:
                found = self._between(over["stddev"], over["stddev"], scope)
                return replace(found, known=False)
        by = scope.labels
        # Greatest minus least sample: zero means that nothing moved in the window.
        moved = f"(max by ({by}) ({high}) - on({by}) min by ({by}) ({low}))"
        if node.function == "stddev":
            return Bound(f"({moved} * 0)", moved, exact=False, known=False)
        if node.function == "changes":
            return self._changes(node, scope)
        return self._growth(node, scope, moved)

    def _between(self, low: str | None, high: str | None, scope: Scope) -> Bound:
        """Bound a value that lies between those of the entity's series."""
        upper = f"max by ({scope.labels}) ({high})"
        if self.profile.one_series and low == high:
            return Bound(upper, upper)
        return Bound(f"min by ({scope.labels}) ({low})", upper, exact=False)

    def _changes(self, node: Reading, scope: Scope) -> Bound:
        """Bound the changes of one sequence of samples that may be split over series."""
        by = scope.labels
        each, count = (
            self.windowed(name, node.signal, node.window_s, scope, scaled=False)
            for name in ("changes", "count_over_time")
        )
        lower = f"max by ({by}) ({each})"
        if self.profile.one_series:
            # PromQL gives 0 for a single sample, which is unknown here.
            return Bound(lower, lower, known=False)
        return Bound(lower, f"sum by ({by}) ({count})", exact=False, known=False)

    def _growth(self, node: Reading, scope: Scope, moved: str) -> Bound:
        """Bound ``increase`` and ``rate`` of a counter, which PromQL extrapolates to the window.

        It adds at most 1.1 sampling intervals at either end, so the increase of n samples is at
        least PromQL's divided by 1 + 2.2 / (n - 1). As extrapolation never leaves the window,
        the rate between first and last sample is at least PromQL's. Over several series all that
        is sure is that a counter which did not move did not grow.
        """
        by, window = scope.labels, self.window(node.window_s)
        lower, upper = f"({moved} * 0)", f"({moved} * {HUGE})"
        if node.function == "rate" and self.catalogue.signals[node.signal].combine == "sum":
            # Series of one scrape are read at the same moments: their rates add up.
            lower = f"sum by ({by}) ({self.windowed('rate', node.signal, node.window_s, scope)})"
            return Bound(lower, upper, exact=False, known=False)
        if self.profile.one_series and node.function == "rate":
            lower = f"max by ({by}) ({self.windowed('rate', node.signal, node.window_s, scope)})"
        elif self.profile.one_series:
            upper = self.windowed("increase", node.signal, node.window_s, scope) or ""
            upper = f"max by ({by}) ({upper})"
            lower = (
                self.series(
                    node.signal,
                    scope,
                    lambda s, at: (
                        f"increase({s}[{window}]{at})"
                        f" / (1 + 2.2 / (count_over_time({s}[{window}]{at}) - 1))"
                    ),
                )
                or ""
            )
            lower = f"max by ({by}) ({lower})"
        return Bound(lower, upper, exact=False, known=False)

    def _age(self, signal: str, scope: Scope) -> Bound | None:
        """Bound the age: known where the series is current, else anything up to very old."""
        by = scope.labels
        stamp = self.series(signal, scope, lambda s, at: f"timestamp({s}{at})", scaled=False)
        seen = self.windowed("count_over_time", signal, OLDEST_S, scope, scaled=False)
        if stamp is None or seen is None:
            return None
        none = f"max by ({by}) ({seen}) * 0"
        now = f"time() - {scope.offset_s}" if scope.offset_s else "time()"
        age = f"{now} - max by ({by}) ({stamp})"
        return Bound(
            f"({none})", f"({age} or on({by}) {none} + {OLDEST_S})", exact=False, known=False
        )

    def _share(self, node: Share, scope: Scope) -> Bound | None:
        """Bound the share: more than nothing only if a sample is as large as the lowest bit."""
        lowest = node.mask & -node.mask
        highest = self.windowed("max_over_time", node.signal, node.window_s, scope)
        if highest is None:
            return None
        upper = f"(max by ({scope.labels}) ({highest}) >= bool {lowest})"
        return Bound(f"({upper} * 0)", upper, exact=False)

    def _coalesce(self, node: Coalesce, scope: Scope) -> Bound | None:
        found = []
        for option in node.options:
            bound = self.number(option, scope)
            if bound is None:
                return None
            if bound.scalar:
                everywhere = f"{self.anchor(scope)} * {bound.upper}"
                bound = Bound(everywhere, everywhere)
            found.append(bound)
        lowers, uppers = [b.lower for b in found], [b.upper for b in found]
        if all(bound.known for bound in found[:-1]):
            glue = f" or on({scope.labels}) "
            exact = all(bound.exact for bound in found)
            lower, upper = f"({glue.join(lowers)})", f"({glue.join(uppers)})"
            return Bound(lower, upper, exact, found[-1].known)
        # Which option counts cannot be told: it is one of them.
        lower, upper = _extreme("min", lowers, scope), _extreme("max", uppers, scope)
        return Bound(lower, upper, exact=False, known=False)

    def _binary(self, node: Binary, scope: Scope) -> Bound | None:
        left, right = self.number(node.left, scope), self.number(node.right, scope)
        if left is None or right is None:
            return None
        on = "" if left.scalar or right.scalar else f" on({scope.labels})"
        exact, known = left.exact and right.exact, left.known and right.known

        def made(a: str, b: str, op: str = node.op) -> str:
            return f"({a} {op}{on} {b})"

        if node.op == "+":
            lower, upper = made(left.lower, right.lower), made(left.upper, right.upper)
        elif node.op == "-":
            lower, upper = made(left.lower, right.upper), made(left.upper, right.lower)
        elif exact:
            # A division by zero has no result, as it is unknown here.
            below = right.upper
            if node.op == "/" and not right.scalar:
                below = f"({below} != 0)"
            lower = upper = made(left.upper, below)
        elif right.scalar or left.scalar:
            return self._scaled(node, left, right, made)
        elif self._read_together(node):
            # What the server adds at the ends of the window cancels out.
            lower = upper = made(left.lower, f"({right.lower} != 0)")
        elif rates := self._scraped_together(node):
            ratio = made(left.lower, f"({right.lower} != 0)")
            off = self._may_be_off(rates, scope)
            lower, upper = f"({ratio} /{on} {off})", f"({ratio} *{on} {off})"
        elif not (self.never_negative(node.left) and self.never_negative(node.right)):
            return None
        elif node.op == "*":
            lower, upper = made(left.lower, right.lower), made(left.upper, right.upper)
        else:
            lower = made(left.lower, f"({right.upper} != 0)")
            upper = made(left.upper, f"clamp_min({right.lower}, {TINY})")
        return Bound(lower, upper, exact, known)

    def _read_together(self, node: Binary) -> bool:
        """Whether a ratio is one of rates that are read from the same series and added up."""
        leaves = [inner for inner in walk(node) if isinstance(inner, Reading)]
        signals = [self.catalogue.signals[leaf.signal] for leaf in leaves]
        return (
            node.op == "/"
            and all(leaf.function == "rate" for leaf in leaves)
            and len({leaf.window_s for leaf in leaves}) == 1
            and all(signal.combine == "sum" for signal in signals)
            and len({frozenset(sp.name for sp in signal.spellings) for signal in signals}) == 1
        )

    def _scraped_together(self, node: Binary) -> tuple[Reading, Reading] | None:
        """Return the two rates of a ratio whose counters one exporter gives at the same moments."""
        left, right = node.left, node.right
        if node.op != "/" or not (isinstance(left, Reading) and isinstance(right, Reading)):
            return None
        signals = [self.catalogue.signals[one.signal] for one in (left, right)]
        exporters = {sp.exporter for signal in signals for sp in signal.spellings}
        alike = (
            left.function == right.function == "rate"
            and left.window_s == right.window_s
            and (self.profile.one_series or all(signal.combine == "sum" for signal in signals))
            and len(exporters) == 1
        )
        return (left, right) if alike else None

    def _may_be_off(self, rates: Iterable[Reading], scope: Scope) -> str:
        """Return by which factor the ratio of two rates may be off.

        Extrapolation to the ends of the window is the same for both, and cancels out. Only a
        counter that began near zero is not extrapolated below it: then by at most
        1 + 2.2 / (n - 1) for n samples, which is less than four for two and more.
        """
        by = scope.labels
        began = [
            f"(max by ({by}) ({self.windowed('increase', r.signal, r.window_s, scope)}) * 2"
            f" > bool on({by}) min by ({by})"
            f" ({self.windowed('min_over_time', r.signal, r.window_s, scope)}))"
            for r in rates
        ]
        return f"(1.000001 + 3 * ({f' + on({by}) '.join(began)}))"

    def _scaled(
        self, node: Binary, left: Bound, right: Bound, made: Callable[[str, str], str]
    ) -> Bound | None:
        """Bound a bound times a constant, divided by one, or a constant divided by a bound."""
        if isinstance(node.left, Number) and node.op == "/":
            if node.left.value < 0 or not self.never_negative(node.right):
                return None
            lower = made(left.lower, f"({right.upper} != 0)")
            upper = made(left.upper, f"clamp_min({right.lower}, {TINY})")
            return Bound(lower, upper, exact=False, known=right.known)
        constant_ = node.left if isinstance(node.left, Number) else node.right
        lower, upper = made(left.lower, right.lower), made(left.upper, right.upper)
        if isinstance(constant_, Number) and constant_.value < 0:
            lower, upper = upper, lower
        return Bound(lower, upper, exact=False, known=left.known and right.known)

    def never_negative(self, node: Numeric) -> bool:
        """Say whether a number cannot be below zero, by the ranges of its signals."""
        match node:
            case Number(value=value):
                return value >= 0
            case Reading(signal=signal):
                known = self.catalogue.signals[signal]
                return known.kind == "counter" or (known.low is not None and known.low >= 0)
            case Attr() | Age() | Share() | Absolute() | PeerCount():
                return True
            case Binary(op="+" | "*" | "/"):
                return self.never_negative(node.left) and self.never_negative(node.right)
            case Coalesce(options=options):
                return all(self.never_negative(option) for option in options)
            case Peers() | PastNumber():
                return self.never_negative(node.operand)
            case _:
                return False


def _extreme(function: str, options: list[str], scope: Scope) -> str:
    """Return the least or greatest of several vectors that have the same labels."""
    told_apart = " or ".join(
        f'label_replace({option}, "option", "{k}", "", "")' for k, option in enumerate(options)
    )
    return f"{function} by ({scope.labels}) ({told_apart})"
