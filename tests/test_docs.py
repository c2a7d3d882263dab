"""The documentation says what is so."""

import re
import shlex
from pathlib import Path

import pytest

from bot.settings import setting_paths
from bot.surfaces.cli.group import COMMANDS
from engine.catalogue.lint_rules import ENTITY_WORDS
from engine.condition.calls import USAGE
from engine.model import Class
from engine.topology import parse_target
from tests.support import packaged
from tests.support.yamlfiles import parse

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RULES = (ROOT / "docs" / "rules.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands():
    """Every gpuwhy command line that stands in code in the README."""
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    found = re.findall(r"`([^`\n]*gpuwhy[^`\n]*)`", prose)
    lines = [part.replace("\\|", "|") for part in found]
    return sorted({line.split("|")[-1].strip() for line in lines if "gpuwhy " in line})


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_readme_exists(line):
    words = shlex.split(line)
    words = words[words.index("gpuwhy") + 1 :]
    assert words[0] in COMMANDS, line
    if words[0] == "why":
        parse_target(words[1])


def test_the_readme_example_is_what_the_demo_answers(tmp_path):
    import asyncio

    from bot.commands import why
    from bot.render import plain
    from engine.diagnosis import Engine
    from engine.simulate import DEMO_SPAN_S, demo_fleet
    from engine.sources.exposition import FileSource

    fleet = demo_fleet()
    at = fleet.start + DEMO_SPAN_S
    file = tmp_path / "demo.om"
    file.write_text("".join(fleet.openmetrics(at - 900.0, at, 15.0)))
    engine = Engine(packaged.catalogue())
    run = why.run("node-2:3", engine=engine, source=FileSource([file]), at=at, window_s=900.0)
    said = " ".join(
        re.sub(r" \[[^\]]*threshold: [^\n]*", "", plain.render(asyncio.run(run))).split()
    )
    example = README.split("```text")[1].split("```")[0].split("\n\n", 1)[1]
    for part in re.split(r"\n\s*\n|\n  \.\.\.\n|\n(?=  - )", example):
        assert " ".join(part.split()) in said


def test_every_function_of_the_condition_language_is_documented():
    for name in USAGE:
        word = name.removeprefix("siblings.")
        assert re.search(rf"\b{re.escape(word)}\b", RULES), name


@pytest.mark.parametrize("kind", ["symptoms", "causes"])
def test_every_key_of_a_rule_is_documented(kind):
    keys = set()
    for path in (ROOT / "rules" / kind).rglob("*.yaml"):
        keys |= set(parse(path.read_text()))
    for key in keys:
        assert re.search(rf"^ *{key}:", RULES, re.MULTILINE), key


def test_every_setting_is_documented_with_its_variable():
    for path, _ in setting_paths():
        assert f"`{'.'.join(path)}`" in CONFIGURATION, path
        assert f"`GPUWHY_{'_'.join(path).upper()}`" in CONFIGURATION, path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for name in re.findall(r"`((?:docs/)[\w./-]+)`", page.read_text()):
        assert (ROOT / name).exists(), name


def test_the_project_speaks_of_itself_alone():
    words = re.compile(r"/work/|\.library/|issue #?\d+ of this|helper-\d|farm-", re.IGNORECASE)
    roots = ["engine", "bot", "rules", "knowledge", "docs", "benchmarks"]
    pages = [p for r in roots for p in (ROOT / r).rglob("*") if p.suffix in {".py", ".yaml", ".md"}]
    assert not [str(p) for p in [*pages, *PAGES] if words.search(p.read_text())]


def test_the_reference_is_what_the_knowledge_base_says():
    from engine.lookup.pages import pages

    folder = ROOT / "docs" / "reference"
    made = pages(packaged.catalogue())
    assert sorted(path.name for path in folder.glob("*.md")) == sorted(made)
    changed = [name for name, text in made.items() if (folder / name).read_text() != text]
    assert changed == [], "run: gpuwhy kb reference docs/reference"


def test_the_page_about_rules_names_every_unit_class_and_placeholder():
    known = packaged.catalogue()
    written = set(re.findall(r"`([^`\n]+)`", RULES))
    assert {s.unit for s in known.signals.values()} <= written
    assert {str(word) for word in Class} <= written
    assert {f"{{{word}}}" for word in ENTITY_WORDS} <= written
