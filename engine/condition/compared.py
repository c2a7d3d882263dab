"""A comparison as evidence: the number that was seen, what it was held against, and both in words.

Evidence shows the same comparisons for entity after entity. All but the numbers depends only on the
comparison and on which alternatives of its choices (``coalesce``) were used: it is put together
once for each of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.condition import single
from engine.condition.memo import One
from engine.condition.sentence import COMPARED, Writer
from engine.condition.single import OneNumber
from engine.condition.tree import (
    MIRRORED,
    NEGATED,
    Absolute,
    Age,
    Attr,
    Binary,
    Coalesce,
    Compare,
    Negative,
    Number,
    Numeric,
    PastNumber,
    Reading,
    Share,
    limits_of,
    signals_of,
    walk,
)
from engine.condition.units import span_of, unit_of, written

Chooser = Callable[[One], Numeric]


@dataclass(frozen=True, slots=True)
class Compared:
    """What is the same for all entities of which the same alternatives were used.

    Attributes:
        signal: what is shown, a fact of the model as ``gpu.NAME``.
        unit: of both numbers.
        value: computes the number that was seen.
        threshold: computes what it was held against.
        what: names the number, with a place for it.
        parts: names and computes each reading behind a computed number, with its unit.
        source: says what the threshold is, empty for a constant.
        window_s: of the reading shown (s), None for none.
        function: how that was read, for a query.
        q: quantile, if it is one.
        shift_s: how long before the moment judged (s).
        limits: the thresholds that took part (ids of ``limit.ID``).
    """

    signal: str
    unit: str
    value: OneNumber
    threshold: OneNumber
    what: str
    parts: tuple[tuple[str, OneNumber, str], ...]
    source: str
    window_s: float | None
    function: str
    q: float | None
    shift_s: float
    limits: tuple[str, ...]

    def says(self, op: str, value: float, threshold: float, one: One) -> str:
        """Say what was seen, how it compares, and with what."""
        seen, limit = written(value, self.unit), written(threshold, self.unit)
        if seen == limit and value != threshold:
            seen, limit = written(value, self.unit, 7), written(threshold, self.unit, 7)
        about = ""
        if self.parts:
            shown = (f"{name} {written(part(one), unit)}" for name, part, unit in self.parts)
            about = f" ({', '.join(shown)})"
        return f"{self.what.format(seen)}{about}, {COMPARED[op]} {limit}{self.source}"


class Comparison:
    """One comparison of a condition, ready to be shown.

    Attributes:
        op: the operator, the number that is shown on its left.
        truth: judges the comparison as it is written.
    """

    def __init__(self, node: Compare, writer: Writer) -> None:
        main, other, op = node.left, node.right, node.op
        if (not signals_of(main) and signals_of(other)) or isinstance(main, Number):
            main, other, op = other, main, MIRRORED[op]
        self.op = op
        self._main = main
        self._used, self._other = _chooser(main), _chooser(other)
        self.truth = single.truth(node)
        self._writer = writer
        self._known: dict[tuple[Numeric, Numeric], Compared] = {}

    def of(self, one: One) -> Compared:
        """Return it as it was for one entity."""
        key = (self._used(one), self._other(one))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compared(*key)
        return found

    def held(self, one: One) -> str:
        """Return the operator that holds: the opposite one where the comparison is false."""
        return self.op if self.truth(one) >= 0 else NEGATED[self.op]

    def _compared(self, used: Numeric, other: Numeric) -> Compared:
        writer, catalogue = self._writer, self._writer.catalogue
        # Where a constant stood in for every reading, the readings asked for are named.
        named = any(isinstance(n, Reading | Share | Age | Attr) for n in walk(used))
        main = used if named else self._main
        what = f"{_plain(writer.phrase(main))} is {{}}"
        if isinstance(main, Share):
            title, bits = writer.title(main.signal), " or ".join(main.bits)
            window = span_of(main.window_s)
            what = f"{_plain(f'{title}: {bits}')} in {{}} of the samples over {window}"
        first = next((n for n in walk(main) if isinstance(n, Reading | Share)), None)
        facts = (f"gpu.{n.name}" for n in walk(main) if isinstance(n, Attr))
        function = "age"
        if first is not None:
            function = first.function if isinstance(first, Reading) else "share"
        return Compared(
            signal=(signals_of(main) or tuple(facts))[0],
            unit=unit_of(main, catalogue) or unit_of(other, catalogue),
            value=single.number(main),
            threshold=single.number(other),
            what=what,
            parts=self._parts(main),
            source="" if isinstance(other, Number) else f" ({writer.phrase(other)})",
            window_s=float(first.window_s) if first is not None else None,
            function=function,
            q=first.q if isinstance(first, Reading) else None,
            shift_s=float(sum(n.offset_s for n in walk(main) if isinstance(n, PastNumber))),
            limits=tuple(dict.fromkeys((*limits_of(used), *limits_of(other)))),
        )

    def _parts(self, main: Numeric) -> tuple[tuple[str, OneNumber, str], ...]:
        """Return the readings behind a computed number: ``(SM clock 510 MHz, ...)``."""
        past = any(isinstance(n, PastNumber) for n in walk(main))
        if isinstance(main, Reading | Share) or len(signals_of(main)) < 2 or past:
            return ()
        inner = dict.fromkeys(n for n in walk(main) if isinstance(n, Reading | Attr))
        writer = self._writer
        return tuple(
            (writer.phrase(n), single.number(n), unit_of(n, writer.catalogue)) for n in inner
        )


def _plain(text: str) -> str:
    """Return text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def _chooser(node: Numeric) -> Chooser:
    """Return what replaces each choice in a number by the alternative that was used."""
    if not any(isinstance(n, Coalesce) for n in walk(node)):
        return lambda _: node
    match node:
        case Coalesce(options=options):
            ways = [(single.number(option), _chooser(option)) for option in options]

            def used(one: One) -> Numeric:
                return next((way(one) for value, way in ways if not math.isnan(value(one))), node)

            return used
        case Binary(left=left, right=right):
            first, second = _chooser(left), _chooser(right)
            return lambda one: replace(node, left=first(one), right=second(one))
        case Negative(operand=operand) | Absolute(operand=operand):
            inner = _chooser(operand)
            return lambda one: replace(node, operand=inner(one))
        case PastNumber(operand=operand, offset_s=offset_s):
            past = _chooser(operand)
            return lambda one: (
                replace(node, operand=past(one.earlier(offset_s))) if one.timed else node
            )
        case _:
            return lambda _: node
