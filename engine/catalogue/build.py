"""Compiling YAML into the parts of the catalogue, checked through and through.

Brings in PyYAML and pydantic, and numpy for the conditions of rules. The loader imports this
module only when there is no good index, or an overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.catalogue.assemble import assemble
from engine.catalogue.compiling import as_knowledge, as_rules, read_knowledge, read_rules
from engine.catalogue.files import SourceFile
from engine.catalogue.overlay import prune
from engine.catalogue.parts import Knowledge, Rules
from engine.catalogue.references import check_disabling, check_knowledge, check_rules
from engine.catalogue.types import Catalogue
from engine.errors import CatalogueError, Problem


def compile_knowledge(files: Sequence[SourceFile], base: Knowledge | None = None) -> Knowledge:
    """Parse and check knowledge files, laid over ``base`` if given.

    Raises:
        CatalogueError: with every problem found.
    """
    problems: list[Problem] = []
    found = read_knowledge(files, problems, concerns=base.entries if base else ())
    _raise(problems)
    knowledge = as_knowledge(found, base)
    _raise(check_knowledge(found, knowledge))
    return knowledge


def compile_rules(
    files: Sequence[SourceFile], knowledge: Knowledge, base: Rules | None = None
) -> Rules:
    """Parse and check rule files, laid over ``base`` if given; ``knowledge`` is all there is.

    Raises:
        CatalogueError: with every problem found.
    """
    problems: list[Problem] = []
    found = read_rules(files, problems)
    _raise(problems)
    _raise(check_disabling(found, base))
    rules = as_rules(found, base)
    _raise(check_rules(rules, knowledge))
    rules = prune(rules)
    validate_conditions(assemble("", knowledge, rules))
    return rules


def validate_conditions(catalogue: Catalogue) -> None:
    """Compile the condition of every symptom.

    Raises:
        CatalogueError: with every problem of every condition.
    """
    from engine.condition import compile_condition  # noqa: PLC0415 - numpy; knowledge needs none

    problems: list[Problem] = []
    for rule in catalogue.symptoms.values():
        try:
            compile_condition(rule.when, catalogue, rule.when_place)
        except CatalogueError as error:
            problems += error.problems
    _raise(problems)


def _raise(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise CatalogueError(found)
