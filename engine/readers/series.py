"""The samples of pasted exporter text, series by series, with what is no reading set apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from engine.catalogue.types import Catalogue, Signal
from engine.signals.clean import reason
from engine.signals.labels import Place, locate

_PLAIN_REASONS = ("out of range", "NaN")
_MAX_NAME = 80
# No signal counts or measures so much; DCGM's markers of 64 bits begin near it.
_NO_QUANTITY = 9.2e18
_SERVER = re.compile(r"(?:ray_)?(?:vllm|sglang)[:_]")


@dataclass(slots=True)
class Series:
    """One series.

    Attributes:
        signals: the signals that its name may spell, with the scale to canonical units.
        first, last, count, highest: the good samples: oldest and newest value, how many, largest.
        increase: how far a counter rose over the samples; a fall is a restart from 0.
        start, end: times of the oldest and newest sample (Unix s), None without times.
        bad: why samples are no readings (DCGM's name of the blank, ``out of range`` …) and how
            often; ``bad_value`` is the first of them.
    """

    name: str
    labels: Mapping[str, str]
    place: Place
    line: int
    signal: Signal | None
    scale: float
    first: float | None = None
    last: float | None = None
    count: int = 0
    highest: float = float("-inf")
    increase: float = 0.0
    start: float | None = None
    end: float | None = None
    bad: dict[str, int] = field(default_factory=dict)
    bad_value: float | None = None

    @property
    def value(self) -> float | None:
        """The newest good sample in the signal's canonical unit."""
        return None if self.last is None else self.last * self.scale

    @property
    def unit(self) -> str:
        """The canonical unit, empty for a series that is no known signal."""
        return self.signal.unit if self.signal else ""


class Collected:
    """Everything a text holds, bounded in number of series."""

    LIMIT = 12_000

    def __init__(self, catalogue: Catalogue) -> None:
        self.series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
        self.valueless: dict[str, int] = {}
        self.valueless_line = 0
        self.overflow = False
        self.kubernetes = False
        self._spellings = catalogue.spellings
        self._fields = {
            name: e
            for e in catalogue.entries.get("dcgm_fields", {}).values()
            for name in e["names"]
        }

    def knows(self, name: str) -> bool:
        """Return whether a name is that of a known metric."""
        return (
            name in self._spellings
            or name in self._fields
            or name.startswith(("DCGM_F", "node_", "tgi_", "gpu_nodes_"))
            or bool(_SERVER.match(name))
        )

    def add(
        self,
        name: str,
        labels: Mapping[str, str],
        value: float,
        line: int,
        written: str = "",
        stamp: float | None = None,
    ) -> None:
        """Add one sample; ``written`` is the text of its value, ``stamp`` its time (Unix s)."""
        key = (name, frozenset(labels.items()))
        series = self.series.get(key)
        if series is None:
            if len(self.series) >= self.LIMIT:
                self.overflow = True
                return
            signal, scale = self._signal(name, labels)
            series = Series(name, labels, locate(labels), line, signal, scale)
            self.series[key] = series
        why = _why_no_reading(series, value, written)
        if why is None:
            _take(series, value, stamp)
        else:
            series.bad[why] = series.bad.get(why, 0) + 1
            if series.bad_value is None:
                series.bad_value = value

    @property
    def scrapes(self) -> int:
        """How many scrapes the text holds: 2 or more if most series stand in it that often."""
        counts = sorted(s.count for s in self.series.values() if s.count)
        return counts[len(counts) // 2] if counts else 0

    def field(self, name: str) -> Mapping[str, Any] | None:
        """Return the entry of a DCGM field by any of its names, None if it is none."""
        return self._fields.get(name)

    def add_valueless(self, line: int, name: str) -> None:
        """Note a series line without a value."""
        self.valueless_line = self.valueless_line or line
        if name in self.valueless or len(self.valueless) < self.LIMIT:
            self.valueless[name] = self.valueless.get(name, 0) + 1

    def judged(self, series: Series) -> bool:
        """Return whether the rules may say something of a series; AMD's have no signal here."""
        known = series.signal is not None or series.name.startswith("DCGM_")
        return known or series.name in self._spellings

    def of(self, *signals: str) -> Iterator[Series]:
        """Yield the series of some signals, in the order of the text."""
        for series in self.series.values():
            if series.signal is not None and series.signal.id in signals:
                yield series

    def _signal(self, name: str, labels: Mapping[str, str]) -> tuple[Signal | None, float]:
        for signal, spelling in self._spellings.get(name, ()):
            # AMD's names have a reader of their own, which knows their quirks and words.
            if spelling.vendor == "amd":
                continue
            if all(labels.get(k) == v for k, v in spelling.match.items()):
                return signal, spelling.scale
        return None, 1.0


def tidy(name: str) -> str:
    """Return a name out of foreign text, fit to be shown."""
    kept = "".join(c if c.isprintable() else "?" for c in name[: _MAX_NAME + 1])
    return kept if len(kept) <= _MAX_NAME else kept[: _MAX_NAME - 1] + "…"


def is_profiling(name: str) -> bool:
    """Return whether a metric is one of DCGM's profiling fields."""
    return "_PROF_" in name


def _take(series: Series, value: float, stamp: float | None) -> None:
    if series.last is None:
        series.first = value
    else:
        series.increase += value - series.last if value >= series.last else max(value, 0.0)
    series.last = value
    series.count += 1
    series.highest = max(series.highest, value)
    if stamp is not None:
        series.start = stamp if series.start is None else series.start
        series.end = stamp


def _why_no_reading(series: Series, value: float, written: str) -> str | None:
    """Return why a value is no reading, None if it is one."""
    why = reason(value, written)
    signal = series.signal
    counter = signal is not None and signal.kind == "counter"
    if why.startswith(("INT32", "UINT32")) and (counter or signal is None):
        # A counter may pass these by counting; of an unknown metric nothing can be told.
        return None if counter or why.startswith("UINT32") else why
    if why not in _PLAIN_REASONS:
        return why
    if why == "NaN":
        return why
    if signal is not None and (
        abs(value) >= _NO_QUANTITY or (signal.kind == "code" and value != int(value))
    ):
        return why
    if signal is None or signal.unit == "ratio":
        # Ratios written as percent are looked at together; infinity is no reading of anything.
        return None if isfinite(value) else why
    canonical = value * series.scale
    low = signal.low if signal.low is not None else float("-inf")
    high = signal.high if signal.high is not None else float("inf")
    return None if low <= canonical <= high else why
