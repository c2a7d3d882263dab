"""Pastes and what must be told of them: causes, GPUs, words (``told/expected.yaml``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers import read
from tests.support.cases import plain
from tests.support.readings import judge
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parent / "told"
CASES: list[dict[str, Any]] = parse((FOLDER / "expected.yaml").read_text("utf-8"))


def _wrong(answer: Read) -> set[str]:
    told = [(f.severity, f.entity) for f in answer.findings]
    told += [(d.severity, d.entity) for d in answer.diagnoses]
    return {e.name for severity, e in told if severity is not Severity.INFO and e is not None}


@pytest.mark.parametrize("one", CASES, ids=[c["name"] for c in CASES])
def test_a_paste_is_told_right(one: dict[str, Any], catalogue: Catalogue) -> None:
    text = one["text"] if "text" in one else (FOLDER / one["file"]).read_text("utf-8")
    answer = read(text.encode(), catalogue, judge)
    said = plain(answer)
    causes = one.get("causes", [])
    assert list(answer.causes[: len(causes)]) == causes
    assert not set(answer.causes) & set(one.get("causes_not", []))
    if "gpus" in one:
        assert _wrong(answer) == set(one["gpus"])
    for name, value in one.get("data", {}).items():
        assert answer.findings[0].data[name] == value
    offered = {other.cause for d in answer.diagnoses for other in d.alternatives}
    assert one.get("no_alternative") not in offered
    assert one.get("alternative") is None or one["alternative"] in offered
    for pattern in one.get("notes", []):
        assert any(re.search(pattern, note) for note in answer.notes), pattern
    for pattern in one.get("says", []):
        assert re.search(pattern, said), pattern
    for pattern in one.get("says_not", []):
        assert not re.search(pattern, said), pattern


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_wide_characters_are_understood(encoding: str, catalogue: Catalogue) -> None:
    text = (FOLDER / "dmesgT.txt").read_text("utf-8")
    assert read(text.encode(encoding), catalogue).causes == ("gpu_off_bus",)


def test_a_trace_that_is_whole_is_not_called_cut(catalogue: Catalogue) -> None:
    answer = read(b'{"traceEvents": []}', catalogue)
    assert "text_cut" not in {f.id for f in answer.findings}
