"""The tests that sit in the rules hold for the exported rules too, as promtool evaluates them.

Each set of readings is a host of its own, every second under the newest metric names. What is
compared is not only whether the alert is there, but every symptom and cause that the export says
it records, against local evaluation of the same readings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.judge import Judge
from engine.diagnosis.ruletest import frame_of
from tests.support import packaged
from tests.support.promtool import Case, cases, run, series, uuid

CATALOGUE = packaged.catalogue()
MADE = packaged.exported()
ALERTS = {alert.id: alert for alert in MADE.alerts if alert.origin == "rules"}
SYMPTOMS = {r.labels["symptom"] for r in MADE.recordings if "symptom" in r.labels}
CAUSES = {r.labels["cause"] for r in MADE.recordings if "cause" in r.labels}
CASES = cases(CATALOGUE, SYMPTOMS | CAUSES)
# What never changes needs no more than the hold times and half of what the rules look back on.
STEADY, MOVING = "6m", "15m"
# A server loads only so many samples for one query. Each part costs as much for its moments as for
# its readings.
PARTS = {STEADY: 2, MOVING: 1}


def newest(case: Case) -> bool:
    return CASES.index(case) % 2 == 1


def at(case: Case) -> str:
    return STEADY if case.steady else MOVING


def expected(expr: str, labels: list[str], at: str = MOVING) -> dict[str, Any]:
    return {
        "expr": expr,
        "eval_time": at,
        "exp_samples": [{"labels": found, "value": 1} for found in labels],
    }


def local(judge: Judge, case: Case) -> tuple[dict[str, int], set[str]]:
    """Return the truth of the symptoms of a case's GPU, and the causes that are derived."""
    seen = judge.observe(frame_of(CATALOGUE, case.test))
    states = {cause: int(trits[0]) for cause, trits in judge.states(seen).items()}
    derived = {one.cause for one in judge._infer(seen, 0, states)}
    return {name: int(seen.truth[name][0]) for name in SYMPTOMS}, derived & CAUSES


def checks(judge: Judge, case: Case) -> list[dict[str, Any]]:
    truth, derived = local(judge, case)
    who = f'UUID="{uuid(case)}"'
    symptoms = [f'{{symptom="{s}"}}' for s in sorted(SYMPTOMS) if truth[s] == 1]
    causes = [f'{{cause="{c}"}}' for c in sorted(derived)]
    out = [
        expected(f"group by (symptom) (gpuwhy:symptom{{{who}}} == 1)", symptoms, at(case)),
        expected(f"group by (cause) (gpuwhy:cause{{{who}}})", causes, at(case)),
    ]
    for rule, said in case.says.items():
        alert = ALERTS.get(rule)
        if alert is None:
            continue
        where = f'host="{case.host}"' if alert.labels["scope"] == "node" else who
        # As the test says; where readings came less often than the rules look, as they saw it.
        there = rule in derived if case.sparse else said == "fires"
        # What has not changed for minutes has outlasted the hold time.
        state = "firing" if case.steady and there else "pending|firing"
        query = f'group(ALERTS{{alertname="{alert.name}",{where},alertstate=~"{state}"}})'
        out.append(expected(query, ["{}"] if there else [], at(case)))
    return out


@pytest.mark.parametrize(
    # Apart from each other: promtool evaluates up to the last moment that a test asks about.
    ("moment", "part"),
    [(moment, part) for moment, parts in PARTS.items() for part in range(parts)],
)
def test_promtool_agrees_with_every_test_of_every_rule(moment: str, part: int, tmp_path: Path):
    judge = Judge(CATALOGUE)
    some = [case for case in CASES if at(case) == moment][part :: PARTS[moment]]
    inputs = [one for case in some for one in series(case, CATALOGUE, newest=newest(case))]
    found = [check for case in some for check in checks(judge, case)]
    test = {"interval": "15s", "input_series": inputs, "promql_expr_test": found}
    assert run(tmp_path, MADE.text, [test]) == ""


def test_every_symptom_and_cause_that_is_recorded_is_seen_true_and_not_true():
    judge = Judge(CATALOGUE)
    known = [local(judge, case) for case in CASES]
    for name in SYMPTOMS:
        assert {1, -1} <= {truth[name] for truth, _ in known}, name
    for name in CAUSES:
        assert {name in derived for _, derived in known} == {True, False}, name


def test_the_harness_can_fail(tmp_path: Path):
    case = next(c for c in CASES if c.says.get("power_brake") == "fires")
    wrong = expected(f'group(gpuwhy:cause{{cause="power_brake",host="{case.host}"}})', [], STEADY)
    inputs = series(case, CATALOGUE, newest=False)
    test = {"interval": "15s", "input_series": inputs, "promql_expr_test": [wrong]}
    assert "FAILED" in run(tmp_path, MADE.text, [test])


def test_nearly_all_tests_say_exactly_what_the_rules_see():
    sparse = sum(len(case.says) for case in CASES if case.sparse)
    every = sum(len(case.says) for case in CASES)
    assert sparse < every / 20, "too many are judged by local evaluation alone"


@pytest.mark.parametrize("cause", sorted(ALERTS))
def test_every_alert_is_seen_firing_and_quiet(cause: str):
    seen = {case.says[cause] for case in CASES if cause in case.says}
    assert {"fires", "quiet"} <= seen
