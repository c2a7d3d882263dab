"""Judging the quality of what loads: small checks, one thing each.

Loading already refuses what is broken (`engine.catalogue.build`); a check here finds what works but
is not good enough: a rule without its three tests, a fault without a next step, two metric names
that clash. Each check is a class with a name, a severity and one method; they live in
`engine.catalogue.lint_rules`, `engine.catalogue.lint_thresholds`,
`engine.catalogue.lint_knowledge` and `engine.catalogue.lint_lookup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.catalogue.assemble import assemble
from engine.catalogue.compiling import RuleFile, read_rules
from engine.catalogue.files import ROOT, read_overlay, read_tree
from engine.catalogue.lint_base import Check, LintProblem, Subject
from engine.catalogue.lint_knowledge import KNOWLEDGE_CHECKS
from engine.catalogue.lint_lookup import LOOKUP_CHECKS
from engine.catalogue.lint_rules import RULE_CHECKS
from engine.catalogue.lint_thresholds import THRESHOLD_CHECKS
from engine.catalogue.loader import load_parts
from engine.catalogue.types import Catalogue
from engine.errors import CatalogueError, Problem

CHECKS: tuple[type[Check], ...] = (
    *RULE_CHECKS,
    *THRESHOLD_CHECKS,
    *KNOWLEDGE_CHECKS,
    *LOOKUP_CHECKS,
)

__all__ = ["CHECKS", "LintProblem", "lint"]


def lint(what: Catalogue | Sequence[Path] = (), *, root: Path = ROOT) -> list[LintProblem]:
    """Check rules and knowledge; return what is wrong, sorted by place.

    Args:
        what: overlay folders, checked together with the rules and knowledge below ``root``. Or a
            loaded catalogue; then the checks of how files are written are left out.
        root: the folder that holds ``knowledge/`` and ``rules/``.

    Raises:
        UsageError: an overlay is no folder, or has neither ``knowledge/`` nor ``rules/``.
    """
    if isinstance(what, Catalogue):
        subject = Subject(what)
    else:
        try:
            parts = load_parts(root, what, use_index=False)
        except CatalogueError as error:
            return sorted(LintProblem.of(p, "load", "error") for p in error.problems)
        places = {
            f"{concern}/{key}": place
            for concern, found in parts[1].places.items()
            for key, place in found.items()
        }
        subject = Subject(assemble(*parts), tuple(_rule_files(root, what)), places)
    return sorted(
        LintProblem.of(problem, check.name, check.severity)
        for check in CHECKS
        for problem in check().run(subject)
    )


def _rule_files(root: Path, overlays: Sequence[Path]) -> list[RuleFile]:
    ignored: list[Problem] = []
    files = read_tree(root, "rules")
    found = read_rules(files, ignored)
    for folder in overlays:
        found += read_rules(read_overlay(folder, "rules"), ignored)
    return found
