"""Everything in two common hand-outs is in the knowledge base, corrected where they err.

``tests/data/coverage/inventory.yaml`` lists what the hand-outs contain with a judgement of each
item; the other files there say which entry carries an item, what has to be said, and in which
erratum the claim is put right.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.shelf import catalogue, library
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parent.parent.parent / "data" / "coverage"
INVENTORY: dict[str, dict[str, Any]] = {
    item["id"]: item
    for item in parse((FOLDER / "inventory.yaml").read_text("utf-8"))["inventory"]
}
MAPS = [path for path in sorted(FOLDER.glob("*.yaml")) if path.name != "inventory.yaml"]
CARRIED: dict[str, dict[str, Any]] = {}
TWICE: list[str] = []
for _path in MAPS:
    for _id, _item in parse(_path.read_text("utf-8"))["coverage"].items():
        TWICE += [_id] if _id in CARRIED else []
        CARRIED[_id] = _item
ERRS = {"wrong", "partly", "outdated"}
RULE_OF_THUMB = re.compile(r"rule of thumb|no public source|heuristic|not settled|own |unsourced", re.I)


def flat(value: Any) -> str:
    """Return a value as one line of text."""
    return re.sub(r"\s+", " ", json.dumps(value, ensure_ascii=False))


def entry_of(key: str) -> dict[str, Any]:
    """Return an entry by ``concern/id``."""
    concern, _, name = key.partition("/")
    return dict(catalogue().entries[concern][name])


def test_every_item_is_carried_by_an_entry_and_by_one_alone() -> None:
    assert sorted(INVENTORY.keys() - CARRIED.keys()) == []
    assert sorted(CARRIED.keys() - INVENTORY.keys()) == []
    assert TWICE == []
    assert len(INVENTORY) == 518


@pytest.mark.parametrize("item", sorted(INVENTORY))
def test_the_entry_says_what_is_right(item: str) -> None:
    carried = CARRIED[item]
    entry = entry_of(carried["entry"])
    for other in carried.get("also", ()):
        assert entry_of(other)
    body = flat({key: value for key, value in entry.items() if key != "errata"})
    assert carried["right"], "an item without anything to look for proves nothing"
    for pattern in carried["right"]:
        assert re.search(pattern, body, re.IGNORECASE), f"{carried['entry']} lacks {pattern!r}"


@pytest.mark.parametrize("item", sorted(i for i in INVENTORY if INVENTORY[i]["verdict"] in ERRS))
def test_the_error_of_the_hand_out_is_put_right_in_an_erratum(item: str) -> None:
    carried = CARRIED[item]
    errata = entry_of(carried["entry"]).get("errata") or []
    for erratum in errata:
        claimed = re.search(carried["claim"], flat(erratum["claim"]), re.IGNORECASE)
        told = flat([erratum["right"], erratum["why"]])
        if claimed and re.search(carried["corrected"], told, re.IGNORECASE):
            return
    pytest.fail(f"no erratum of {carried['entry']} takes up {INVENTORY[item]['claim']!r}")


@pytest.mark.parametrize("item", sorted(INVENTORY))
def test_a_reader_finds_it_by_asking(item: str) -> None:
    wanted = {CARRIED[item]["entry"], *CARRIED[item].get("also", ())}
    for question in INVENTORY[item]["find_by"]:
        found = [hit.card.key for hit in library().index.search(question, 3)]
        assert wanted & set(found), f"{question!r} finds {found}"
