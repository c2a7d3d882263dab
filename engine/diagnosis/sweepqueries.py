"""The queries of a sweep: PromQL that finds the GPUs which must be looked at.

Every query here finds a superset; what a server cannot judge by is asked for beside
(`engine.diagnosis.sweepchecks`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue
from engine.condition import Condition, LabelProfile
from engine.condition.promql import narrowing
from engine.condition.prune import ALWAYS, NEVER, prune
from engine.condition.selectors import selector
from engine.condition.tree import (
    And,
    Expression,
    Or,
    PeerCount,
    Peers,
    Truthy,
    signals_of,
    walk,
)
from engine.samples import Matcher

# By which part of a number a comparison on the server may be off: a thousand million times what
# rounding can do, a thousandth of what a reading can be told from another by.
SLACK = 1e-6

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
        strange: whether there are GPU models that the catalogue does not know.
    """

    catalogue: Catalogue
    present: frozenset[str]
    several: frozenset[str]
    window_s: int
    strange: bool = False


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
    found_models = [catalogue.model_for(m) for m in models]
    ids = {model.id for model in found_models if model}
    here = tuple(m for m in catalogue.models if m.id in ids)
    facts = {f"gpu.{name}" for model in here for name in model.attrs}
    signals = {name for name, s in found.items() if s.spellings}
    return Known(
        replace(catalogue, signals=found, models=here),
        frozenset({*signals, *facts, *also}),
        frozenset(),
        window_s,
        strange=not found_models or None in found_models,
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


def together(bits: Sequence[Bit], profile: LabelProfile) -> str:
    """Return one query for several questions: of every GPU the sum of 2^k for each k that is so."""
    by = ", ".join(profile.entity)
    parts = [
        f'label_replace(group by ({by}) ({bit.compile(profile)}) * {1 << k}, "bit", "{k}", "", "")'
        for k, bit in enumerate(bits)
    ]
    return f"sum by ({by}) ({' or '.join(parts)})"
