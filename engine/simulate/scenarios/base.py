"""What a scenario is, how it becomes readings, and the text form of those readings.

A scenario is a story with a known end: something is wrong with a GPU, node, job or service (or
nothing is), exporters show it with noise, gaps and red herrings, and the taxonomy names the right
answer. Scenarios are written from vendor facts and from what exporters publish; they know no rule,
so that they are an honest examination of the rules.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from engine.samples import RawSeries

# The moment every scenario is judged at: 2025-11-29 16:00:00 UTC (Unix s).
AT = 1764432000.0


class Severity(StrEnum):
    """How strongly a fault shows. An expert names even a mild one from the same readings."""

    MILD = "mild"
    CLEAR = "clear"
    SEVERE = "severe"

    def pick(self, mild: float, clear: float, severe: float) -> float:
        """Return the figure that belongs to this severity."""
        return {Severity.MILD: mild, Severity.CLEAR: clear, Severity.SEVERE: severe}[self]


Make = Callable[[np.random.Generator, Severity], list[RawSeries]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story with a known answer.

    Attributes:
        id: permanent name, unique over the suite.
        title: one line for people.
        family: what it is about (``power``, ``memory``, ``healthy`` …).
        target: the target as typed after ``why``.
        causes: taxonomy ids accepted as the first cause, best first. Empty: nothing is wrong, and
            nothing but benign findings may be said.
        make: turns randomness and a severity into readings up to `AT`.
        culprit: name of the entity at fault, if it is another than the target, or one of its
            members; None if there is none to name.
        window_s: the window asked for (s).
    """

    id: str
    title: str
    family: str
    target: str
    causes: tuple[str, ...]
    make: Make = field(repr=False)
    culprit: str | None = None
    window_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Run:
    """Readings of one scenario at one severity and seed, and the moment to judge (Unix s)."""

    scenario: Scenario
    severity: Severity
    seed: int
    series: list[RawSeries] = field(repr=False)
    at: float = AT


def realise(scenario: Scenario, severity: Severity, seed: int) -> Run:
    """Make the readings of a scenario; the same three arguments always give the same ones.

    Raises:
        ValueError: two series have the same name and labels, or times do not ascend.
    """
    order = list(Severity).index(severity)
    rng = np.random.default_rng([zlib.crc32(scenario.id.encode()), order, seed])
    series = [one for one in scenario.make(rng, severity) if one.ts.size]
    series.sort(key=_key)
    _check(scenario, series)
    return Run(scenario, severity, seed, series)


def openmetrics(run: Run) -> str:
    """Return the readings as OpenMetrics text with timestamps (s), for a file or promtool."""
    return "".join(_lines(run.series))


def _lines(series: list[RawSeries]) -> Iterator[str]:
    before = None
    for one in series:
        if one.name != before:
            before = one.name
            if one.name.endswith("_total"):
                yield f"# TYPE {one.name.removesuffix('_total')} counter\n"
        prefix = one.name + _braces(one)
        for t, value in zip(one.ts.tolist(), one.values.tolist(), strict=True):
            yield f"{prefix} {value!r} {t:.3f}\n"
    yield "# EOF\n"


def _braces(one: RawSeries) -> str:
    if not one.labels:
        return ""
    pairs = []
    for label, value in sorted(one.labels.items()):
        safe = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        pairs.append(f'{label}="{safe}"')
    return "{" + ",".join(pairs) + "}"


def _key(one: RawSeries) -> tuple[str, tuple[tuple[str, str], ...]]:
    return one.name, tuple(sorted(one.labels.items()))


def _check(scenario: Scenario, series: list[RawSeries]) -> None:
    """Refuse what no server could hold: a scenario that is wrong must not look like a finding."""
    seen = set()
    for one in series:
        key = _key(one)
        if key in seen:
            raise ValueError(f"scenario {scenario.id}: {one.name} {dict(one.labels)} comes twice")
        seen.add(key)
        if np.any(np.diff(one.ts) <= 0):
            raise ValueError(f"scenario {scenario.id}: times of {one.name} do not ascend")
