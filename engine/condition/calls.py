"""The functions of the condition language: what each takes, and the node it becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from engine.catalogue.types import Catalogue, Signal
from engine.condition.source import Source
from engine.condition.tree import (
    LOOKBACK,
    Absolute,
    Age,
    Attr,
    ChangedTo,
    Coalesce,
    Expression,
    Has,
    IsCode,
    Number,
    Numeric,
    PastNumber,
    PastTruth,
    PeerCount,
    Peers,
    Presence,
    Reading,
    Share,
    Span,
    Truthy,
    signals_of,
    walk,
)
from engine.errors import CatalogueError

# With whom an entity is compared: those of its host, those of its job, those of its rail.
GROUPS = ("siblings", "job", "rail")

USAGE = {
    "last": "last(signal)",
    **{
        name: f'{name}(signal, "5m")'
        for name in ("avg", "min", "max", "rate", "increase", "changes", "stddev")
    },
    "quantile": 'quantile(0.9, signal, "5m")',
    "age": "age(signal)",
    "has": 'has(mask, "bit", ...)',
    "share": 'share(mask, "bit", "5m")',
    "coalesce": "coalesce(a, b, ...)",
    "abs": "abs(a)",
    "known": "known(signal)",
    "missing": "missing(signal)",
    "blank": "blank(signal)",
    "changed_to": 'changed_to(signal, {79, 119}, "15m")',
    "is_code": "is_code(signal, {79, 119})",
    "past": 'past(a, "1h")',
    **{
        f"{group}.{name}": f"{group}.{name}(a)"
        for group in GROUPS
        for name in ("median", "mad", "min", "max")
    },
    **{
        f"{group}.{name}": f"{group}.{name}(a > b)"
        for group in GROUPS
        for name in ("count", "share")
    },
}

# Which kinds of signals a function makes no sense on: averaging codes gives no code.
_COUNTERS = ("counter",)
_SYMBOLS = ("mask", "code")


class Reader(Protocol):
    """What a call needs from the parser it stands in."""

    source: Source
    catalogue: Catalogue

    def span(self, node: ast.expr) -> Span:
        """Where a syntax node stands."""

    def truth(self, node: ast.expr) -> Truthy:
        """Parse a condition."""

    def number(self, node: ast.expr) -> Numeric:
        """Parse a number."""

    def either(self, node: ast.expr) -> Expression:
        """Parse a condition or a number."""

    def signal(self, node: ast.expr) -> Signal:
        """Parse the name of a signal."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, with checked access to its arguments."""

    reader: Reader
    name: str
    node: ast.Call

    @property
    def span(self) -> Span:
        """Where the call stands."""
        return self.reader.span(self.node)

    @property
    def args(self) -> list[ast.expr]:
        """The arguments as syntax."""
        return self.node.args

    def error(self, at: ast.expr, message: str, hint: str = "") -> CatalogueError:
        """Return an error at the place of ``at``; the hint defaults to the function's usage."""
        hint = hint or f"write: {USAGE[self.name]}"
        return self.reader.source.error(self.reader.span(at), message, hint)

    def need(self, least: int, most: int | None = None) -> None:
        """Refuse a call with fewer or more arguments."""
        if len(self.args) < least or (most is not None and len(self.args) > most):
            raise self.error(self.node, f"{self.name}() has {len(self.args)} argument(s)")

    def signal(self, k: int, kinds: Iterable[str] = (), not_kinds: Iterable[str] = ()) -> str:
        """Return the signal id that argument ``k`` names, of a kind that the function takes."""
        signal = self.reader.signal(self.args[k])
        kinds = tuple(kinds)
        if (kinds and signal.kind not in kinds) or signal.kind in tuple(not_kinds):
            message = f"{self.name}() does not go with {signal.id}, which is a {signal.kind}"
            hint = f"it takes a {' or '.join(kinds)}" if kinds else "use last(), max() or has()"
            raise self.error(self.args[k], message, hint)
        return signal.id

    def text(self, k: int, what: str) -> str:
        """Return the quoted text that argument ``k`` must be."""
        arg = self.args[k]
        if not (isinstance(arg, ast.Constant) and isinstance(arg.value, str)):
            raise self.error(arg, f"{what} must stand in quotes")
        return arg.value

    def window(self, k: int) -> int:
        """Return the seconds of the window that argument ``k`` must be."""
        return self.reader.source.seconds(self.reader.span(self.args[k]), self.text(k, "a window"))

    def bits(self, signal: str, first: int, end: int) -> tuple[tuple[str, ...], int]:
        """Return the bit names in the arguments from ``first`` to ``end``, and them OR'd."""
        catalogue = self.reader.catalogue
        table = catalogue.bits.get(catalogue.signals[signal].bits or "", {})
        names = tuple(self.text(k, "a bit") for k in range(first, end))
        mask = 0
        for k, name in enumerate(names, first):
            if name not in table:
                at = self.reader.span(self.args[k])
                raise self.reader.source.unknown(at, f"bit of {signal}", name, table)
            mask |= table[name]
        return names, mask

    def codes(self, k: int) -> frozenset[int]:
        """Return the codes of argument ``k``: ``{79, 119}`` or ``xids("cause")``."""
        arg = self.args[k]
        if isinstance(arg, ast.Set):
            found = set()
            for item in arg.elts:
                value = item.value if isinstance(item, ast.Constant) else None
                if not isinstance(value, int) or isinstance(value, bool):
                    raise self.error(item, "a code must be a whole number")
                found.add(value)
            return frozenset(found)
        match arg:
            case ast.Call(
                func=ast.Name(id="xids"), args=[ast.Constant(value=str(cause)) as at], keywords=[]
            ):
                return self._xids(at, cause)
        raise self.error(arg, "codes must be a set", 'write: {79, 119} or xids("cause")')

    def _xids(self, at: ast.Constant, cause: str) -> frozenset[int]:
        catalogue = self.reader.catalogue
        if cause not in catalogue.taxonomy:
            raise self.reader.source.unknown(
                self.reader.span(at), "cause", cause, catalogue.taxonomy
            )
        codes = catalogue.xids(cause)
        if not codes:
            raise self.error(at, f"no Xid means {cause}", "write the codes: {79, 119}")
        return codes


