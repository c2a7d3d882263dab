"""The linter of what people look up: each check finds what it is for, and nothing else."""

from __future__ import annotations

import shutil

import pytest

from engine.catalogue.lint import lint
from engine.catalogue.lint_base import LintProblem

ENTRY = """tools:
  - id: thing
    title: a thing
    kind: tool
    text: What it is.
    asked: [one question, another question]
    source: ["a document"]
    status: single
"""


@pytest.fixture
def check(root, put):
    """Put files into the root and return what a check of one name finds."""

    def run(name: str, files: dict[str, str]) -> list[LintProblem]:
        put(files)
        return [problem for problem in lint(root=root) if problem.check == name]

    return run


@pytest.mark.parametrize(
    "name", ["withdrawn-use", "unknown-placeholder", "unasked", "undescribed-concern", "promql"]
)
def test_a_good_entry_passes(check, name) -> None:
    assert check(name, {"knowledge/tools.yaml": ENTRY}) == []


def test_a_withdrawn_command_is_refused_with_what_to_use(check) -> None:
    withdrawn = """withdrawn:
  - id: attach
    title: attaching
    tool: nsys
    pattern: "nsys profile .*-p "
    text: It cannot.
    instead: arm a session
    source: ["a document"]
    status: confirmed
"""
    command = '    commands:\n      - {argv: [nsys, profile, "-p", "{pid}"], does: attaches}\n'
    found = check(
        "withdrawn-use",
        {"knowledge/tools.yaml": ENTRY + command, "knowledge/withdrawn.yaml": withdrawn},
    )
    assert [problem.hint for problem in found] == ["arm a session"]
    assert found[0].file == "knowledge/tools.yaml"


def test_an_unknown_placeholder_is_named(check) -> None:
    command = '    commands:\n      - {argv: [tool, "{gpuu}"], does: something}\n'
    found = check("unknown-placeholder", {"knowledge/tools.yaml": ENTRY + command})
    assert "{gpuu}" in found[0].message
    assert "gpu" in found[0].hint


def test_an_entry_that_nobody_asks_for_is_named(check) -> None:
    text = ENTRY.replace("[one question, another question]", "[one question]")
    assert len(check("unasked", {"knowledge/tools.yaml": text})) == 1


def test_a_concern_without_a_page_is_named(check) -> None:
    concerns = """concerns:
  - {id: nothing, title: nothing, text: None., group: x, source: [us], status: single}
"""
    found = check(
        "undescribed-concern",
        {"knowledge/tools.yaml": ENTRY, "knowledge/concerns.yaml": concerns},
    )
    said = " ".join(problem.message for problem in found)
    assert "'tools' is not described" in said
    assert "no concern 'nothing'" in said


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("sum by (host) (rate(a[5m]))", False),
        ("a and on(pod) group_left() b", True),
        ("a >", True),
    ],
)
def test_prometheus_itself_judges_the_queries(check, query, wrong) -> None:
    queries = f'    queries:\n      - {{promql: "{query}", shows: something}}\n'
    found = check("promql", {"knowledge/tools.yaml": ENTRY + queries})
    assert bool(found) == wrong
    assert all(query in problem.hint for problem in found)
