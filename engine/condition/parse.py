"""Text to tree: Python's expression syntax, cut down to what a condition may say.

Python's own parser (`ast`) gives the precedence and the positions; nothing is ever evaluated.
Every construct that is not named here is refused, with the place of the token and what to write
instead. Length, depth and windows are capped, so that no text can cost much.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from engine.catalogue.types import Catalogue, Place, Signal
from engine.condition.calls import CALLS, GROUPS, USAGE, Call
from engine.condition.source import MAX_WINDOW_S, Source
from engine.condition.tree import (
    LOOKBACK,
    And,
    Attr,
    Binary,
    Compare,
    Expression,
    Negative,
    Not,
    Number,
    Numeric,
    Or,
    PastNumber,
    PastTruth,
    Presence,
    Reading,
    Span,
    Truthy,
    children,
    push_not,
    reach_s,
)
from engine.condition.units import unit_of

MAX_LENGTH = 2000
MAX_DEPTH = 20

_ALLOWED = re.compile(r"[A-Za-z0-9_\s.,()+\-*/<>=!{}\"']*", re.ASCII)
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("+", lambda a, b: a + b),
    ast.Sub: ("-", lambda a, b: a - b),
    ast.Mult: ("*", lambda a, b: a * b),
    ast.Div: ("/", lambda a, b: a / b),
}


def parse(text: str, catalogue: Catalogue, place: Place) -> Truthy:
    """Return the tree of a condition, with every ``not`` moved to the leaves.

    Raises:
        CatalogueError: the text is no condition over this catalogue; file, line and column are
            those of the token at fault.
    """
    return Parser(text, catalogue, place).condition()


class Parser:
    """Turns one text into one tree; `engine.condition.calls` holds what the functions take."""

    def __init__(self, text: str, catalogue: Catalogue, place: Place) -> None:
        self.source = Source(text, place)
        self.catalogue = catalogue
        self.attrs = frozenset(name for model in catalogue.models for name in model.attrs)
        self._shift = len(text) - len(text.lstrip())

    def condition(self) -> Truthy:
        """Parse the whole text."""
        root = self._syntax()
        self._check_depth(root)
        tree = push_not(self.truth(root))
        self._check_past(tree, inside=False)
        if reach_s(tree) > MAX_WINDOW_S + LOOKBACK:
            raise self.source.error(
                tree.span, "looks back too far", "windows and offsets: up to 7d in all"
            )
        return tree

    def _syntax(self) -> ast.expr:
        text = self.source.text
        if len(text) > MAX_LENGTH:
            where = (MAX_LENGTH, MAX_LENGTH)
            raise self.source.error(where, f"longer than {MAX_LENGTH} characters", "split the rule")
        if not text.strip():
            raise self.source.error((0, 0), "the condition is empty", "write a comparison")
        good = _ALLOWED.match(text)
        end = good.end() if good else 0
        if end < len(text):
            raise self.source.error((end, end + 1), f"unexpected character {text[end]!r}")
        # Line ends become blanks: a condition may be laid out over several lines.
        flat = re.sub(r"\s", " ", text).strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return ast.parse(flat, mode="eval").body
        except SyntaxError as error:
            at = self._shift + max((error.offset or 1) - 1, 0)
            message = f"cannot be read: {error.msg}"
            raise self.source.error((at, at), message, "check brackets and quotes") from None
        except (ValueError, MemoryError, RecursionError):
            raise self.source.error((0, 0), "cannot be read", "simplify the condition") from None

    def _check_depth(self, root: ast.expr) -> None:
        level: list[ast.AST] = [root]
        for _ in range(MAX_DEPTH):
            level = [
                child
                for node in level
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.expr)
            ]
            if not level:
                return
        span = self.span(cast("ast.expr", level[0]))
        raise self.source.error(span, f"nested deeper than {MAX_DEPTH} levels", "split the rule")

    def _check_past(self, node: Expression, *, inside: bool) -> None:
        """Refuse ``blank`` inside ``past``: what was thrown away has no times."""
        if isinstance(node, Presence) and node.state == "blank" and inside:
            raise self.source.error(
                node.span, "blank() cannot be asked about the past", "use missing()"
            )
        inside = inside or isinstance(node, PastNumber | PastTruth)
        for child in children(node):
            self._check_past(child, inside=inside)

    def span(self, node: ast.expr) -> Span:
        """Return where a syntax node stands in the text."""
        end = node.end_col_offset or node.col_offset
        return (self._shift + node.col_offset, self._shift + end)

    def truth(self, node: ast.expr) -> Truthy:
        """Parse something that must be true or false."""
        found = self.either(node)
        if not isinstance(found, Truthy):
            message = "a number where a condition is needed"
            raise self.source.error(self.span(node), message, "compare it, for example: ... > 0")
        return found

    def number(self, node: ast.expr) -> Numeric:
        """Parse something that must be a number."""
        found = self.either(node)
        if isinstance(found, Truthy):
            raise self.source.error(self.span(node), "a condition where a number is needed")
        return found

    def either(self, node: ast.expr) -> Expression:
        """Parse a condition or a number, whichever it is."""
        span = self.span(node)
        match node:
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp():
                parts = tuple(self.truth(value) for value in node.values)
                kind = And if isinstance(node.op, ast.And) else Or
                return kind(parts, span=span)
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.truth(node.operand), span=span)
            case ast.UnaryOp(op=ast.USub()):
                operand = self.number(node.operand)
                if isinstance(operand, Number):
                    return replace(operand, value=-operand.value, span=span)
                return Negative(operand, span=span)
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.Call():
                return self._call(node)
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return Reading("last", self.signal(node).id, LOOKBACK, span=span)
            case ast.Attribute(value=ast.Name(id="gpu")):
                if node.attr not in self.attrs:
                    at = (span[1] - len(node.attr), span[1])
                    raise self.source.unknown(at, "GPU attribute", node.attr, self.attrs)
                return Attr(node.attr, span=span)
            case ast.Attribute(value=ast.Name(id="limit")):
                return self._limit(node)
            case _:
                raise self.source.error(span, "not part of the condition language")

    def signal(self, node: ast.expr) -> Signal:
        """Parse the name of a signal."""
        if not isinstance(node, ast.Name):
            raise self.source.error(self.span(node), "not the name of a signal")
        known = self.catalogue.signals
        if node.id not in known:
            raise self.source.unknown(self.span(node), "signal", node.id, [*known, *CALLS])
        return known[node.id]

    def _compare(self, node: ast.Compare) -> Compare:
        span = self.span(node)
        if len(node.ops) > 1:
            raise self.source.error(
                self.span(node.comparators[1]),
                "comparisons cannot be chained",
                "write: a < b and b < c",
            )
        op = _COMPARE.get(type(node.ops[0]))
        if op is None:
            raise self.source.error(span, "no such comparison", "use < <= > >= == or !=")
        left, right = self.number(node.left), self.number(node.comparators[0])
        if isinstance(left, Number) and isinstance(right, Number):
            raise self.source.error(span, "compares constants only", "name a signal")
        self._check_unit(left, right)
        self._check_unit(right, left)
        return Compare(op, left, right, span=span)

    def _check_unit(self, limit: Numeric, other: Numeric) -> None:
        """Refuse to compare a limit with a number of another unit, such as 85 with a ratio."""
        unit = unit_of(other, self.catalogue)
        if isinstance(limit, Number) and limit.unit and unit and limit.unit != unit:
            name = " and ".join(f"limit.{name}" for name in limit.limits)
            message = f"{name} is in {limit.unit}, what it is compared with in {unit}"
            hint = f"write unit: {unit}, and the value in it; or take a limit of that unit"
            raise self.source.error(limit.span, message, hint)

    def _limit(self, node: ast.Attribute) -> Number:
        """Parse ``limit.ID``: the value of a threshold of the catalogue."""
        span, known = self.span(node), self.catalogue.limits
        if node.attr not in known:
            at = (span[1] - len(node.attr), span[1])
            raise self.source.unknown(at, "limit", node.attr, known)
        limit = known[node.attr]
        return Number(limit.value, (limit.id,), limit.unit, span=span)

    def _constant(self, node: ast.Constant) -> Number:
        span, value = self.span(node), node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.source.error(span, f"{value!r:.60} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.source.error(span, "the number is too large")
        return Number(number, span=span)

    def _arithmetic(self, node: ast.BinOp) -> Numeric:
        span = self.span(node)
        if type(node.op) not in _ARITHMETIC:
            raise self.source.error(span, "no such operator", "use + - * or /")
        op, compute = _ARITHMETIC[type(node.op)]
        left, right = self.number(node.left), self.number(node.right)
        if op == "/" and isinstance(right, Number) and right.value == 0:
            raise self.source.error(right.span, "division by zero")
        if isinstance(left, Number) and isinstance(right, Number):
            value = compute(left.value, right.value)
            if not math.isfinite(value):
                raise self.source.error(span, "the number is too large")
            unit = (left.unit or right.unit) if op in "+-" else ""
            limits = tuple(dict.fromkeys((*left.limits, *right.limits)))
            return Number(value, limits, unit, span=span)
        return Binary(op, left, right, span=span)

    def _call(self, node: ast.Call) -> Expression:
        where = self.span(node.func)
        match node.func:
            case ast.Name(id=name):
                start = where[0]
            case ast.Attribute(value=ast.Name(id=group), attr=attr) if group in GROUPS:
                name, start = f"{group}.{attr}", where[1] - len(attr)
            case _:
                raise self.source.error(where, "not part of the condition language")
        if name == "xids":
            raise self.source.error(
                where, "xids() gives codes, not a condition", "use it in changed_to()"
            )
        if name not in CALLS:
            raise self.source.unknown((start, where[1]), "function", name, CALLS)
        if node.keywords:
            at = self.span(node.keywords[0].value)
            raise self.source.error(at, "arguments have no names here", f"write: {USAGE[name]}")
        made = CALLS[name](Call(self, name, node))
        return replace(made, span=self.span(node))
