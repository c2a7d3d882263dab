"""Label matchers and time windows, evaluated here for sources that have no query language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.errors import UsageError
from engine.samples import Floats, Matcher, RawSeries, Selection
from engine.sources.text import show

# Prometheus keeps times in whole milliseconds: half of one absorbs the rounding of float seconds.
HALF_MS = 0.0005

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# What Python's re reads differently from RE2, or RE2 refuses: look-around, back references,
# possessive and atomic groups, POSIX classes. Better an error than an answer no server would give.
_NOT_RE2 = re.compile(r"\(\?(?:[=!>(]|<[=!]|P[=>])|\\[1-9]|\[\[:|[*+?}]\+")
_MAX_PATTERN = 10_000


def check_matcher(matcher: Matcher) -> None:
    """Raise UsageError for a matcher no server would accept."""
    if not _LABEL_NAME.fullmatch(matcher.label):
        raise UsageError(f"'{show(matcher.label)}' is not a label name")
    if matcher.op not in {"=", "!=", "=~", "!~"}:
        raise UsageError(
            f"'{show(matcher.op)}' does not compare labels", hint="use one of =, !=, =~, !~"
        )


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile an RE2 pattern with Python's engine, refusing what the two read differently.

    Raises:
        UsageError: the pattern is malformed, too long, or uses what RE2 or Python lacks.
    """
    if len(pattern) > _MAX_PATTERN:
        raise UsageError(f"the pattern '{show(pattern, 40)}' is longer than {_MAX_PATTERN} letters")
    odd = _NOT_RE2.search(pattern.replace(r"\\", ""))
    if odd:
        raise UsageError(
            f"the pattern '{show(pattern)}' holds '{odd.group()}', which metrics servers (RE2) "
            "and files do not read alike",
            hint="write it without",
        )
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as e:
        raise UsageError(f"the pattern '{show(pattern)}' is malformed: {e}") from e


def _test(matcher: Matcher) -> Callable[[Mapping[str, str]], bool]:
    check_matcher(matcher)
    label, value = matcher.label, matcher.value
    if matcher.op == "=":
        return lambda labels: labels.get(label, "") == value
    if matcher.op == "!=":
        return lambda labels: labels.get(label, "") != value
    fullmatch = compile_pattern(value).fullmatch
    wanted = matcher.op == "=~"
    return lambda labels: (fullmatch(labels.get(label, "")) is not None) == wanted


class Wanted:
    """Which series a wave of selections asks for, and how much of each.

    Attributes:
        names: the metric names in UTF-8, or None if any name may match.
        window_s: the longest window asked for (s).
    """

    def __init__(self, selections: Iterable[Selection]) -> None:
        self._rules = [
            (frozenset(s.names), [_test(m) for m in s.matchers], s.window_s) for s in selections
        ]
        every = [names for names, _, _ in self._rules]
        self.names: frozenset[bytes] | None = None
        if all(every):
            self.names = frozenset(n.encode() for names in every for n in names)
        self.window_s = max((w for _, _, w in self._rules), default=0.0)

    def window(self, name: str, labels: Mapping[str, str]) -> float | None:
        """Return the window (s) wanted of this series, or None if no selection matches it."""
        found: float | None = None
        full: Mapping[str, str] = {"__name__": name, **labels}
        for names, tests, window_s in self._rules:
            if names and name not in names:
                continue
            if (found is None or window_s > found) and all(test(full) for test in tests):
                found = window_s
        return found


def clip(ts: Floats, values: Floats, lo: float, hi: float) -> tuple[Floats, Floats]:
    """Return the part of a series (times ascending) inside the closed window [lo, hi] (s)."""
    if ts.size and ts.item(0) >= lo - HALF_MS and ts.item(-1) <= hi + HALF_MS:
        return ts, values
    first = int(ts.searchsorted(lo - HALF_MS, side="left"))
    last = int(ts.searchsorted(hi + HALF_MS, side="right"))
    return ts[first:last], values[first:last]


def series_key(name: str, labels: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the identity of a series, which is also the order series are given in."""
    return name, tuple(sorted(labels.items()))


def pick(
    series: Iterable[RawSeries], selections: Sequence[Selection], at: float
) -> list[RawSeries]:
    """Select from series in memory what a wave asks for, clipped to its window."""
    wanted = Wanted(selections)
    picked = []
    for one in series:
        window_s = wanted.window(one.name, one.labels)
        if window_s is None:
            continue
        ts, values = clip(one.ts, one.values, at - window_s, at)
        if len(ts):
            picked.append(RawSeries(one.name, one.labels, ts, values))
    return picked


def distinct(
    found: Iterable[tuple[str, Mapping[str, str]]], labels: Sequence[str]
) -> list[dict[str, str]]:
    """Reduce series (name, labels) to the sorted distinct combinations of some labels."""
    rows = {tuple({"__name__": n, **ls}.get(k, "") for k in labels) for n, ls in found}
    return [{k: v for k, v in zip(labels, row, strict=True) if v} for row in sorted(rows)]
