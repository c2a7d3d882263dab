"""The Alertmanager configuration, as amtool reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from engine.export import alertmanager_config
from tests.support import packaged
from tests.support.servers import binary
from tests.support.yamlfiles import parse

CATALOGUE = packaged.catalogue()
TEXT = alertmanager_config(CATALOGUE)
CONFIG = parse(TEXT)
ALERTS = packaged.exported().alerts


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("alertmanager") / "alertmanager.yaml"
    path.write_text(TEXT)
    return path


def amtool(*words: str) -> str:
    done = subprocess.run(
        [binary("amtool"), *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_amtool_takes_the_file(file: Path):
    assert f"{len(CONFIG['inhibit_rules'])} inhibit rules" in amtool("check-config", str(file))


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"product": "gpuwhy", "severity": "critical", "class": "fault"}, "gpuwhy-urgent"),
        ({"product": "gpuwhy", "severity": "high", "class": "limit"}, "gpuwhy"),
        ({"product": "gpuwhy", "severity": "medium", "class": "workload"}, "gpuwhy-workload"),
        ({"product": "gpuwhy", "severity": "info", "class": "benign"}, "gpuwhy-nobody"),
        ({"severity": "critical"}, "default"),
    ],
)
def test_alerts_find_their_way(labels: dict[str, str], receiver: str, file: Path):
    given = [f"{name}={value}" for name, value in labels.items()]
    told = f"--config.file={file}"
    amtool("config", "routes", "test", told, f"--verify.receivers={receiver}", *given)


def test_every_exported_alert_is_told_to_somebody(file: Path):
    seen = {tuple(sorted(_fixed(alert.labels).items())) for alert in ALERTS}
    for labels in seen:
        given = [f"{name}={value}" for name, value in labels]
        said = amtool("config", "routes", "test", f"--config.file={file}", *given).strip()
        assert said.startswith("gpuwhy"), labels
        assert (said == "gpuwhy-nobody") == (dict(labels)["severity"] == "info")


def _fixed(labels: object) -> dict[str, str]:
    assert hasattr(labels, "items")
    return {k: v for k, v in labels.items() if k in {"product", "severity", "class"}}


def test_a_cause_silences_its_effects_and_nothing_else():
    alerting = {alert.id for alert in ALERTS if alert.origin == "rules"}
    found: dict[str, set[str]] = {}
    for rule in CONFIG["inhibit_rules"]:
        source = dict(m.replace("=~", "=").split("=", 1) for m in rule["source_matchers"])
        target = dict(m.replace("=~", "=").split("=", 1) for m in rule["target_matchers"])
        if "cause" in source:
            effects = set(target["cause"].strip('"').split("|"))
            found.setdefault(source["cause"].strip('"'), set()).update(effects)
            host_only = "UUID" not in rule["equal"]
            scopes = {CATALOGUE.causes[c].scope for c in (source["cause"].strip('"'), *effects)}
            assert host_only or scopes == {"gpu"}
    wanted = {c: set(CATALOGUE.causes[c].effects) & alerting for c in alerting}
    assert found == {cause: effects for cause, effects in wanted.items() if effects}


def test_no_secret_stands_in_the_file():
    slack = [s for r in CONFIG["receivers"] for s in r.get("slack_configs", ())]
    assert slack
    assert all("api_url" not in s and s["api_url_file"].startswith("/") for s in slack)


def test_the_same_knowledge_gives_the_same_bytes():
    assert alertmanager_config(load_catalogue(strict=False)) == TEXT
