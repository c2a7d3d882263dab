"""The queries of a sweep: PromQL that finds the GPUs which must be looked at.

Every query here finds a superset. What a server cannot know (which samples are no readings, that
one signal lies in several series, that a GPU is cut into instances) is asked for as well, and GPUs
of which it is so are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.condition import Condition, LabelProfile
from engine.condition.promql import narrowing
from engine.condition.prune import ALWAYS, NEVER, prune
from engine.condition.selectors import constant, quoted, selector
from engine.condition.tree import (
    And,
    Expression,
    Or,
    PeerCount,
    Peers,
    Presence,
    Truthy,
    signals_of,
    walk,
)
from engine.samples import Matcher
from engine.signals.clean import INT32_BLANK
from engine.signals.labels import MIG_LABELS

# By which part of a number a comparison on the server may be off: a thousand million times what
# rounding can do, a thousandth of what a reading can be told from another by.
SLACK = 1e-6
_BLANK64 = 9.2e18

# What is derived from labels has no series; it is known of GPUs neither doubled nor sliced.
_UNDOUBLED: tuple[Mapping[str, float], ...] = (
    {"mig_instances": 0.0},
    {"mig_instances": 0.0, "pods": 0.0},
    {"mig_instances": 0.0, "pods": 1.0},
)
_DERIVED = frozenset({"pods", "mig_instances"})

Compile = Callable[[LabelProfile], str]


@dataclass(frozen=True, slots=True)
class Bit:
    """One question about every GPU: for which may something be true?

    Attributes:
        name: a symptom's id, or another name for what makes a GPU suspicious.
        compile: makes the query for a label profile.
        exact: it is true for those found, and for no others.
        compares: with other GPUs of the host.
    """

    name: str
    compile: Compile
    exact: bool = False
    compares: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What a server holds of some GPUs.

    Attributes:
        catalogue: with the spellings and GPU models that are there, and no others.
        present: ids of the signals, and ``gpu.NAME`` facts, that some GPU may have.
        several: signals that may lie in several series of one GPU.
        window_s: how far back is looked (s).
    """

    catalogue: Catalogue
    present: frozenset[str]
    several: frozenset[str]
    window_s: int


def known(
    catalogue: Catalogue,
    names: Collection[str],
    models: Iterable[str],
    also: Iterable[str],
    window_s: int,
) -> Known:
    """Cut a catalogue down to the metric names and GPU models that a server holds.

    Args:
        catalogue: all knowledge.
        names: metric names with a sample in the window.
        models: names of GPU models, as labels have them.
        also: ids of signals that are there under other labels.
        window_s: how far back is looked (s).
    """
    found = {
        name: replace(s, spellings=tuple(sp for sp in s.spellings if sp.name in names))
        for name, s in catalogue.signals.items()
    }
    ids = {model.id for m in models if (model := catalogue.model_for(m))}
    here = tuple(m for m in catalogue.models if m.id in ids)
    facts = {f"gpu.{name}" for model in here for name in model.attrs}
    signals = {name for name, s in found.items() if s.spellings}
    return Known(
        replace(catalogue, signals=found, models=here),
        frozenset({*signals, *facts, *also}),
        frozenset(),
        window_s,
    )


def symptom(name: str, condition: Condition, known_: Known, *, loose: bool) -> Bit | bool | None:
    """Return the question for a symptom.

    Args:
        name: its id.
        condition: what it says.
        known_: what there is.
        loose: find what is true but for rounding as well.

    Returns:
        False if it is true nowhere, True if everywhere, None if the server cannot narrow it down.
    """
    tree = condition.tree
    if not condition.signals.isdisjoint(_DERIVED):
        tree = Or(tuple(prune(tree, known_.present, values) for values in _UNDOUBLED))
    tree = prune(tree, known_.present)
    if tree in (NEVER, ALWAYS):
        return tree == ALWAYS
    return of_tree(name, _compared_once(tree) if loose else tree, known_, loose=loose)


def _compared_once(tree: Truthy) -> Truthy:
    """Of several comparisons with the siblings keep the first: each costs a pass over all GPUs."""
    if not isinstance(tree, And):
        return tree
    compared = [part for part in tree.parts if compares(part)]
    return And(tuple(part for part in tree.parts if part not in compared[1:]))


def compares(tree: Expression) -> bool:
    """Whether a condition compares with other GPUs."""
    return any(isinstance(node, Peers | PeerCount) for node in walk(tree))


def of_tree(name: str, tree: Truthy, known_: Known, *, loose: bool) -> Bit | None:
    """Return the question for a condition, None if the server cannot narrow it down."""
    one_series = known_.several.isdisjoint(signals_of(tree))

    def compile_(profile: LabelProfile) -> str:
        wanted = replace(profile, one_series=one_series, slack=SLACK if loose else 0.0)
        found = narrowing(tree, known_.catalogue, wanted)
        assert found is not None, "it was one for the same tree and labels"
        return found.query

    trial = LabelProfile(one_series=one_series, slack=SLACK if loose else 0.0)
    found = narrowing(tree, known_.catalogue, trial)
    return None if found is None else Bit(name, compile_, found.exact, compares(tree))


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


def spelled(known_: Known, signals: Iterable[str]) -> list[str]:
    """Return the metric names of some signals that are there."""
    found = (sp.name for s in signals for sp in known_.catalogue.signals[s].spellings)
    return list(dict.fromkeys(found))


def over(
    function: str, names: Sequence[str], profile: LabelProfile, window_s: int, first: str = ""
) -> str:
    """Return a range function over all series of some metric names that the profile selects."""
    matchers = (*profile.selector, *(Matcher(label, "!=", "") for label in profile.entity))
    if len(names) == 1:
        series = selector(names[0], matchers)
    else:
        series = selector("", (Matcher("__name__", "=~", "|".join(names)), *matchers))
    return f"{function}({first}{series}[{window_s * 1000 + 1}ms])"


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


def together(bits: Sequence[Bit], profile: LabelProfile) -> str:
    """Return one query for several questions: of every GPU the sum of 2^k for each k that is so."""
    by = ", ".join(profile.entity)
    parts = [
        f'label_replace(group by ({by}) ({bit.compile(profile)}) * {1 << k}, "bit", "{k}", "", "")'
        for k, bit in enumerate(bits)
    ]
    return f"sum by ({by}) ({' or '.join(parts)})"
