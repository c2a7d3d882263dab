"""Which rules judge which entities: the rules of a scope, out of all rules.

A symptom is judged for the entities that its signals have. GPUs also carry the readings of their
node, so that one condition may read both; ports, file systems, pods, ranks and engines of a
service have rules of their own. A cause may show in several scopes: each pattern belongs to the
scope of its symptoms (a data-loader stall shows on a GPU, and in what a rank says of its waits).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue, CauseRule, Pattern, Place, SymptomRule
from engine.condition import Condition, compile_condition

_CAUSE = "cause/"
_NOWHERE = Place("", 1, 1)
_GPU = frozenset({"gpu", "node"})


@dataclass(frozen=True, slots=True)
class Home:
    """The rules of one scope, conditions compiled; ``causes`` hold the patterns of it alone."""

    scope: str
    symptoms: Mapping[str, SymptomRule]
    conditions: Mapping[str, Condition]
    causes: Mapping[str, CauseRule]


def home(catalogue: Catalogue, scope: str) -> Home:
    """Return the rules of a scope: gpu (with those of nodes), node, port and so on.

    Raises:
        CatalogueError: a condition cannot be read.
    """
    wanted = _GPU if scope == "gpu" else {scope}
    symptoms = {
        name: rule for name, rule in sorted(catalogue.symptoms.items()) if rule.scope in wanted
    }
    conditions = {
        name: compile_condition(rule.when, catalogue, rule.when_place or _NOWHERE)
        for name, rule in symptoms.items()
    }
    if scope == "node":  # what is said of a node may be read from its GPUs
        own = {
            name
            for name, condition in conditions.items()
            if all(catalogue.signals[s].scope == "node" for s in condition.signals)
        }
        symptoms = {name: symptoms[name] for name in symptoms if name in own}
        conditions = {name: conditions[name] for name in symptoms}
    return Home(scope, symptoms, conditions, _causes(catalogue.causes, symptoms))


def _causes(causes: Mapping[str, CauseRule], symptoms: Collection[str]) -> dict[str, CauseRule]:
    """Return the causes with a pattern in a scope, without what is of other scopes."""
    kept = {
        name: tuple(p for p in rule.patterns if _shows(p, symptoms))
        for name, rule in sorted(causes.items())
    }
    kept = {name: patterns for name, patterns in kept.items() if patterns}
    # A pattern that needs a cause which cannot come up here cannot hold either.
    while True:
        sound = {
            name: tuple(p for p in patterns if _needs(p) <= set(kept))
            for name, patterns in kept.items()
        }
        sound = {name: patterns for name, patterns in sound.items() if patterns}
        if sound == kept:
            break
        kept = sound
    return {
        name: replace(
            causes[name],
            patterns=tuple(_inside(p, symptoms, kept) for p in patterns),
            explains=_only(causes[name].explains, symptoms),
            against=_only(causes[name].against, symptoms),
        )
        for name, patterns in kept.items()
    }


def _shows(pattern: Pattern, symptoms: Collection[str]) -> bool:
    own = [s for s in (*pattern.all, *pattern.any) if not s.startswith(_CAUSE)]
    return all(s in symptoms for s in own)


def _needs(pattern: Pattern) -> set[str]:
    return {s.removeprefix(_CAUSE) for s in pattern.all if s.startswith(_CAUSE)}


def _inside(pattern: Pattern, symptoms: Collection[str], causes: Collection[str]) -> Pattern:
    known = {*symptoms, *(_CAUSE + cause for cause in causes)}
    return replace(
        pattern,
        any=_only(pattern.any, known),
        none=_only(pattern.none, known),
        unless=_only(pattern.unless, known),
    )


def _only(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in known)
