"""``gpuwhy export``: the file and nothing else on standard output, or in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.backend import Backend
from bot.commands import export
from bot.request import Request
from engine.errors import UsageError
from tests.support import packaged
from tests.support.yamlfiles import parse

GPUWHY = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()", "export"]
CATALOGUE = packaged.catalogue()
# What is judged by the readings of one GPU alone: PromQL can say all of it.
OF_A_GPU = {
    "clocks_locked",
    "ecc_uncorrectable",
    "power_bound",
    "power_brake",
    "power_limit_lowered",
    "thermal_slowdown_hw",
    "thermal_slowdown_sw",
}


def gpuwhy(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUWHY, *words], capture_output=True, text=True, timeout=60, check=False
    )


def read(what: str, text: str) -> dict[str, object]:
    return dict(json.loads(text) if what == "grafana" else parse(text))


@pytest.mark.parametrize("what", export.FORMATS)
def test_it_prints_the_file_and_nothing_else(what: str):
    done = gpuwhy(what)
    assert (done.returncode, done.stderr) == (0, "")
    assert read(what, done.stdout)
    assert done.stdout == export.run(what, catalogue=CATALOGUE).data["text"]


@pytest.mark.parametrize("what", export.FORMATS)
def test_into_a_file_it_says_so(what: str, tmp_path: Path):
    file = tmp_path / "made"
    done = gpuwhy(what, "--out", str(file))
    assert done.stdout.startswith(f"{what} written to {file}\n")
    assert file.read_text() == export.run(what, catalogue=CATALOGUE).data["text"]


def test_the_document_says_what_is_in_it():
    document = json.loads(gpuwhy("prometheus", "--json").stdout)
    assert document["schema"] == "gpuwhy/export/1"
    left_out = {item["id"]: item["reason"] for item in document["left_out"]}
    assert len(left_out) == len(document["left_out"]), "a cause is left out twice"
    assert all(reason.strip() for reason in left_out.values())
    # Every cause is either recorded or left out, and what a GPU says of itself is recorded.
    rules = [rule for group in parse(document["text"])["groups"] for rule in group["rules"]]
    recorded = {rule["labels"]["cause"] for rule in rules if rule.get("record") == "gpuwhy:cause"}
    assert recorded.isdisjoint(left_out)
    assert recorded | set(left_out) == set(CATALOGUE.causes)
    assert recorded >= OF_A_GPU
    assert {"id": "power_brake", "origin": "rules", "name": "GpuwhyPowerBrake"}.items() <= next(
        alert for alert in document["alerts"] if alert["id"] == "power_brake"
    ).items()
    assert [item["id"] for item in document["no_alert"]] == sorted(
        item["id"] for item in document["no_alert"]
    )
    assert parse(document["text"])["groups"]


def test_runbooks_lead_where_they_are_told_to():
    text = gpuwhy("prometheus", "--runbook-base", "https://kb.example/ref").stdout
    assert "runbook_url: https://kb.example/ref/taxonomy.md#power_brake" in text


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path):
    done = gpuwhy("grafana", "--out", str(tmp_path / "none" / "there"))
    assert done.returncode == 2
    assert done.stderr.startswith("gpuwhy: cannot write ")
    assert done.stderr.count("\n") == 1


def test_nobody_reads_to_the_end():
    line = " ".join(f"'{word}'" for word in [*GPUWHY, "prometheus"])
    piped = f"set -o pipefail; {line} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", piped], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "# Made by `gpuwhy export prometheus`; changes here are lost.\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("what", "runbooks", "said"),
    [
        ("prometeus", "", "cannot export to 'prometeus'"),
        ("grafana", "https://x.example/", "grafana has no runbook links"),
        ("prometheus", "two words", "the runbook base is no address"),
    ],
)
def test_wrong_words_are_one_line(what: str, runbooks: str, said: str):
    with pytest.raises(UsageError, match=said):
        export.run(what, catalogue=CATALOGUE, runbooks=runbooks)


async def test_a_server_makes_the_same_file():
    backend = Backend(None)
    await backend.start()
    try:
        answer = await backend.run(Request("export", {"format": "alertmanager"}))
    finally:
        await backend.aclose()
    assert answer.data["text"] == export.run("alertmanager", catalogue=CATALOGUE).data["text"]
