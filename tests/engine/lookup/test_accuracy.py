"""The right entry comes first, on questions in many voices; what lies outside is not answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.shelf import catalogue, library
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parent.parent.parent / "data" / "questions"


def load(name: str) -> dict[str, Any]:
    """Load a set of questions."""
    found: dict[str, Any] = parse((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return found


def shares(name: str) -> tuple[float, float]:
    """Return how often a right entry is first, and in the first three."""
    asked = load(name)["questions"]
    first = third = 0
    for question in asked:
        answers = library().ask(question["q"], after=question.get("after")).answers
        keys = [answer.id for answer in answers]
        first += keys[:1] != [] and keys[0] in question["entries"]
        third += bool(set(keys) & set(question["entries"]))
    return first / len(asked), third / len(asked)


@pytest.mark.parametrize(
    ("name", "first", "third"),
    [("own", 0.95, 0.99), ("blind", 0.85, 0.95), ("short", 0.95, 0.98)],
)
def test_the_right_entry_comes_first(name, first, third) -> None:
    assert len(load(name)["questions"]) >= {"own": 200, "blind": 100, "short": 100}[name]
    found = shares(name)
    assert found[0] >= first
    assert found[1] >= third


@pytest.mark.parametrize("name", ["own", "blind", "short"])
def test_what_lies_outside_is_seldom_called_sure(name) -> None:
    outside = load(name)["outside"]
    sure = [question for question in outside if library().ask(question).sure]
    assert len(outside) >= 20
    assert len(sure) <= 0.1 * len(outside), sure


@pytest.mark.parametrize("name", ["own", "blind", "short"])
def test_every_entry_that_is_wanted_exists(name) -> None:
    for question in load(name)["questions"]:
        for key in question["entries"]:
            concern, _, entry = key.partition("/")
            assert entry in catalogue().entries[concern], (question["q"], key)
