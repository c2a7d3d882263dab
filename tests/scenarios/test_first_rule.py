"""A new user writes a rule by following the page on rules, step by step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(yaml|sh|text)\n(.*?)```", re.DOTALL)


def tutorial() -> list[tuple[str, str]]:
    """Every block of the tutorial: its language and its text."""
    text = PAGE.read_text().split("## Write a rule in ten minutes")[1].split("\n## ")[0]
    return BLOCK.findall(text)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run shell lines as they stand, with `gpuwhy` from this checkout."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    script = bin_ / "gpuwhy"
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -c "
        "'from bot.surfaces.cli.main import main; main()' \"$@\"\n"
    )
    script.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
    env |= {"PATH": f"{bin_}:{env['PATH']}", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    work = tmp_path / "work"
    work.mkdir()

    def shell(lines: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", lines],
            cwd=work,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell.work = work  # type: ignore[attr-defined]
    return shell


def test_following_the_tutorial_ends_in_a_rule_that_fires(run):
    assert shutil.which("awk"), "the tutorial needs awk"
    said = ""
    outputs = 0
    for language, text in tutorial():
        if language == "yaml":
            name = text.splitlines()[0].removeprefix("# ")
            file = run.work / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif language == "sh":
            said = run(text)
        else:
            assert text.strip() in said
            outputs += 1
    assert outputs == 3


def test_the_rule_of_the_tutorial_is_listed_as_the_site_s_own(run):
    for language, text in tutorial():
        if language == "yaml":
            file = run.work / text.splitlines()[0].removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    said = run("gpuwhy rules list --overlay site")
    assert "cause site_warm_die comes from site/rules/causes/site/site_warm_die.yaml" in said
    assert "limit.site_warm_die is 75 °C in site/knowledge/site.yaml" in said
