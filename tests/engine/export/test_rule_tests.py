"""The tests that sit in the rules hold for the exported rules too, as promtool evaluates them.

All tests go through one run: each is a host of its own, every second under the newest metric names.
What is compared is not only whether the alert is there, but every symptom of every test against
local evaluation of the same readings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.catalogue import load_catalogue
from engine.diagnosis.judge import Judge
from engine.diagnosis.ruletest import frame_of
from engine.export import prometheus_rules
from tests.support.promtool import Case, cases, run, series, uuid

CATALOGUE = load_catalogue(strict=False)
MADE = prometheus_rules(CATALOGUE)
ALERTS = {alert.id: alert for alert in MADE.alerts if alert.origin == "rules"}
CASES = cases(CATALOGUE)
SYMPTOMS = {r.labels["symptom"] for r in MADE.recordings if "symptom" in r.labels}
AT = "15m"
PART = 300


def newest(case: Case) -> bool:
    return CASES.index(case) % 2 == 1


def fires(case: Case, judge: Judge) -> bool:
    """Say whether the cause holds.

    As the test says; where readings came less often than the rules look, they weigh otherwise
    (an odd one counts until the next): then as local evaluation says of what the rules saw.
    """
    if not case.sparse:
        return case.test.expect == "fires"
    states = judge.states(judge.observe(frame_of(CATALOGUE, case.test)))
    return bool(states[case.rule][0] == 1)


def expected(expr: str, labels: list[str]) -> dict[str, Any]:
    return {
        "expr": expr,
        "eval_time": AT,
        "exp_samples": [{"labels": found, "value": 1} for found in labels],
    }


def checks(judge: Judge, some: list[Case]) -> list[dict[str, Any]]:
    out = []
    for case in some:
        truth = judge.observe(frame_of(CATALOGUE, case.test)).truth
        true = sorted(s for s in SYMPTOMS if truth[s][0] == 1)
        query = f'group by (symptom) (gpuwhy:symptom{{UUID="{uuid(case)}"}} == 1)'
        out.append(expected(query, [f'{{symptom="{s}"}}' for s in true]))
        alert = ALERTS.get(case.rule)
        if alert is None:
            continue
        where = f'host="{case.host}"' if alert.labels["scope"] == "node" else f'UUID="{uuid(case)}"'
        there = fires(case, judge)
        # What has not changed for a quarter of an hour has outlasted the hold time.
        state = "firing" if case.steady and there else "pending|firing"
        query = f'group(ALERTS{{alertname="{alert.name}",{where},alertstate=~"{state}"}})'
        out.append(expected(query, ["{}"] if there else []))
    return out


def test_promtool_agrees_with_every_test_of_every_rule(tmp_path: Path):
    judge = Judge(CATALOGUE)
    # In parts: a server loads only so many samples for one query.
    parts = [CASES[k : k + PART] for k in range(0, len(CASES), PART)]
    tests = [
        {
            "interval": "15s",
            "input_series": [
                one for case in part for one in series(case, CATALOGUE, newest=newest(case))
            ],
            "promql_expr_test": checks(judge, part),
        }
        for part in parts
    ]
    assert run(tmp_path, MADE.text, tests) == ""


def test_the_harness_can_fail(tmp_path: Path):
    case = next(c for c in CASES if c.rule == "power_brake" and c.test.expect == "fires")
    wrong = expected(f'group(gpuwhy:cause{{cause="power_brake",host="{case.host}"}})', [])
    inputs = series(case, CATALOGUE, newest=False)
    test = {"interval": "15s", "input_series": inputs, "promql_expr_test": [wrong]}
    assert "FAILED" in run(tmp_path, MADE.text, [test])


def test_nearly_all_tests_say_exactly_what_the_rules_see():
    sparse = [case for case in CASES if case.sparse]
    assert len(sparse) < len(CASES) / 20, "too many are judged by local evaluation alone"


@pytest.mark.parametrize("cause", sorted(ALERTS))
def test_every_alert_is_seen_firing_and_quiet(cause: str):
    seen = {case.test.expect for case in CASES if case.rule == cause}
    assert {"fires", "quiet"} <= seen
