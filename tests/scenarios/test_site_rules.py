"""A site lays rules of its own over the shipped ones: what is checked, told and shown of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bot.surfaces.cli import main as cli
from engine.catalogue import load_catalogue
from engine.catalogue.types import is_packaged
from engine.diagnosis import Engine
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, gpu

OFF = "rules/symptoms/power/power_brake_active.yaml"
LIMIT = """\
thresholds:
- id: ecc_sbe_count
  title: single-bit ECC errors in 15 minutes that make a storm
  kind: threshold
  text: Our vendor exchanges boards from 20 corrected errors in 15 minutes.
  value: 20
  unit: count
  source: [support contract of the site]
  status: single
"""
WARM = """\
id: warm
title: die warmer than this site likes
version: 1
status: experimental
scope: gpu
when: max(gpu_temp, "5m") >= 70
threshold: "site default: 70 degrees"
references: [runbook 12]
tests:
- {name: warm, given: {gpu_temp: 75}, expect: true}
- {name: cool, given: {gpu_temp: 50}, expect: false}
- {name: missing, given: {}, expect: unknown}
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def site(tmp_path):
    """Write an overlay and return its folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "site" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "site"

    return write


@pytest.fixture
def gpuwhy(capsys):
    def run(*words: object) -> tuple[int, str, str]:
        status = cli.run([str(word) for word in words])
        return status, *capsys.readouterr()

    return run


def switched_off(name: str) -> str:
    return f"id: {name}\ndisabled: true\n"


def test_a_rule_that_is_switched_off_is_listed_and_shown_with_the_file(site, gpuwhy):
    folder = site({OFF: switched_off("power_brake_active")})
    status, out, err = gpuwhy("rules", "list", "--overlay", folder)
    assert status == 0
    assert f"symptom power_brake_active is switched off by {folder}/{OFF}" in out
    assert "cause power_brake goes without power_brake_active" in out
    assert f"rules switched off: power_brake_active ({folder}/{OFF})" in err

    _, out, _ = gpuwhy("rules", "list", "--json", "--overlay", folder)
    rows = {row["id"]: row for row in json.loads(out)["rules"]}
    assert rows["power_brake_active"]["status"] == "disabled"
    assert rows["power_brake_active"]["file"] == f"{folder}/{OFF}"
    assert rows["power_brake"]["file"] == "rules/causes/power/power_brake.yaml"

    status, out, _ = gpuwhy("rules", "show", "power_brake_active", "--overlay", folder)
    assert status == 0
    assert f"switched off by {folder}/{OFF}" in out
    _, out, _ = gpuwhy("rules", "show", "power_brake", "--overlay", folder)
    assert f"power_brake_active ({folder}/{OFF})" in out


async def test_an_answer_names_the_rules_that_are_off(site):
    folder = site({OFF: switched_off("power_brake_active")})
    answer = await Engine(load_catalogue([folder])).why("node-1:0", MemorySource(gpu(FULL)), at=AT)
    assert f"rules switched off: power_brake_active ({folder}/{OFF})" in answer.warnings


def test_many_rules_that_are_off_are_counted(site):
    names = sorted(load_catalogue().symptoms)[:5]
    folder = site({f"rules/symptoms/x/{n}.yaml": switched_off(n) for n in names})
    *_, said = load_catalogue([folder]).left_out
    assert said.startswith(f"rules switched off: {names[0]} (") or "rules switched off: " in said
    assert " more; see: gpuwhy rules list" in said


def test_a_cause_without_any_pattern_left_names_the_file_that_took_it(site):
    loaded = load_catalogue()
    cause = next(
        c for c in loaded.causes.values() if len(c.patterns) == 1 and len(c.patterns[0].all) == 1
    )
    (needed,) = cause.patterns[0].all
    folder = site(
        {
            "rules/causes/a/aaa.yaml": switched_off("idle"),
            f"rules/symptoms/x/{needed}.yaml": switched_off(needed),
        }
    )
    assert load_catalogue([folder]).disabled[f"rule/{cause.id}"].endswith(f"{needed}.yaml")


def test_a_threshold_of_the_site_is_listed_with_its_file(site, gpuwhy):
    folder = site({"knowledge/thresholds.yaml": LIMIT})
    _, out, _ = gpuwhy("rules", "list", "--overlay", folder)
    assert f"limit.ecc_sbe_count is 20 in {folder}/knowledge/thresholds.yaml" in out
    _, out, _ = gpuwhy("rules", "list", "--json", "--overlay", folder)
    (limit,) = json.loads(out)["limits"]
    assert (limit["id"], limit["value"]) == ("ecc_sbe_count", 20.0)


def test_rules_of_the_site_are_tested(site, gpuwhy):
    folder = site({"rules/symptoms/site/warm.yaml": WARM})
    status, out, _ = gpuwhy("rules", "test", "warm", "--overlay", folder)
    assert (status, out) == (0, "3 tests passed, 1 rule\n")
    site({"rules/symptoms/site/warm.yaml": WARM.replace("gpu_temp: 75", "gpu_temp: 65")})
    status, out, _ = gpuwhy("rules", "test", "warm", "--overlay", folder)
    assert status == 1
    place = f"{folder}/rules/symptoms/site/warm.yaml:10:3"
    assert f"{place}: warm, warm: expected true, got false" in out


def test_a_broken_rule_of_the_site_fails_test_and_lint_at_its_place(site, gpuwhy):
    broken = WARM.replace("gpu_temp,", "gpu_tmp,")
    folder = site({"rules/symptoms/site/warm.yaml": broken})
    place = f"{folder}/rules/symptoms/site/warm.yaml:6:11: "
    for action in ("test", "lint"):
        status, out, err = gpuwhy("rules", action, "--overlay", folder)
        assert status == 2
        said = next(line for line in (out + err).splitlines() if place in line)
        assert "unknown signal 'gpu_tmp'" in said


def test_a_changed_threshold_does_not_fail_the_tests_of_shipped_rules(site, gpuwhy):
    folder = site({OFF: switched_off("power_brake_active")})
    status, out, _ = gpuwhy("rules", "test", "power_brake", "--overlay", folder)
    assert status == 0
    assert "Overlays change what shipped rules say" in out
    assert "rules/causes/power/power_brake.yaml:" in out


def test_testing_a_rule_that_is_off_says_so(site, gpuwhy):
    folder = site({OFF: switched_off("power_brake_active")})
    status, out, err = gpuwhy("rules", "test", "power_brake_active", "--overlay", folder)
    assert (status, out) == (2, "")
    assert f"rule 'power_brake_active' is switched off by {folder}/{OFF}" in err


@pytest.mark.parametrize(
    ("file", "shipped"),
    [
        ("rules/causes/power/power_brake.yaml", True),
        ("knowledge/thresholds.yaml", True),
        ("site/rules/causes/power/power_brake.yaml", False),
        ("rules/mine/rules/causes/power/power_brake.yaml", False),
        ("./knowledge/thresholds.yaml", False),
        ("/etc/gpuwhy/knowledge/thresholds.yaml", False),
    ],
)
def test_whose_a_file_is(file, shipped):
    assert is_packaged(file) is shipped
