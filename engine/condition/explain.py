"""Why a condition is true, false or unknown for one entity: the leaves that decided, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.condition import single
from engine.condition.lacking import of_one
from engine.condition.memo import One
from engine.condition.sentence import COMPARED, Writer, codes_in_words
from engine.condition.tree import (
    LOOKBACK,
    MIRRORED,
    NEGATED,
    Absolute,
    Age,
    And,
    Attr,
    Binary,
    ChangedTo,
    Coalesce,
    Compare,
    Has,
    IsCode,
    Negative,
    Not,
    Number,
    Numeric,
    Or,
    PastNumber,
    PastTruth,
    Presence,
    Reading,
    Share,
    Truthy,
    limits_of,
    signals_of,
    walk,
)
from engine.condition.units import span_of, unit_of, written
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
        main, other, op = node.left, node.right, node.op
        if (not signals_of(main) and signals_of(other)) or isinstance(main, Number):
            main, other, op = other, main, MIRRORED[op]
        used, other = self._used(main, one), self._used(other, one)
        # Where a constant stood in for every reading, the readings asked for are named.
        named = any(isinstance(n, Reading | Share | Age | Attr) for n in walk(used))
        main = used if named else main
        unit = unit_of(main, self.catalogue) or unit_of(other, self.catalogue)
        value, threshold = single.number(main)(one), single.number(other)(one)
        held = op if single.truth(node)(one) >= 0 else NEGATED[op]
        seen, limit = written(value, unit), written(threshold, unit)
        if seen == limit and value != threshold:
            seen, limit = written(value, unit, 7), written(threshold, unit, 7)
        about = self._parts(main, one)
        source = "" if isinstance(other, Number) else f" ({self.writer.phrase(other)})"
        what = f"{self.writer.phrase(main)} is {seen}"
        if isinstance(main, Share):
            title, bits = self.writer.title(main.signal), " or ".join(main.bits)
            what = f"{title}: {bits} in {seen} of the samples over {span_of(main.window_s)}"
        says = f"{what}{about}, {COMPARED[held]} {limit}{source}"
        first = next((n for n in walk(main) if isinstance(n, Reading | Share)), None)
        shift = sum(n.offset_s for n in walk(main) if isinstance(n, PastNumber))
        names = signals_of(main) or tuple(
            f"gpu.{n.name}" for n in walk(main) if isinstance(n, Attr)
        )
        function = "age"
        if first is not None:
            function = first.function if isinstance(first, Reading) else "share"
        return Term(
            signal=names[0],
            says=says,
            value=_known(value),
            unit=unit,
            op=op,
            threshold=_known(threshold),
            window_s=float(first.window_s) if first is not None else None,
            function=function,
            q=first.q if isinstance(first, Reading) else None,
            offset_s=float(shift),
            limits=tuple(dict.fromkeys((*limits_of(used), *limits_of(other)))),
        )

    def _parts(self, node: Numeric, one: One) -> str:
        """Write the readings behind a computed number: ``(SM clock 510 MHz, ...)``."""
        if isinstance(node, Reading | Share) or len(signals_of(node)) < 2:
            return ""
        inner = [n for n in walk(node) if isinstance(n, Reading | Attr)]
        if any(isinstance(n, PastNumber) for n in walk(node)):
            return ""
        shown = (f"{self.writer.phrase(n)} {self._value(n, one)}" for n in dict.fromkeys(inner))
        return f" ({', '.join(shown)})"

    def _value(self, node: Numeric, one: One) -> str:
        return written(single.number(node)(one), unit_of(node, self.catalogue))

    def _used(self, node: Numeric, one: One) -> Numeric:
        """Return a number with each choice replaced by the alternative that was used."""
        match node:
            case Coalesce(options=options):
                for option in options:
                    if not math.isnan(single.number(option)(one)):
                        return self._used(option, one)
                return node
            case Binary(left=left, right=right):
                first, second = self._used(left, one), self._used(right, one)
                same = first is left and second is right
                return node if same else replace(node, left=first, right=second)
            case Negative(operand=operand) | Absolute(operand=operand):
                return replace(node, operand=self._used(operand, one))
            case PastNumber(operand=operand) if one.timed:
                return replace(node, operand=self._used(operand, one.earlier(node.offset_s)))
            case _:
                return node

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
