"""The shipped rules: their own tests hold, and every cause has proof that it fires."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.catalogue.types import RuleTest
from engine.diagnosis.ruletest import run_rule_tests, seconds
from engine.errors import UsageError
from tests.support.readings import catalogue

CAUSES = sorted(catalogue().causes)


def test_all_tests_of_all_rules_hold():
    failed = [f"{r.rule}: {r.test}: {r.message}" for r in run_rule_tests(catalogue()) if not r.ok]
    assert failed == []


def test_there_are_at_least_thirty_causes():
    assert len(CAUSES) >= 30


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_has_proof_that_it_fires_stays_quiet_and_knows_what_it_lacks(name):
    rule = catalogue().causes[name]
    assert len(rule.tests) >= 3
    proven = {test.expect for test in rule.tests}
    if name == "no_data":  # what is missing is never unknown
        proven.add("unknown")
    assert {"fires", "quiet", "unknown"} <= proven


def test_every_pattern_of_every_cause_can_be_told_by_name():
    """What a pattern asks for exists, and no two patterns of a cause are the same."""
    symptoms = catalogue().symptoms
    for name, rule in catalogue().causes.items():
        shapes = {(p.all, p.any, p.none, p.unless) for p in rule.patterns}
        assert len(shapes) == len(rule.patterns), name
        for ref in (r for p in rule.patterns for r in p.refs):
            assert ref in symptoms or ref.removeprefix("cause/") in catalogue().causes, (name, ref)


def test_every_symptom_is_asked_about_by_some_cause():
    asked = {r for rule in catalogue().causes.values() for p in rule.patterns for r in p.refs}
    told = {s for rule in catalogue().causes.values() for s in (*rule.explains, *rule.against)}
    assert set(catalogue().symptoms) <= asked | told


def test_some_rules_only():
    found = run_rule_tests(catalogue(), ["power_brake"])
    assert {r.rule for r in found} == {"power_brake"}


def test_an_unknown_rule_is_refused():
    with pytest.raises(UsageError, match="no rule 'power_break'"):
        run_rule_tests(catalogue(), ["power_break"])


def test_a_test_with_readings_of_what_the_rule_is_not_about_says_so():
    shipped = catalogue()
    rule = shipped.causes["lora_budget"]
    wrong = replace(rule, tests=(RuleTest("of a GPU", {"gpu_util": 100}, "quiet"),))
    changed = replace(shipped, causes={**shipped.causes, rule.id: wrong})
    (found,) = run_rule_tests(changed, [rule.id])
    assert found.message == "gives readings of a gpu, which no pattern of the rule is about"


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("5m", 300), ("1h", 3600)])
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "fast"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match="not a duration"):
        seconds(text)