def _last(call: Call) -> Expression:
    call.need(1, 1)
    return Reading("last", call.signal(0), LOOKBACK)


def _window(call: Call) -> Expression:
    call.need(2, 2)
    refused = _SYMBOLS if call.name in {"avg", "stddev"} else ()
    kinds = _COUNTERS if call.name in {"rate", "increase"} else ()
    return Reading(call.name, call.signal(0, kinds, refused), call.window(1))


def _quantile(call: Call) -> Expression:
    call.need(3, 3)
    q = call.reader.number(call.args[0])
    if not isinstance(q, Number) or q.limits or not 0 <= q.value <= 1:
        raise call.error(call.args[0], "a quantile is a number from 0 to 1")
    signal = call.signal(1, not_kinds=_SYMBOLS)
    return Reading("quantile", signal, call.window(2), q.value)


def _age(call: Call) -> Expression:
    call.need(1, 1)
    return Age(call.signal(0))


def _has(call: Call) -> Expression:
    call.need(2)
    signal = call.signal(0, ("mask",))
    return Has(signal, *call.bits(signal, 1, len(call.args)))


def _share(call: Call) -> Expression:
    call.need(3)
    signal, end = call.signal(0, ("mask",)), len(call.args) - 1
    return Share(signal, *call.bits(signal, 1, end), call.window(end))


def _coalesce(call: Call) -> Expression:
    call.need(2)
    options = tuple(call.reader.number(arg) for arg in call.args)
    for arg, option in zip(call.args, options[:-1], strict=False):
        if isinstance(option, Number):
            raise call.error(arg, "a constant is always known: what follows is never used")
    return Coalesce(options)


def _abs(call: Call) -> Expression:
    call.need(1, 1)
    operand = call.reader.number(call.args[0])
    if isinstance(operand, Number):
        return replace(operand, value=abs(operand.value))
    return Absolute(operand)


def _presence(call: Call) -> Expression:
    call.need(1, 1)
    return Presence(call.name, call.signal(0))


def _changed_to(call: Call) -> Expression:
    call.need(3, 3)
    return ChangedTo(call.signal(0, ("code", "enum")), call.codes(1), call.window(2))


def _is_code(call: Call) -> Expression:
    call.need(2, 2)
    return IsCode(call.signal(0, ("code", "enum")), call.codes(1))


def _past(call: Call) -> Expression:
    call.need(2, 2)
    operand, offset = call.reader.either(call.args[0]), call.window(1)
    if not signals_of(operand):
        raise call.error(call.args[0], "only readings have a past", "name a signal")
    if isinstance(operand, Truthy):
        return PastTruth(operand, offset)
    return PastNumber(operand, offset)


def _peers(call: Call) -> Expression:
    call.need(1, 1)
    (group, _, function), arg = call.name.partition("."), call.args[0]
    made: Peers | PeerCount
    if function in {"count", "share"}:
        made = PeerCount(function, call.reader.truth(arg), group)
    else:
        made = Peers(function, call.reader.number(arg), group)
    for inner in walk(made.operand):
        if isinstance(inner, Peers | PeerCount):
            raise call.reader.source.error(inner.span, "peers inside peers")
    if not any(isinstance(inner, Attr) or hasattr(inner, "signal") for inner in walk(made)):
        raise call.error(arg, "all peers share a constant", "name a signal")
    known = call.reader.catalogue.signals
    if group == "rail" and any(known[name].scope != "port" for name in signals_of(made)):
        raise call.error(arg, "only ports have rails", "compare siblings.* or job.*")
    return made


CALLS: dict[str, Callable[[Call], Expression]] = {
    "last": _last,
    **dict.fromkeys(("avg", "min", "max", "rate", "increase", "changes", "stddev"), _window),
    "quantile": _quantile,
    "age": _age,
    "has": _has,
    "share": _share,
    "coalesce": _coalesce,
    "abs": _abs,
    **dict.fromkeys(("known", "missing", "blank"), _presence),
    "changed_to": _changed_to,
    "is_code": _is_code,
    "past": _past,
    **{
        f"{group}.{name}": _peers
        for group in GROUPS
        for name in ("median", "mad", "min", "max", "count", "share")
    },
}
