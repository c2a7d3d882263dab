"""What a sweep asks besides symptoms: who is silent, and of whom a server cannot judge.

Every query here finds a superset. What a server cannot know (which samples are no readings, that
one signal lies in several series, that a GPU is cut into instances) is asked for as well, and GPUs
of which it is so are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engine.catalogue.types import Signal, Spelling
from engine.condition import LabelProfile
from engine.condition.prune import ALWAYS, NEVER, prune
from engine.condition.selectors import constant, quoted
from engine.condition.tree import And, Or, Presence
from engine.diagnosis.sweepqueries import Bit, Compile, Known, of_tree, over, spelled
from engine.samples import Matcher
from engine.signals.clean import INT32_BLANK
from engine.signals.labels import MIG_LABELS

_BLANK64 = 9.2e18


def lacks(core: Iterable[Sequence[str]], known_: Known) -> Bit | None:
    """Ask which GPUs lack a fresh core reading; None if all do."""
    parts = tuple(Or(tuple(Presence("known", s) for s in group)) for group in core)
    tree = prune(And(parts), known_.present)
    there = None if tree in (NEVER, ALWAYS) else of_tree("", tree, known_, loose=True)
    if there is None:
        return None
    names = spelled(known_, [s for group in core for s in group])

    def compile_(profile: LabelProfile) -> str:
        by = ", ".join(profile.entity)
        everybody = over("last_over_time", names, profile, known_.window_s)
        return f"group by ({by}) ({everybody}) unless on({by}) ({there.compile(profile)})"

    return Bit("lacks", compile_)


def doubled(core: Iterable[Sequence[str]], known_: Known) -> Bit:
    """Ask which GPUs have a core reading in several series: pods came and went, or share it."""
    names = spelled(known_, [s for group in core for s in group])
    return Bit("doubled", lambda profile: _doubled(names, profile, known_.window_s))


def _doubled(names: Sequence[str], profile: LabelProfile, window_s: int) -> str:
    by = ", ".join(profile.entity)
    series = over("last_over_time", names, profile, window_s)
    return f"group by ({by}) (count by (__name__, {by}) ({series}) > 1)"


def sliced(core: Iterable[Sequence[str]], known_: Known) -> list[Bit]:
    """Ask which GPUs are cut into MIG instances: some of their readings mean nothing."""
    names = spelled(known_, [s for group in core for s in group])

    def made(label: str) -> Compile:
        def compile_(profile: LabelProfile) -> str:
            cut = replace(profile, selector=(*profile.selector, Matcher(label, "!=", "")))
            series = over("last_over_time", names, cut, known_.window_s)
            return f"group by ({', '.join(profile.entity)}) ({series})"

        return compile_

    return [Bit(f"sliced {label}", made(label)) for label in MIG_LABELS]


def counted_events(known_: Known) -> list[Bit]:
    """Ask which GPUs have Xids in the counts by code, which are merged into the gauge here."""
    return [
        Bit(f"events {name}", _above(name, 0.0, known_.window_s))
        for name in spelled(known_, ["xid_count"])
    ]


def _above(name: str, least: float, window_s: int) -> Compile:
    def compile_(profile: LabelProfile) -> str:
        series = over("max_over_time", [name], profile, window_s)
        return f"group by ({', '.join(profile.entity)}) ({series} > {constant(least)})"

    return compile_


def no_readings(signals: Iterable[str], known_: Known) -> list[Bit]:
    """Ask which GPUs have samples that are no readings: blank markers, NaN, out of range.

    The server would take them for numbers. That an exporter writes percent for a ratio shows here
    too, since the range of ratios ends a little above 1.
    """
    chosen = [known_.catalogue.signals[s] for s in sorted(signals)]
    return [
        Bit(f"no reading {sp.name}", _outside(signal, sp, known_.window_s))
        for signal in chosen
        for sp in signal.spellings
    ]


def _outside(signal: Signal, spelling: Spelling, window_s: int) -> Compile:
    high = _BLANK64 if signal.high is None else min(signal.high / spelling.scale, _BLANK64)
    if signal.kind != "counter" and spelling.scale == 1:
        high = min(high, INT32_BLANK - 1) if high > INT32_BLANK + 3 and _is_small(signal) else high
    low = -_BLANK64 if signal.low is None else signal.low / spelling.scale
    match = tuple(Matcher(k, "=", v) for k, v in sorted(spelling.match.items()))

    def compile_(profile: LabelProfile) -> str:
        by = ", ".join(profile.entity)
        own = replace(profile, selector=(*profile.selector, *match))
        largest = over("max_over_time", [spelling.name], own, window_s)
        # NaN sorts lowest, and compares as neither below nor above: what is not at least the
        # lowest reading is none.
        least = over("quantile_over_time", [spelling.name], own, window_s, "0, ")
        return (
            f"group by ({by}) ({largest} > {constant(high)}"
            f" or ({least} >= bool {constant(low)}) == 0)"
        )

    return compile_


def _is_small(signal: Signal) -> bool:
    """Whether readings of a signal stay below the 32-bit blank markers (rates in bytes do not)."""
    return signal.unit != "B/s"


def several_series(known_: Known, names: Sequence[str], core: Sequence[str]) -> Compile:
    """Ask of which metric names an entity has several series.

    GPUs whose core readings (``core``, metric names) are doubled do not count.
    """
    labels = sorted(
        {k for s in known_.catalogue.signals.values() for sp in s.spellings for k in sp.match}
    )

    def compile_(profile: LabelProfile) -> str:
        by = ", ".join(profile.entity)
        series = over("last_over_time", names, profile, known_.window_s)
        each = f"count by ({', '.join(['__name__', *labels, by])}) ({series}) > 1"
        doubled_ = f" unless on({by}) {_doubled(core, profile, known_.window_s)}" if core else ""
        return f"count by (__name__) (({each}){doubled_})"

    return compile_


def several_names(known_: Known, signals: Mapping[str, Sequence[str]]) -> Compile:
    """Ask which signals a GPU has under several names at once; the label ``signal`` tells them."""

    def compile_(profile: LabelProfile) -> str:
        by = ", ".join(profile.entity)
        parts = []
        for signal, names in signals.items():
            series = over("last_over_time", names, profile, known_.window_s)
            each = f"count(count by ({by}) (group by (__name__, {by}) ({series})) > 1)"
            parts.append(f'label_replace({each}, "signal", {quoted(signal)}, "", "")')
        return " or ".join(parts)

    return compile_
