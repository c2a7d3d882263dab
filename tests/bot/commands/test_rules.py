from __future__ import annotations

import pytest

from bot.answer import Level
from bot.commands import rules, ruletests
from bot.render import json, plain
from engine.catalogue.lint_base import LintProblem
from engine.errors import UsageError
from tests.support import packaged


@pytest.fixture(scope="module")
def catalogue():
    return packaged.catalogue()


def test_list_names_every_rule(catalogue):
    answer = rules.list_rules(catalogue)
    names = {rule["id"] for rule in answer.data["rules"]}
    assert names == {*catalogue.causes, *catalogue.symptoms}
    assert answer.data["schema"] == "gpuwhy/rules-list/1"
    assert "power_brake" in plain.render(answer)


@pytest.mark.parametrize("written", ["power_brake", "power_brake@1", "cause/power_brake"])
def test_a_cause_is_shown_with_patterns_steps_and_tests(catalogue, written):
    answer = rules.show(written, catalogue)
    text = plain.render(answer)
    assert "(power_brake@" in text
    for part in ("Holds if any of these patterns does", "Next", "References", "Tests"):
        assert f"\n{part}\n" in text
    assert answer.data["kind"] == "cause"
    assert json.render(answer)


def test_a_symptom_is_shown_with_its_condition_and_users(catalogue):
    name = catalogue.causes["power_brake"].patterns[0].all[0]
    text = plain.render(rules.show(name, catalogue))
    assert catalogue.symptoms[name].when.split("\n")[0] in text
    assert "power_brake" in text
    assert "threshold:" in text


def test_a_symptom_is_shown_with_its_limits_and_what_it_rests_on(catalogue):
    answer = rules.show("clocks_setting_active", catalogue)
    text = plain.render(answer)
    assert "50 % (site default: half of the samples; knowledge/thresholds.yaml)" in text
    assert "throttle_reasons/clocks_setting" in text
    assert answer.data["basis"] == ["throttle_reasons/clocks_setting"]
    (limit,) = answer.data["limits"]
    assert (limit["id"], limit["value"], limit["unit"]) == ("clocks_setting_share", 0.5, "ratio")


def test_every_rule_can_be_shown(catalogue):
    for name in (*catalogue.causes, *catalogue.symptoms):
        assert json.render(rules.show(name, catalogue))


def test_an_unknown_rule_offers_the_nearest(catalogue):
    for ask in (
        lambda: rules.show("power_brak", catalogue),
        lambda: ruletests.run(["power_brak"], catalogue),
    ):
        with pytest.raises(UsageError, match="did you mean 'power_brake'"):
            ask()


def test_tests_of_one_rule_run(catalogue):
    answer = ruletests.run(["power_brake"], catalogue)
    assert answer.data["failed"] == 0
    assert answer.data["passed"] == len(catalogue.causes["power_brake"].tests) >= 3
    assert answer.level is Level.CLEAR


def test_a_failed_test_is_named(catalogue, monkeypatch):
    from engine.diagnosis import ruletest

    result = ruletest.RuleTestResult(
        "power_brake", "braked", ok=False, message="expected fires, got quiet"
    )
    monkeypatch.setattr(ruletest, "run_rule_tests", lambda *_, **__: [result])
    answer = ruletests.run([], catalogue)
    assert answer.level is Level.CRITICAL
    assert "power_brake, braked: expected fires, got quiet" in plain.render(answer)


def test_lint_errors_are_errors_and_warnings_are_not():
    warning = LintProblem("a.yaml", 3, 1, "is odd", "fix it", "oddness", "warning")
    error = LintProblem("b.yaml", 14, 9, "is wrong", "", "wrongness", "error")
    only = rules.lint_answer([warning])
    assert only.errors == ()
    assert "a.yaml:3:1: warning: is odd; fix it (oddness)" in plain.render(only)
    both = rules.lint_answer([warning, error])
    assert [(e.exit_status, e.one_line()) for e in both.errors] == [
        (2, "1 error in knowledge and rules; mend what is listed above")
    ]
    assert [p["line"] for p in both.data["problems"]] == [3, 14]
    assert "No problems" in plain.render(rules.lint_answer([]))
