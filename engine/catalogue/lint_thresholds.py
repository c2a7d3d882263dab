"""Checks of where the numbers in rules come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.catalogue.lint_base import Check, Subject, at
from engine.catalogue.lookupschema import SITE_DEFAULT
from engine.condition import compile_condition
from engine.condition.units import digits
from engine.errors import Problem

# Absent or present, nothing or all of it: no choice of anybody.
_STRUCTURAL = frozenset((0.0, 1.0))
# Factors that change the unit only: percent to ratio, nanoseconds or minutes to seconds.
_CONVERSIONS = frozenset((1e9, 1e-9, 100.0, 0.01, 60.0))


class ThresholdOrigin(Check):
    """Whoever acts on a verdict can see who chose its numbers, and a site can change ours."""

    name = "threshold-origin"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield rules that compare with a number which comes from nowhere."""
        for rule in subject.catalogue.symptoms.values():
            if rule.basis or rule.threshold.startswith(SITE_DEFAULT):
                continue
            literals = dict.fromkeys(_literals(rule.when))
            if literals:
                numbers = ", ".join(digits(value) for value in literals)
                message = f"rule '{rule.id}' does not say where its threshold {numbers} comes from"
                hint = (
                    "make it an entry of thresholds and write limit.ID, link its source under "
                    f"'basis:', or begin 'threshold:' with '{SITE_DEFAULT}: '"
                )
                yield at(rule.when_place, message, hint)


class UnusedLimits(Check):
    """A site that changes a limit which nothing compares with would change nothing."""

    name = "unused-limits"
    severity = "warning"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield limits that no rule uses, unless they say what else does."""
        catalogue = subject.catalogue
        used = {
            name
            for rule in catalogue.symptoms.values()
            for name in compile_condition(rule.when, catalogue, rule.when_place).limits
        }
        for name, entry in catalogue.entries.get("thresholds", {}).items():
            if name not in used and not entry.get("used_by"):
                message = f"no rule compares with limit.{name}"
                hint = "use it, take it out, or say under 'used_by:' what does"
                yield subject.entry_problem(f"thresholds/{name}", message, hint)


def _literals(condition: str) -> Iterator[float]:
    """Yield the bare numbers that a condition compares with, unit conversions aside.

    Read from the text, as its tree has constant arithmetic folded.
    """
    for node in ast.walk(ast.parse(" ".join(condition.split()), mode="eval")):
        if isinstance(node, ast.Compare):
            yield from _chosen(node)


def _chosen(node: ast.AST) -> Iterator[float]:
    match node:
        case ast.Constant(value=int() | float() as value) if value not in _STRUCTURAL:
            yield float(value)
        case ast.BinOp(op=ast.Mult() | ast.Div(), left=left, right=right):
            for side in (left, right):
                if not (isinstance(side, ast.Constant) and side.value in _CONVERSIONS):
                    yield from _chosen(side)
        case ast.Call(func=ast.Name(id="quantile")) | ast.Set():
            # Which quantile is part of how a signal is read, as its window is; codes are names.
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _chosen(child)


THRESHOLD_CHECKS: tuple[type[Check], ...] = (ThresholdOrigin, UnusedLimits)
