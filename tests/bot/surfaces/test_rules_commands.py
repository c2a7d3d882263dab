"""`rules backtest` and `rules why-not` as they are typed."""

from __future__ import annotations

import json
import os

import pytest

from bot.surfaces.cli import main as cli
from tests.support.contracts import conforms

LABELS = 'Hostname="node-1",gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3"'
START = 1764424800


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def gpuwhy(capsys):
    def run(*words: object) -> tuple[int, str, str]:
        status = cli.run([str(word) for word in words])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def metrics(tmp_path):
    """Two hours of a GPU whose brake is asserted for half an hour."""
    lines = []
    for t in range(0, 7201, 30):
        braked = 1800 <= t < 3600
        for name, value in (
            ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 136 if braked else 0),
            ("DCGM_FI_DEV_SM_CLOCK", 900 if braked else 1980),
            ("DCGM_FI_DEV_GPU_TEMP", 60),
            ("DCGM_FI_DEV_GPU_UTIL", 99),
            ("DCGM_FI_DEV_POWER_USAGE", 500),
        ):
            lines.append(f"{name}{{{LABELS}}} {value} {START + t}")
    file = tmp_path / "history.om"
    file.write_text("\n".join([*sorted(lines), "# EOF"]) + "\n")
    return file


def test_backtest_lists_the_spans_and_the_load(gpuwhy, metrics):
    words = ("rules", "backtest", "power_brake", "--metrics", metrics, "--since", "2h")
    status, out, err = gpuwhy(*words)
    assert (status, err) == (0, "")
    assert "1 rule of 1 would have fired from 2025-11-29T14:00:00Z to 2025-11-29T16:00:00Z" in out
    assert "2025-11-29T14:31:00Z" in out
    assert "samples a day" in out
    status, out, _ = gpuwhy(*words, "--json")
    document = json.loads(out)
    conforms(document, "rules-backtest")
    assert [f["entity"]["name"] for f in document["now"]["firings"]] == ["node-1"]
    assert gpuwhy(*words, "--json")[1] == out


def test_backtest_compares_with_an_overlay(gpuwhy, metrics, tmp_path):
    off = tmp_path / "site" / "rules" / "causes" / "power" / "power_brake.yaml"
    off.parent.mkdir(parents=True)
    off.write_text("id: power_brake\ndisabled: true\n")
    status, out, _ = gpuwhy(
        "rules", "backtest", "power_brake", "--metrics", metrics, "--since", "2h",
        "--compare", tmp_path / "site",
    )  # fmt: skip
    assert status == 0
    assert "1 difference, 0 the same" in out
    assert "gone" in out


def test_why_not_at_a_moment_of_the_past(gpuwhy, metrics):
    words = ("rules", "why-not", "power_brake", "node-1:0", "--metrics", metrics)
    status, out, err = gpuwhy(*words)
    assert (status, err) == (0, "")
    assert out.startswith("external power brake asserted (power_brake@")
    assert "for node-1:0: quiet" in out
    status, out, _ = gpuwhy(*words, "--at", START + 3000, "--json")
    document = json.loads(out)
    conforms(document, "rules-why-not")
    assert document["outcome"] == "fired"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backtest", "power_brak"), "did you mean 'power_brake'"),
        (("backtest", "--since", "x"), "cannot read 'x' as a length of time"),
        (("backtest", "--step", "1s"), "step 1 s is out of range"),
        (("backtest", "--since", "90d", "--step", "5s"), "are too many"),
        (("backtest", "--compare", "/no/such"), "no folder /no/such to overlay"),
        (("backtest", "--where", "a"), "selector, column 2"),
        (("why-not", "power_brak", "node-1:0"), "did you mean 'power_brake'"),
        (("why-not", "power_brake"), "Missing argument 'TARGET'"),
        (("why-not", "power_brake", "node-9:0"), "no host 'node-9' in this source"),
    ],
)
def test_wrong_usage_is_one_line(gpuwhy, metrics, words, said):
    status, out, err = gpuwhy("rules", *words, "--metrics", metrics)
    assert (status, out) == (2, "")
    assert err.startswith("gpuwhy: ")
    assert err.count("\n") == 1
    assert said in err


def test_backtest_is_not_for_a_server(gpuwhy):
    status, _, err = gpuwhy("rules", "backtest", "--server", "http://127.0.0.1:1")
    assert status == 2
    assert "leave --server out" in err


def test_what_is_broken_in_an_overlay_is_said_once(gpuwhy, tmp_path):
    symptom = tmp_path / "site" / "rules" / "symptoms" / "site" / "site_warm.yaml"
    symptom.parent.mkdir(parents=True)
    symptom.write_text("id: site_warm\n")
    words = ("--overlay", tmp_path / "site")
    status, _, err = gpuwhy("rules", "test", "power_brake", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert "is missing" in err
    status, out, err = gpuwhy("rules", "lint", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert "site_warm.yaml:1:1: error: 'scope' is missing" in out
    assert "site_warm.yaml" not in err
    status, _, err = gpuwhy("rules", "test", "site_warm", *words)
    assert status == 2
    assert "warning: left out: " in err
