"""Cause rules in the form that both evaluators share: conditions on facts that are words.

A fact is written as rules refer to it: ``ID`` (the symptom is true), ``cause/ID`` (the cause was
derived) and, only for symptoms that some rule asks to be known false, ``unknown/ID``. Everything
not asserted is not so: a symptom is known to be false exactly when neither ``ID`` nor
``unknown/ID`` is there. That keeps the facts few: most symptoms of most GPUs are false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from engine.catalogue.types import CauseRule, Place
from engine.errors import CatalogueError, Problem
from engine.inference.strata import CAUSE_PREFIX, assign_strata, cause_of, problem_at
from engine.model import Truth

UNKNOWN_PREFIX = "unknown/"


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One pattern of one cause.

    It holds when all facts of ``all`` are there, at least one of ``any`` (unless that is empty),
    and none of ``absent``; the facts in ``absent`` are settled in strata before this one.
    """

    cause: str
    pattern: int
    stratum: int
    all: tuple[str, ...]
    any: tuple[str, ...]
    absent: tuple[str, ...]
    place: Place | None

    @property
    def derives(self) -> str:
        """The fact that becomes known when the rule holds."""
        return CAUSE_PREFIX + self.cause


@dataclass(frozen=True)
class Program:
    """All compiled rules, ordered by stratum, cause and pattern."""

    rules: tuple[CompiledRule, ...]

    @cached_property
    def strata(self) -> int:
        """How many strata there are."""
        return max((rule.stratum for rule in self.rules), default=-1) + 1

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Every fact that some rule refers to, sorted."""
        return tuple(sorted({w for r in self.rules for w in (*r.all, *r.any, *r.absent)}))

    @cached_property
    def _true_words(self) -> frozenset[str]:
        return frozenset(w for w in self.words if "/" not in w)

    @cached_property
    def _unknown_words(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a fact ``unknown/ID`` and the symptom's id, sorted."""
        return tuple(
            (w, w.removeprefix(UNKNOWN_PREFIX)) for w in self.words if w.startswith(UNKNOWN_PREFIX)
        )

    def facts(self, truths: Mapping[str, Truth]) -> tuple[str, ...]:
        """Return the facts that matter, in sorted order.

        A symptom that is not in ``truths`` is unknown. Without any true symptom that a rule asks
        for, nothing can be derived (every rule has a positive condition): then no facts matter.
        """
        words, true, unknown = self._true_words, Truth.TRUE, Truth.UNKNOWN
        found = [s for s, truth in truths.items() if truth == true and s in words]
        if found:
            found += [
                word
                for word, symptom in self._unknown_words
                if truths.get(symptom, unknown) == unknown
            ]
        return tuple(sorted(found))


def compile_rules(causes: Mapping[str, CauseRule]) -> Program:
    """Compile every pattern of every cause.

    Raises:
        CatalogueError: causes refer to each other in a circle, or a pattern has nothing in `all`
            and `any`, so that it would hold where nothing at all is seen.
    """
    problems: list[Problem] = []
    strata = assign_strata(causes)
    rules: list[CompiledRule] = []
    for cause, rule in causes.items():
        for index, pattern in enumerate(rule.patterns):
            if not pattern.all and not pattern.any:
                message = f"pattern {index + 1} of cause '{cause}' has no `all` and no `any`"
                hint = "name a symptom that must be true"
                problems.append(problem_at(cause, rule.place, message, hint))
            rules.append(_compile(rule, index, strata[cause]))
    if problems:
        raise CatalogueError(problems)
    return Program(tuple(sorted(rules, key=lambda r: (r.stratum, r.cause, r.pattern))))


def _compile(rule: CauseRule, index: int, stratum: int) -> CompiledRule:
    pattern = rule.patterns[index]
    absent = set(pattern.none) | set(pattern.unless)
    absent |= {UNKNOWN_PREFIX + ref for ref in pattern.none if cause_of(ref) is None}
    needed = set(pattern.all)
    # An alternative that is needed anyway is met whenever the rest is: it decides nothing.
    choice = () if needed & set(pattern.any) else tuple(sorted(set(pattern.any)))
    return CompiledRule(
        cause=rule.id,
        pattern=index,
        stratum=stratum,
        all=tuple(sorted(needed)),
        any=choice,
        absent=tuple(sorted(absent)),
        place=rule.place,
    )
