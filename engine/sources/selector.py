"""Selections as PromQL text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import orjson

from engine.samples import Matcher
from engine.sources.matching import HALF_MS, check_matcher, compile_pattern

# VictoriaMetrics refuses queries over 16 KiB (-search.maxQueryLen); proxies in front of servers
# that only take GET commonly refuse URLs over 8 KiB, after percent-encoding.
POST_LIMIT = 12_000
GET_LIMIT = 3_000

_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


def quote(text: str) -> str:
    """Return a PromQL string literal: JSON's escapes are among those Go reads."""
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def _matcher(matcher: Matcher) -> str:
    check_matcher(matcher)
    if matcher.op in {"=~", "!~"}:
        compile_pattern(matcher.value)
    return f"{matcher.label}{matcher.op}{quote(matcher.value)}"


@lru_cache(maxsize=256)
def _names(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"__name__={quote(names[0])}"
    return "__name__=~" + quote("|".join(_SPECIAL.sub(r"\\\1", name) for name in names))


def selectors(
    names: Sequence[str], matchers: Sequence[Matcher], limit: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Write ``{__name__=~"a|b",Hostname="node-3"}``, in several parts if it gets too long.

    Args:
        names: metric names; empty means any.
        matchers: all must hold.
        limit: characters one selector may have.

    Yields:
        The metric names of a part, and its selector.

    Raises:
        UsageError: a matcher is malformed.
    """
    rest = ",".join(map(_matcher, matchers))
    tail = f",{rest}" if rest else ""
    if not names:
        yield (), f"{{{rest}}}"
        return
    for part in _parts(tuple(names), limit - len(tail) - len('{__name__=~""}')):
        yield part, f"{{{_names(part)}{tail}}}"


# Every question asks for the same few lists of some hundred names, under several labels.
@lru_cache(maxsize=256)
def _parts(names: tuple[str, ...], room: int) -> tuple[tuple[str, ...], ...]:
    """Divide names so that those of each part fit into so many characters."""
    parts: list[list[str]] = [[]]
    left = room
    for name in dict.fromkeys(names):
        cost = len(quote(name)) + 1
        if parts[-1] and cost > left:
            parts.append([])
            left = room
        parts[-1].append(name)
        left -= cost
    return tuple(map(tuple, parts))


def window_ms(at: float, window_s: float) -> tuple[int, int]:
    """Return evaluation time and range (ms) of a query that surely covers [at - window_s, at].

    Prometheus 3 and VictoriaMetrics leave the left end of a range open, Prometheus 2 does not: one
    millisecond more, the unit they keep times in, closes it on all; what is too much is clipped.
    """
    end = math.ceil((at - HALF_MS) * 1000)
    start = math.floor((at - window_s + HALF_MS) * 1000) - 1
    return end, end - start
