"""Variants of what people paste (tests/data/variants): each kind in other codes, tools and units.

A variant holds ``input`` and what the answer must hold, with the keys of the cases from the field.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.readers import read
from tests.support.cases import Case, check, plain
from tests.support.readings import judge
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parents[2] / "data" / "variants"
# Those of slowdowns are readings, not text: the rules' tests take them.
FILES = [path for path in sorted(FOLDER.glob("*.yaml")) if path.stem != "slowdowns"]


def _variants(path: Path) -> list[object]:
    name = path.stem
    raw = parse(path.read_text(encoding="utf-8"))["variants"]
    return [
        pytest.param(
            Case(
                id=one["name"],
                kind=name,
                input=one["input"],
                decode=one.get("decode", {}),
                causes=tuple(one.get("causes", ())),
                causes_not=tuple(one.get("causes_not", ())),
                all_of=tuple(one.get("all_of", ())),
                none_of=tuple(one.get("none_of", ())),
                target=None,
                metrics=None,
            ),
            id=f"{name}: {one['name']}",
        )
        for one in raw
    ]


@pytest.mark.parametrize("one", [v for path in FILES for v in _variants(path)])
def test_a_variant_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = read(one.input.encode(), catalogue, judge)
    assert check(one, answer, plain(answer), catalogue) == []
