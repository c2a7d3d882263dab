"""Slow GPUs as one scrape without times shows them: the cause from a metrics file alone.

``tests/data/variants/slowdowns.yaml``: readings of the GPUs of host h1 (``all`` for each of
``count`` GPUs, ``gpus`` by index on top), the target, and the cause or verdict that must come out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.model import Why
from engine.sources import FileSource
from tests.support.readings import causes, engine
from tests.support.yamlfiles import parse

FILE = Path(__file__).parent.parent / "data" / "variants" / "slowdowns.yaml"
VARIANTS = [
    pytest.param(one, id=one["name"]) for one in parse(FILE.read_text(encoding="utf-8"))["variants"]
]


def exposition(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a dcgm-exporter that shows these readings."""
    named = one.get("gpus", {})
    for gpu in sorted({*named, *range(one.get("count", 0))}):
        labels = (
            f'gpu="{gpu}",UUID="GPU-0{gpu}a41c0e-5b3d-4f0a-9c1e-8d72b6f0e014",'
            f'device="nvidia{gpu}",modelName="{one["model"]}",Hostname="h1"'
        )
        for metric, value in {**one.get("all", {}), **named.get(gpu, {})}.items():
            yield f"{metric}{{{labels}}} {value}\n"


def text_of(answer: Why) -> str:
    """Return what a person reads of the findings and notes."""
    found = (*answer.diagnoses, *answer.notes)
    return "\n".join(text for d in found for text in (d.says, *(e.says for e in d.evidence)))


@pytest.mark.parametrize("one", VARIANTS)
async def test_one_instant_names_the_cause(one: Mapping[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "metrics.prom"
    file.write_text("".join(exposition(one)), encoding="utf-8")
    answer = await engine().why(one["target"], FileSource([file]))
    named = causes(answer)
    noted = [note.cause for note in answer.notes]
    wanted = one.get("causes", ())
    assert not wanted or (named or noted)[:1] in [[c] for c in wanted], (named, noted)
    assert not set(named) & set(one.get("causes_not", ()))
    assert one.get("verdict", answer.verdict.value) == answer.verdict.value
    text = text_of(answer)
    assert [p for p in one.get("all_of", ()) if not re.search(p, text, re.IGNORECASE)] == []
