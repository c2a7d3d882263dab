"""PromQL in small pieces: selectors, durations, numbers, and how a reading is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.samples import Matcher, Origin

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SPANS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
# What shows a reading best; functions that have no counterpart show the raw samples.
_SHOWN = {
    "avg": "avg_over_time",
    "min": "min_over_time",
    "max": "max_over_time",
    "stddev": "stddev_over_time",
    "rate": "rate",
    "increase": "increase",
    "changes": "changes",
}


@dataclass(frozen=True, slots=True)
class LabelProfile:
    """Which labels carry identity in a metrics server.

    Attributes:
        entity: the labels that together name one entity.
        host: the label that names its host.
        job: the label that names its job, empty if series do not carry it.
        rail: the label that names what is compared with its like of other hosts, of ports only.
        model: the label with the GPU's model name.
        selector: matchers that every selector gets.
        one_series: the server is known to keep each signal of an entity in one series. Where it
            is not, an average over several series is only bounded, never exact.
        closed: windows hold the samples at both their ends, as local evaluation has it; servers
            leave the older end open. Widens every window by one millisecond.
        everywhere: metric names of which every entity that matters has one; by default these are
            the core readings and what a condition reads.
        slack: by which part of a number a comparison may be missed and still count as true, so
            that sums rounded in another order on the server do not hide anything.
    """

    entity: tuple[str, ...] = ("UUID",)
    host: str = "Hostname"
    job: str = ""
    rail: str = ""
    model: str = "modelName"
    selector: tuple[Matcher, ...] = ()
    one_series: bool = False
    closed: bool = False
    everywhere: tuple[str, ...] = ()
    slack: float = 0.0


def quoted(value: str) -> str:
    """Return a label value as a PromQL string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def selector(name: str, matchers: Iterable[Matcher]) -> str:
    """Return a series selector of a metric name, or of any if it is empty.

    A name that PromQL cannot spell becomes a matcher.
    """
    inner = [f"{m.label}{m.op}{quoted(m.value)}" for m in matchers]
    if name and not _NAME.fullmatch(name):
        inner.insert(0, f"__name__={quoted(name)}")
        name = ""
    return f"{name}{{{','.join(inner)}}}" if inner else name


def duration(seconds: float) -> str:
    """Return a PromQL duration in the largest unit that fits: ``5m``, ``90s``."""
    whole = int(seconds)
    size, unit = next((s, u) for s, u in _SPANS if whole % s == 0)
    return f"{whole // size}{unit}"


def constant(value: float) -> str:
    """Return a number in PromQL, in parentheses if negative."""
    text = str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return f"({text})" if value < 0 else text


def show_query(
    origin: Origin,
    function: str,
    window_s: float | None,
    *,
    q: float | None = None,
    offset_s: float = 0.0,
) -> str:
    """Return the instant query that shows one reading of one entity.

    Args:
        origin: metric name, matchers and scale as found.
        function: a window function of the condition language, ``age``, ``share``, ``changed_to``.
        window_s: its window (s); not used by ``last`` and ``age``.
        q: the quantile, for ``quantile``.
        offset_s: how far in the past the reading was taken (s).

    ``share`` and ``changed_to`` show the raw samples of the window: PromQL has no such function.
    """
    series = selector(origin.name, origin.matchers)
    offset = f" offset {duration(offset_s)}" if offset_s else ""
    window = f"[{duration(window_s)}]{offset}" if window_s else offset
    if function == "age":
        shift = f" - {constant(offset_s)}" if offset_s else ""
        return f"time(){shift} - timestamp({series}{offset})"
    if function == "last":
        query = f"{series}{offset}"
    elif function == "quantile" and q is not None:
        query = f"quantile_over_time({constant(q)}, {series}{window})"
    elif function in _SHOWN:
        query = f"{_SHOWN[function]}({series}{window})"
    else:
        return f"{series}{window}"
    scaled = origin.scale != 1 and function != "changes"
    return f"{query} * {constant(origin.scale)}" if scaled else query
