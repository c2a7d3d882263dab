"""Healthy GPUs as every command shows them, busy and idle: nothing may alarm anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.model import Class, Severity
from engine.readers import read
from tests.support.readings import judge
from tests.support.yamlfiles import parse

FILE = Path(__file__).parents[3] / "data" / "variants" / "nvidia_smi_healthy.yaml"
VARIANTS = parse(FILE.read_text(encoding="utf-8"))["variants"]
QUIET = (Severity.INFO, Severity.LOW)
# Without the lines above it a narrow link may be that of any GPU in any slot.
PARTS = [one for one in VARIANTS if not one["name"].startswith(("lspci", "narrow"))]


@pytest.mark.parametrize("one", VARIANTS, ids=lambda one: one["name"])
def test_nothing_is_found_wrong(one: dict[str, str], catalogue: Catalogue) -> None:
    answer = read(one["input"].encode(), catalogue, judge)
    assert [f for f in answer.findings if f.severity not in QUIET] == []
    assert answer.diagnoses == ()
    classes = {catalogue.taxonomy[cause].class_ for cause in answer.causes}
    assert classes <= {Class.BENIGN, Class.LIMIT}


@pytest.mark.parametrize("one", PARTS, ids=lambda one: one["name"])
def test_nothing_is_found_wrong_in_a_part_of_it(one: dict[str, str], catalogue: Catalogue) -> None:
    lines = one["input"].splitlines(keepends=True)
    for start in range(1, len(lines), max(len(lines) // 4, 1)):
        for part in (lines[start:], lines[:start]):
            answer = read("".join(part).encode(), catalogue)
            assert [f for f in answer.findings if f.severity not in QUIET] == [], part[:2]
