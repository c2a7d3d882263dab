"""Checks of rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from engine.catalogue.compiling import RULE_MODELS
from engine.catalogue.lint_base import Check, Subject, at
from engine.catalogue.nearest import did_you_mean
from engine.catalogue.types import Catalogue, CauseRule, SymptomRule
from engine.catalogue.validate import field_names
from engine.errors import Problem
from engine.model import Class

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)?)\}")
ENTITY_WORDS = frozenset(
    (
        *("entity", "host", "gpu", "model", "uuid", "pci", "pod", "namespace"),
        *("device", "mount", "service", "instance", "job"),
    )
)

# These ask whether readings are there at all, so they are true or false, never unknown.
_PRESENCE_CALLS = re.compile(r"\b(?:known|missing|blank)\([^()]*\)")
_CONNECTIVES = re.compile(r"\b(?:and|or|not)\b|[\s()]+")

# durable_rules 2.0.28 fails (303) and then hangs at 512 distinct equality values in one position.
MAX_EQUALITY_VALUES = 500


class ThreeTests(Check):
    """A rule comes with proof that it fires, stays quiet, and what it does without the reading."""

    name = "three-tests"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield rules with fewer than three tests, or without one of the three kinds."""
        for rule in subject.rules:
            if isinstance(rule, SymptomRule):
                needed = ["true", "false"]
                decided = _always_decided(rule)
            else:
                needed = ["fires", "quiet"]
                decided = _needs_no_reading(rule, subject)
            if not decided:
                needed.append("unknown")
            have = {test.expect for test in rule.tests}
            missing = [word for word in needed if word not in have]
            if missing:
                message = f"rule '{rule.id}' has no test that expects {', '.join(missing)}"
                yield at(rule.place, message, "add one under 'tests:'")
            elif len(rule.tests) < 3:
                message = f"rule '{rule.id}' has {len(rule.tests)} tests, three are needed"
                yield at(rule.place, message, "add one with the reading missing")


def _always_decided(rule: SymptomRule) -> bool:
    """Return whether a condition asks only if readings are there, so that it is never unknown."""
    return not _CONNECTIVES.sub("", _PRESENCE_CALLS.sub("", rule.when))


def _needs_no_reading(rule: CauseRule, subject: Subject) -> bool:
    """Return whether a cause rests only on symptoms that are never unknown.

    ``unless`` is left out: something unknown there does not make the cause unknown.
    """
    symptoms = subject.catalogue.symptoms
    names = {name for p in rule.patterns for name in (*p.all, *p.any, *p.none)}
    return all(name in symptoms and _always_decided(symptoms[name]) for name in names)


class UniqueTestNames(Check):
    """A failing test is found by its name."""

    name = "test-names"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield tests of a rule that share a name."""
        for rule in subject.rules:
            seen: set[str] = set()
            for test in rule.tests:
                if test.name in seen:
                    yield at(test.place, f"two tests are called '{test.name}'", "rename one")
                seen.add(test.name)


class KnownTestModels(Check):
    """A test on a misspelt GPU model would silently run without that model's limits."""

    name = "test-models"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield tests whose model is unknown, yet resembles a known one."""
        names = [name for model in subject.catalogue.models for name in model.match]
        for rule in subject.rules:
            for test in rule.tests:
                if test.model and not subject.catalogue.model_for(test.model):
                    hint = did_you_mean(test.model, names)
                    if hint:
                        yield at(test.place, f"unknown GPU model '{test.model}'", hint)


class References(Check):
    """What a rule claims can be looked up."""

    name = "references"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield rules without references."""
        for rule in subject.rules:
            if not rule.references:
                message = f"rule '{rule.id}' has no references"
                yield at(rule.place, message, "say which public document it rests on")


class FalsePositives(Check):
    """Somebody will act on a fault: say when it looks like one and is none."""

    name = "false-positives"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield faults without known false positives."""
        for rule in _faults(subject):
            if not rule.false_positives:
                message = f"fault '{rule.id}' names no false positives"
                yield at(rule.place, message, "add 'false_positives:'")


class NextSteps(Check):
    """A fault without a next step helps nobody."""

    name = "next-steps"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield faults without a next step."""
        for rule in _faults(subject):
            if not rule.next:
                yield at(rule.place, f"fault '{rule.id}' has no next step", "add 'next:'")


