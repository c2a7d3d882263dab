"""Why a condition is true, false or unknown for one entity: the leaves that decided, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.condition import single
from engine.condition.compared import Comparison
from engine.condition.lacking import of_one
from engine.condition.memo import One
from engine.condition.sentence import Writer, codes_in_words
from engine.condition.tree import (
    LOOKBACK,
    And,
    ChangedTo,
    Compare,
    Has,
    IsCode,
    Not,
    Or,
    PastTruth,
    Presence,
    Reading,
    Truthy,
)
from engine.condition.units import span_of, written
from engine.model import Number as Value
from engine.model import Truth

_WORDS = {1: Truth.TRUE, 0: Truth.UNKNOWN, -1: Truth.FALSE}


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison that decided, with the number it saw.

    ``op`` is the comparison as it decided (a ``not`` is already in it), or ``has``, ``is``,
    ``changed_to``, ``known``, ``missing``, ``blank``. ``value`` is None where it is unknown.
    ``truth`` is that of ``op`` as it stands here; ``expression`` is the text it was written as.
    ``function``, ``q`` and ``offset_s`` say how the signal was read, for `show_query`.
    ``limits`` are the thresholds that took part in it (ids of ``limit.ID``).
    """

    signal: str
    says: str
    value: Value
    unit: str
    op: str
    threshold: Value
    window_s: float | None
    truth: Truth = Truth.UNKNOWN
    expression: str = ""
    function: str = "last"
    q: float | None = None
    offset_s: float = 0.0
    limits: tuple[str, ...] = ()


def deciding(node: Truthy, one: One, offset_s: float = 0.0) -> Iterator[tuple[Truthy, One, float]]:
    """Yield the leaves that decided a condition, with the instant they were judged at.

    All parts of a true *and*, the false parts of a false one, the unknown parts of an unknown
    one; for *or* the other way round.
    """
    match node:
        case And(parts=parts) | Or(parts=parts):
            verdict = single.truth(node)(one)
            for part in parts:
                if single.truth(part)(one) == verdict:
                    yield from deciding(part, one, offset_s)
        case PastTruth():
            earlier = one.earlier(node.offset_s)
            yield from deciding(node.operand, earlier, offset_s + node.offset_s)
        case _:
            yield node, one, offset_s


