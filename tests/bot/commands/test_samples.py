"""One sample of every format (tests/data/read): the answer as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.read import Input, run
from bot.render import plain
from tests.support import packaged
from tests.support.golden import check
from tests.support.readings import judge

SAMPLES = sorted((Path(__file__).parents[2] / "data" / "read").iterdir())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_answered_as_before(sample: Path) -> None:
    catalogue = packaged.knowledge()
    text = plain.render(run([Input(sample.name, sample)], catalogue=catalogue, diagnose=judge))
    assert "Nothing recognised" not in text
    check(f"read/{sample.name}.txt", text)
