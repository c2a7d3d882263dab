"""Variants of what people paste (tests/data/variants): each kind in other codes, tools and units.

A variant holds ``input`` and what the answer must hold, with the keys of the cases from the field.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from engine.catalogue import Catalogue
from engine.model import Why
from engine.readers import read
from engine.sources import FileSource
from tests.support.cases import Case, check, plain
from tests.support.readings import engine

FOLDER = Path(__file__).parents[2] / "data" / "variants"


def _variants(name: str) -> list[object]:
    raw = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["variants"]
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


def _judge(exposition: bytes) -> Sequence[Why]:
    async def each() -> Sequence[Why]:
        source = FileSource(["-"], stdin=BytesIO(exposition))
        try:
            return await engine().each(source)
        finally:
            await source.aclose()

    return asyncio.run(each())


@pytest.mark.parametrize(
    "one", [*_variants("xid_lines"), *_variants("throttle"), *_variants("metrics")]
)
def test_a_variant_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = read(one.input.encode(), catalogue, _judge)
    assert check(one, answer, plain(answer), catalogue) == []
