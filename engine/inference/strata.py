"""Order among causes that refer to each other: which must be settled before which.

A cause that needs another (`all`, `any`) may be derived in the same layer. A cause that rules
another out (`none`, `unless`) must wait until nothing can derive that other one any more, so it
stands at least one layer later. References in a circle have no such order and are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from engine.catalogue.types import CauseRule, Pattern, Place
from engine.errors import CatalogueError, Problem

CAUSE_PREFIX = "cause/"


def cause_of(ref: str) -> str | None:
    """Return the cause that a reference names, or None for a symptom."""
    return ref[len(CAUSE_PREFIX) :] if ref.startswith(CAUSE_PREFIX) else None


def assign_strata(causes: Mapping[str, CauseRule]) -> dict[str, int]:
    """Return the stratum of every cause, counted from 0.

    Stratum 0 refers to no cause in `none` or `unless`. References to causes without a rule are
    left out: nothing derives them, so they order nothing.

    Raises:
        CatalogueError: causes refer to each other in a circle; one problem for each circle.
    """
    needs = {cause: _references(rule.patterns, causes) for cause, rule in causes.items()}
    strata: dict[str, int] = {}
    for cause in _in_order(needs, causes):
        strata[cause] = max(
            (strata[other] + negated for other, negated in needs[cause].items()), default=0
        )
    return strata


def _references(patterns: Iterable[Pattern], causes: Mapping[str, CauseRule]) -> dict[str, bool]:
    """Return the causes that patterns refer to, and whether any of them rules it out."""
    found: dict[str, bool] = {}
    for pattern in patterns:
        for refs, negated in (
            (pattern.all + pattern.any, False),
            (pattern.none + pattern.unless, True),
        ):
            for ref in refs:
                other = cause_of(ref)
                if other is not None and other in causes:
                    found[other] = found.get(other, False) or negated
    return found


def _in_order(
    needs: Mapping[str, Mapping[str, bool]], causes: Mapping[str, CauseRule]
) -> tuple[str, ...]:
    """Return the causes so that each comes after those it refers to."""
    left = {cause: sorted(needs[cause]) for cause in sorted(needs)}
    problems: list[Problem] = []
    while True:
        try:
            order = tuple(TopologicalSorter(left).static_order())
        except CycleError as error:
            circle = _from_smallest(error.args[1])
            problems.append(_problem(circle, causes[circle[0]]))
            # The causes of a reported circle are taken out, to find the next one.
            left = {
                cause: [other for other in others if other not in circle]
                for cause, others in left.items()
                if cause not in circle
            }
            continue
        if problems:
            raise CatalogueError(problems)
        return order


def _from_smallest(closed: list[str]) -> list[str]:
    """Turn graphlib's circle (each needed by the next, ends joined) to start at its least id."""
    circle = closed[:0:-1]
    start = circle.index(min(circle))
    return circle[start:] + circle[:start]


def _problem(circle: list[str], rule: CauseRule) -> Problem:
    path = " -> ".join([*circle, circle[0]])
    return problem_at(
        rule.id,
        rule.place,
        f"causes refer to each other in a circle: {path}",
        "take one `cause/...` reference out, or refer to the symptoms behind it",
    )


def problem_at(cause: str, place: Place | None, message: str, hint: str) -> Problem:
    """Return a problem with a cause rule, at the rule's place where it was read from a file."""
    if place is None:
        return Problem(f"cause {cause}", 1, 1, message, hint)
    return Problem(place.file, place.line, place.column, message, hint)
