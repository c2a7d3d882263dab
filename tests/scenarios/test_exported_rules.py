"""Somebody loads the exported rules: the demonstration fleet's faults page, its red herrings do not.

Prometheus evaluates the rules over twenty minutes of the fleet's readings, as promtool replays them.
"""

from __future__ import annotations

from pathlib import Path

from engine.export.alerts import alert_name
from engine.simulate import DEMO_SPAN_S, demo_fleet
from tests.support import packaged
from tests.support.promtool import recorded_series, run

FLEET = demo_fleet()
AT = FLEET.start + DEMO_SPAN_S
HISTORY_S = 1200.0


def expected() -> set[tuple[str, str, str]]:
    """(alert, host, GPU) of every planted fault; of a node's fault no GPU is named."""
    causes = packaged.catalogue().causes
    found = set()
    for planted in FLEET.planted:
        for member in planted.members:
            host, gpu = member.split(":")
            node = causes[planted.cause].scope == "node"
            found.add((alert_name(planted.cause), host, "" if node else gpu))
    return found


def test_every_planted_fault_pages_and_nothing_else(tmp_path: Path):
    catalogue = packaged.catalogue()
    history = "".join(FLEET.openmetrics(AT - HISTORY_S, AT, 15.0))
    # What a planted fault brings with it is an alert too, which Alertmanager silences.
    brought = {
        (alert_name(effect), host, gpu)
        for planted in FLEET.planted
        for effect in catalogue.causes[planted.cause].effects
        for host, gpu in (member.split(":") for member in planted.members)
    }
    firing = 'ALERTS{origin="rules",alertstate="firing"}'
    silenced = " or ".join(
        f'{firing[:-1]},alertname="{name}",host="{host}",gpu="{gpu}"}}'
        for name, host, gpu in sorted(brought - expected())
    )
    wanted = [
        f'{{alertname="{name}",host="{host}"' + (f',gpu="{gpu}"}}' if gpu else "}")
        for name, host, gpu in sorted(expected())
    ]
    test = {
        "interval": "15s",
        "input_series": recorded_series(history, AT - HISTORY_S),
        "promql_expr_test": [
            {
                "expr": f"group by (alertname, host, gpu) ({firing} unless ({silenced}))",
                "eval_time": "20m",
                "exp_samples": [{"labels": labels, "value": 1} for labels in wanted],
            }
        ],
    }
    assert run(tmp_path, packaged.exported().text, [test]) == ""
