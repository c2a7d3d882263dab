"""Naive forward chaining in plain Python: the oracle, and the fallback without the library."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from engine.inference.compiled import CompiledRule, Program


class ReferenceEvaluator:
    """Tries every rule of a stratum until nothing new holds, then goes on to the next."""

    name = "reference"

    def __init__(self, program: Program) -> None:
        self._strata = [tuple(rules) for _, rules in groupby(program.rules, lambda r: r.stratum)]

    def evaluate(self, facts: Iterable[str]) -> set[tuple[str, int]]:
        """Return (cause, pattern index) of every rule that holds, given facts of `Program`."""
        known = set(facts)
        held: set[tuple[str, int]] = set()
        for rules in self._strata:
            settled = False
            while not settled:
                settled = True
                for rule in rules:
                    key = (rule.cause, rule.pattern)
                    if key not in held and _holds(rule, known):
                        held.add(key)
                        known.add(rule.derives)
                        settled = False
        return held


def _holds(rule: CompiledRule, known: set[str]) -> bool:
    return (
        known.issuperset(rule.all)
        and (not rule.any or not known.isdisjoint(rule.any))
        and known.isdisjoint(rule.absent)
    )
