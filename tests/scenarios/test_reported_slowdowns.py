"""Slowdowns that people reported: their readings in a metrics file, the cause they found out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.model import Verdict, Why
from engine.sources import FileSource
from tests.support.cases import case, text_faults
from tests.support.readings import causes, engine

REPORTED = ("slow-002", "slow-005", "slow-008", "slow-012", "slow-014", "slow-018")


def text_of(answer: Why) -> str:
    """Return what a person reads of the first diagnosis."""
    first = answer.diagnoses[0]
    parts = [first.title, first.says, *(e.says for e in first.evidence)]
    parts += [f"{s.do} {s.command or ''}" for s in first.next]
    parts += [f"{a.cause} {a.told_apart_by}" for a in first.alternatives]
    return "\n".join(parts)


@pytest.fixture
def file_of(tmp_path):
    def write(id_: str) -> Path:
        file = tmp_path / f"{id_}.prom"
        file.write_text(case("slowdowns", id_).metrics or "")
        return file

    return write


@pytest.mark.parametrize("id_", REPORTED)
async def test_the_cause_that_was_found_is_named_first(file_of, id_):
    one = case("slowdowns", id_)
    answer = await engine().why(one.target or "", FileSource([file_of(id_)]))
    assert answer.verdict is Verdict.DEGRADED
    assert causes(answer)[0] in one.causes
    assert not set(causes(answer)) & set(one.causes_not)
    assert list(text_faults(one, text_of(answer))) == []


@pytest.mark.parametrize("id_", REPORTED)
async def test_one_scrape_is_at_most_possible(file_of, id_):
    one = case("slowdowns", id_)
    answer = await engine().why(one.target or "", FileSource([file_of(id_)]))
    assert {d.confidence.value for d in answer.diagnoses} == {"possible"}
    assert all(re.search(r"\d", e.says) for d in answer.diagnoses for e in d.evidence)


async def test_the_sick_gpu_is_the_only_one_of_its_node(file_of):
    one = case("slowdowns", "slow-018")
    answer = await engine().sweep(FileSource([file_of("slow-018")]))
    assert [m.name for i in answer.incidents for m in i.members] == [one.target]
