"""Broken files, entries and rules are left out one by one, told, and the rest still loads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from engine.catalogue import Catalogue, load_catalogue
from engine.catalogue.files import ROOT
from engine.errors import CatalogueError

pytestmark = pytest.mark.usefixtures("indexed")


@pytest.fixture
def site(tmp_path):
    """Write files of an overlay and load it over the packaged catalogue."""

    def load(files: dict[str, str], *, strict: bool = False) -> Catalogue:
        for name, text in files.items():
            path = tmp_path / "site" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return load_catalogue([tmp_path / "site"], strict=strict)

    return load


def xid(number: int, **more: str) -> str:
    """Return an overlay's Xid entry as YAML."""
    keys = {
        "symbol": "A_SYMBOL",
        "symbol_source": "header",
        "title": "a title of this site",
        "meaning": "A meaning.",
        "severity": "high",
        "class": "hardware",
        "cause": "[hw]",
        "cause_basis": "archive",
        "resolution": "CONTACT_SUPPORT",
        "investigate": "CONTACT_SUPPORT",
        "taxonomy": "gpu_off_bus",
        "action": "Call us.",
        "source": '["runbook 7"]',
        "status": "single",
    } | more
    lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    return f"xid:\n  - id: {number}\n{lines}"


def test_a_good_overlay_has_no_problems(site) -> None:
    loaded = site({"knowledge/xid.yaml": xid(79)})
    assert loaded.problems == ()
    assert loaded.entries["xid"]["79"]["title"] == "a title of this site"


@pytest.mark.parametrize(
    "text",
    [
        "xid: [unclosed",
        "\t",
        "xid: 7",
        "unheard_of:\n  - id: 1\n",
        xid(79, severity="terrible"),
        xid(79, taxonomy="power_brke"),
        xid(79) + xid(79, title="again").removeprefix("xid:\n"),
        "\x00\xff",
    ],
)
def test_what_is_broken_is_told_and_what_it_would_replace_stays(site, text) -> None:
    loaded = site({"knowledge/broken.yaml": text, "knowledge/good.yaml": xid(48)})
    assert loaded.problems
    assert all("broken.yaml" in problem.file for problem in loaded.problems)
    assert all(problem.message for problem in loaded.problems)
    assert loaded.entries["xid"]["48"]["title"] == "a title of this site"
    assert loaded.entries["xid"]["79"]["title"] != "again"
    assert len(loaded.causes) == len(load_catalogue().causes)


def test_strictly_the_same_is_refused(site) -> None:
    with pytest.raises(CatalogueError):
        site({"knowledge/broken.yaml": "xid: [unclosed"}, strict=True)


def test_a_dead_link_goes_and_its_entry_stays(site) -> None:
    loaded = site({"knowledge/a.yaml": xid(79, see='["xid/48", "xid/4800"]')})
    assert loaded.entries["xid"]["79"]["see"] == ["xid/48"]
    assert [problem.message for problem in loaded.problems] == ["link 'xid/4800' leads nowhere"]


def test_a_broken_rule_leaves_the_one_it_would_replace(site) -> None:
    name = "rules/causes/power/power_brake.yaml"
    packaged = next((ROOT / "rules").rglob("power_brake.yaml"))
    text = packaged.read_text().replace("patterns:", "paterns:")
    loaded = site({name: text})
    assert "power_brake" in loaded.causes
    assert loaded.causes["power_brake"].place.file.startswith("rules/")
    assert any("power_brake.yaml" in problem.file for problem in loaded.problems)


def test_a_symptom_whose_condition_fails_leaves_the_packaged_one(site) -> None:
    packaged = next((ROOT / "rules" / "symptoms").rglob("power_brake_active.yaml"))
    text = "\n".join(
        "when: avg(sm_clok, '5m') > 3" if line.startswith("when:") else line
        for line in packaged.read_text().splitlines()
    )
    loaded = site({"rules/symptoms/power/power_brake_active.yaml": text})
    assert loaded.symptoms["power_brake_active"].place.file.startswith("rules/")
    assert len(loaded.problems) == 1


def test_what_follows_from_what_was_left_out_is_told_apart(site) -> None:
    symptom = next((ROOT / "rules" / "symptoms").rglob("power_brake_active.yaml")).read_text()
    cause = next((ROOT / "rules" / "causes").rglob("power_brake.yaml")).read_text()
    files = {
        "rules/symptoms/site/site_brake.yaml": symptom.replace("power_brake_active", "site_brake")
        .replace("when:", "whem:"),
        "rules/causes/power/power_brake.yaml": cause.replace("power_brake_active", "site_brake"),
    }  # fmt: skip
    loaded = site(files)
    assert {Path(p.file).stem for p in loaded.problems} == {"site_brake", "power_brake"}
    assert {Path(p.file).stem for p in loaded.own_problems} == {"site_brake"}
    assert all("unknown symptom" not in said for said in loaded.left_out)


def test_knowledge_that_breaks_a_packaged_rule_takes_that_rule_out_and_says_so(site) -> None:
    loaded = site(
        {
            "knowledge/signals.yaml": (
                "signals:\n  - id: throttle_reasons\n    title: mine\n    unit: count\n"
                "    kind: gauge\n    scope: gpu\n    source: [runbook]\n    status: single\n"
            )
        }
    )
    assert loaded.problems
    assert "power_brake_active" not in loaded.symptoms
    assert any("power_brake_active" in problem.file for problem in loaded.problems)


def test_a_file_name_that_is_no_utf8_stops_nothing(site, tmp_path) -> None:
    site({"knowledge/good.yaml": xid(48)})
    Path(os.fsdecode(os.fsencode(tmp_path / "site" / "knowledge") + b"/\xff.yaml")).write_text(
        "x: ["
    )
    loaded = load_catalogue([tmp_path / "site"], strict=False)
    assert loaded.entries["xid"]["48"]["title"] == "a title of this site"
    assert len(loaded.problems) == 1


def test_left_out_names_three_and_counts_the_rest(site) -> None:
    links = ", ".join(f'"xid/99{n}"' for n in range(5))
    loaded = site({"knowledge/a.yaml": xid(79, see=f"[{links}]")})
    assert len(loaded.left_out) == 4
    assert loaded.left_out[-1].startswith("2 more left out")


def test_a_packaged_file_that_breaks_does_not_stop_the_others(tmp_path) -> None:
    from engine.catalogue.loader import load_from

    shutil.copytree(ROOT / "knowledge", tmp_path / "knowledge")
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    Path(tmp_path, "knowledge", "sxid.yaml").write_text("sxid: [")
    loaded = load_from(tmp_path, strict=False, use_index=False)
    told = {problem.message for problem in loaded.problems if "sxid/" not in problem.message}
    assert {p.file for p in loaded.problems if p.message in told} == {"knowledge/sxid.yaml"}
    assert loaded.entries["xid"]["79"]
    assert loaded.causes
