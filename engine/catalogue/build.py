"""Compiling YAML into the parts of the catalogue, checked through and through.

Brings in PyYAML and pydantic, and numpy for the conditions of rules. The loader imports this
module only when there is no good index, or an overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from engine.catalogue.assemble import assemble
from engine.catalogue.compiling import (
    RuleFile,
    as_knowledge,
    as_rules,
    read_knowledge,
    read_rules,
    without_wrong,
)
from engine.catalogue.files import SourceFile
from engine.catalogue.overlay import prune
from engine.catalogue.parts import Knowledge, Rules
from engine.catalogue.references import (
    check_disabling,
    check_knowledge,
    check_replaced,
    check_rules,
)
from engine.catalogue.types import Catalogue
from engine.errors import CatalogueError, Problem


def compile_knowledge(
    files: Sequence[SourceFile],
    base: Knowledge | None = None,
    *,
    skipped: list[Problem] | None = None,
) -> Knowledge:
    """Parse and check knowledge files, laid over ``base`` if given.

    Args:
        files: the files.
        base: what they are laid over.
        skipped: entries and links that are wrong are left out and told here, and the rest still
            compiles; what an entry would have replaced stays. None: they are refused.

    Raises:
        CatalogueError: with every problem found, unless they are to be skipped.
    """
    problems: list[Problem] = []
    found = read_knowledge(files, problems, concerns=base.entries if base else ())
    _settle(problems, skipped)
    while True:
        knowledge = as_knowledge(found, base)
        wrong = list(check_knowledge(found, knowledge))
        if base:
            wrong += check_replaced(found, base)
        _settle((problem for _, problem in wrong), skipped)
        if not wrong:
            return knowledge
        found = [left for located in found if (left := without_wrong(located, wrong))]


def compile_rules(
    files: Sequence[SourceFile],
    knowledge: Knowledge,
    base: Rules | None = None,
    *,
    skipped: list[Problem] | None = None,
) -> Rules:
    """Parse and check rule files, laid over ``base`` if given; ``knowledge`` is all there is.

    A rule that is to be skipped (see `compile_knowledge`) leaves the one it would have replaced.

    Raises:
        CatalogueError: with every problem found, unless they are to be skipped.
    """
    problems: list[Problem] = []
    found = read_rules(files, problems)
    _settle(problems, skipped)
    while True:
        rules, wrong = _try_rules(found, knowledge, base)
        _settle(wrong, skipped)
        files_wrong = {problem.file for problem in wrong}
        if not wrong:
            return rules
        left = [rule for rule in found if rule.document.file not in files_wrong]
        if len(left) == len(found):
            # No file of this layer is to blame: its knowledge breaks rules of a layer below.
            if base is None:
                raise CatalogueError(wrong)
            base = _without(base, files_wrong)
        found = left


def _try_rules(
    found: Sequence[RuleFile], knowledge: Knowledge, base: Rules | None
) -> tuple[Rules, list[Problem]]:
    """Return what rule files come to, and what is wrong with it."""
    rules = as_rules(found, base)
    wrong = [*check_disabling(found, base), *check_rules(rules, knowledge)]
    if wrong:
        return rules, wrong
    rules = prune(rules)
    try:
        validate_conditions(assemble("", knowledge, rules))
    except CatalogueError as error:
        wrong = list(error.problems)
    return rules, wrong


def _without(base: Rules, files: AbstractSet[str]) -> Rules:
    """Return rules without those of some files; they count as disabled by these files."""
    gone = {f"symptom/{name}": s.file for name, s in base.symptoms.items() if s.file in files}
    gone |= {f"rule/{name}": s.file for name, s in base.causes.items() if s.file in files}
    return Rules(
        {name: s for name, s in base.symptoms.items() if s.file not in files},
        {name: s for name, s in base.causes.items() if s.file not in files},
        base.disabled | gone,
        dict(base.thinned),
    )


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


def _settle(problems: Iterable[Problem], skipped: list[Problem] | None) -> None:
    found = list(problems)
    if skipped is None:
        _raise(found)
    else:
        skipped += found


def _raise(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise CatalogueError(found)