class Explainer:
    """Turns deciding leaves into terms, with one catalogue's titles and units."""

    def __init__(self, writer: Writer, text: str) -> None:
        self.writer = writer
        self.catalogue = writer.catalogue
        self.text = text
        self._comparisons: dict[Compare, Comparison] = {}

    def terms(self, tree: Truthy, one: One) -> tuple[Term, ...]:
        """Return the terms that decided, in written order."""
        return tuple(self._term(*found) for found in deciding(tree, one))

    def _term(self, node: Truthy, one: One, offset_s: float) -> Term:
        negated = isinstance(node, Not)
        leaf = node.operand if isinstance(node, Not) else node
        if isinstance(leaf, Compare):
            term = self._compare(leaf, one)
        elif isinstance(leaf, Has):
            term = self._has(leaf, one)
        elif isinstance(leaf, IsCode | ChangedTo):
            term = self._code(leaf, one)
        else:
            assert isinstance(leaf, Presence)
            term = self._presence(leaf, one)
        op, truth = term.op, single.truth(leaf)(one)
        if negated:
            op, truth = f"not {op}", -truth
        says = term.says
        if truth == 0:
            says = f"cannot tell whether {self.writer.sentence(leaf)}: {self._lack(leaf, one)}"
        if offset_s:
            says = f"{span_of(offset_s)} earlier, {says}"
        start, end = node.span
        return replace(
            term,
            says=says,
            op=op,
            truth=_WORDS[truth],
            expression=self.text[start:end],
            offset_s=term.offset_s + offset_s,
        )

    def _lack(self, leaf: Truthy, one: One) -> str:
        """Say what a leaf lacks to be judged."""
        lacking = dict.fromkeys(of_one(leaf)(one))
        if not lacking:
            return "it divides by zero"
        seen = [name for name in lacking if name in one.memo.frame.columns]
        few = [name for name in seen if not math.isnan(self._newest(name, one))]
        parts = []
        if few:
            lack = "too few samples of" if one.timed else "no times with the samples of"
            parts.append(f"{lack} {', '.join(few)}")
        if none := [name for name in lacking if name not in few]:
            parts.append(f"no reading of {', '.join(none)}")
        return " and ".join(parts)

    def _compare(self, node: Compare, one: One) -> Term:
        comparison = self._comparisons.get(node)
        if comparison is None:
            comparison = self._comparisons[node] = Comparison(node, self.writer)
        found = comparison.of(one)
        value, threshold = found.value(one), found.threshold(one)
        return Term(
            signal=found.signal,
            says=found.says(comparison.held(one), value, threshold, one),
            value=_known(value),
            unit=found.unit,
            op=comparison.op,
            threshold=_known(threshold),
            window_s=found.window_s,
            function=found.function,
            q=found.q,
            offset_s=found.shift_s,
            limits=found.limits,
        )

    def _newest(self, signal: str, one: One) -> float:
        return single.number(Reading("last", signal, LOOKBACK))(one)

    def _has(self, node: Has, one: One) -> Term:
        value = self._newest(node.signal, one)
        mask = 0 if math.isnan(value) else int(value)
        table = self.catalogue.bits[self.catalogue.signals[node.signal].bits or ""]
        names = ", ".join(name for name, bit in table.items() if mask & bit) or "no bit"
        there = [name for name in node.bits if mask & table[name]]
        verb = f"has {' and '.join(there)}" if there else f"does not have {' or '.join(node.bits)}"
        says = f"{node.signal} = {mask:#x} ({names}) {verb}"
        known = None if math.isnan(value) else mask
        return Term(node.signal, says, known, "bitmask", "has", node.mask, float(LOOKBACK))

    def _code(self, node: IsCode | ChangedTo, one: One) -> Term:
        value = self._newest(node.signal, one)
        codes = codes_in_words(node.codes)
        title = self.writer.title(node.signal)
        if isinstance(node, IsCode):
            op, window, function = "is", LOOKBACK, "last"
            verb = "" if value in node.codes else f", not {codes}"
            says = f"{title} is {written(value, 'code')}{verb}"
        else:
            op, window, function = "changed_to", node.window_s, "changed_to"
            says, value = self._change(node, one, value)
        seen = _known(value)
        return Term(node.signal, says, seen, "code", op, codes, float(window), function=function)

    def _change(self, node: ChangedTo, one: One, value: float) -> tuple[str, float]:
        """Say what the newest change to one of the codes was, and when; else what was seen."""
        title, codes = self.writer.title(node.signal), codes_in_words(node.codes)
        values, lo, hi = one.window(node.signal, node.window_s)
        inside = values[lo:hi]
        if not inside or not one.memo.frame.has_times(node.signal):
            return "", value
        changes = [k for k in range(1, len(inside)) if inside[k] != inside[k - 1]]
        wanted = [k for k in changes if inside[k] in node.codes]
        if not changes:
            window = span_of(node.window_s)
            return f"{title} stayed {written(inside[-1], 'code')} over {window}", inside[-1]
        k = (wanted or changes)[-1]
        times = one.times(node.signal, node.window_s)
        ago = round(one.at - times[k])
        was, became = written(inside[k - 1], "code"), written(inside[k], "code")
        tail = "" if wanted else f", not to {codes}"
        when = f"{span_of(ago)} ago"
        if not ago and not one.memo.frame.timed:  # one scrape: the exporter counts the recent ones
            when = "not long ago, by the exporter's own count"
        return f"{title} changed from {was} to {became} {when}{tail}", inside[k]

    def _presence(self, node: Presence, one: One) -> Term:
        title, unit = self.writer.title(node.signal), self.catalogue.signals[node.signal].unit
        value = self._newest(node.signal, one)
        dropped = one.memo.frame.dropped.get((node.signal, one.i))
        if not math.isnan(value):
            says = f"{title} is read: {written(value, unit)}"
        elif dropped is not None and any(dropped.counts.values()):
            reasons = ", ".join(f"{n} x {why}" for why, n in sorted(dropped.counts.items()))
            says = f"{title} has no reading, only samples that are none ({reasons})"
        else:
            says = f"{title} has no reading in the last {span_of(LOOKBACK)}"
        return Term(node.signal, says, _known(value), unit, node.state, None, float(LOOKBACK))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