class Placeholders(Check):
    """A misspelt placeholder would reach the user as it stands."""

    name = "placeholders"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield placeholders in the texts of causes that nothing fills."""
        known = _placeholders(subject.catalogue)
        for rule in subject.catalogue.causes.values():
            texts = [rule.says, *(text for s in rule.next for text in (s.do, s.command or ""))]
            texts += [
                text for a in rule.alternatives for text in (a.told_apart_by, a.command or "")
            ]
            for word in sorted(set(_PLACEHOLDER.findall(" ".join(texts))) - known):
                message = f"rule '{rule.id}' has an unknown placeholder '{{{word}}}'"
                otherwise = "docs/rules.md lists what may stand in braces"
                yield at(rule.place, message, did_you_mean(word, known, otherwise=otherwise))


def _placeholders(catalogue: Catalogue) -> frozenset[str]:
    """Return all placeholders that are filled: names, facts of the model, readings."""
    signals = catalogue.signals.values()
    return frozenset(
        (
            *ENTITY_WORDS,
            *(f"gpu.{name}" for model in catalogue.models for name in model.attrs),
            *(signal.id for signal in signals),
            *(f"{signal.id}.value" for signal in signals),
            *(f"{signal.id}.name" for signal in signals if signal.kind == "code"),
        )
    )


class UnusedSymptoms(Check):
    """A symptom that no cause looks at costs time and tells nobody anything."""

    name = "unused-symptoms"
    severity = "warning"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield symptoms that no cause refers to."""
        used: set[str] = set()
        for cause in subject.catalogue.causes.values():
            used.update(cause.explains, cause.against)
            used.update(ref for pattern in cause.patterns for ref in pattern.refs)
        for rule in subject.catalogue.symptoms.values():
            if rule.id not in used and rule.status != "deprecated":
                yield at(rule.place, f"no cause uses the symptom '{rule.id}'", "use or retire it")


class FileNames(Check):
    """One rule, one file, found by its id: ``KIND/DOMAIN/ID.yaml``."""

    name = "file-names"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield rule files that are not where their id says."""
        for rule in subject.files:
            steps = PurePosixPath(rule.document.file).parts
            if "rules" not in steps:  # a single file that is laid over the rest
                continue
            inner = steps[len(steps) - steps[::-1].index("rules") :]
            if len(inner) != 3 or inner[-1] != f"{rule.id}.yaml":
                message = f"rule '{rule.id}' is in the wrong file"
                hint = f"move it to rules/{rule.kind}/DOMAIN/{rule.id}.yaml"
                yield rule.document.problem(("id",), message, hint)


class FieldOrder(Check):
    """Fields always come in the same order, so that a reader finds them without looking."""

    name = "field-order"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield the first field of each rule file that is out of order."""
        for rule in subject.files:
            if rule.disables:
                continue
            order = field_names(RULE_MODELS[rule.kind])
            written = list(rule.document.data)
            wanted = sorted(written, key=order.index)
            for have, want in zip(written, wanted, strict=True):
                if have != want:
                    message = f"field '{have}' is out of order"
                    hint = f"here belongs '{want}'; the order is {', '.join(wanted)}"
                    yield rule.document.problem((have,), message, hint, key=True)
                    break


class RuleEngineIds(Check):
    """durable_rules hashes texts to 32 bits and drops facts that collide; it also has a limit."""

    name = "rule-engine-ids"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield ids that the rule engine would confuse, and too many of them."""
        names = {rule.id: rule for rule in subject.catalogue.symptoms.values()}
        causes = {f"cause/{rule.id}": rule for rule in subject.catalogue.causes.values()}
        rules: dict[str, SymptomRule | CauseRule] = {**names, **causes}
        seen: dict[int, str] = {}
        for name in sorted(rules):
            other = seen.setdefault(fnv1a_32(name), name)
            if other != name:
                message = f"'{name}' and '{other}' hash to the same 32 bits"
                yield at(rules[name].place, message, "rename one of them")
        if len(rules) >= MAX_EQUALITY_VALUES:
            message = f"there are {len(rules)} rules; durable_rules takes {MAX_EQUALITY_VALUES}"
            yield at(rules[max(rules)].place, message, "retire rules, or split the rule set")


def fnv1a_32(text: str) -> int:
    """Return the hash by which durable_rules tells texts apart (``fnv1Hash32``, state.c 2.0.28)."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def _faults(subject: Subject) -> list[CauseRule]:
    return [rule for rule in subject.catalogue.causes.values() if rule.class_ is Class.FAULT]


RULE_CHECKS: tuple[type[Check], ...] = (
    ThreeTests,
    UniqueTestNames,
    KnownTestModels,
    References,
    FalsePositives,
    NextSteps,
    Placeholders,
    UnusedSymptoms,
    FileNames,
    FieldOrder,
    RuleEngineIds,
)
