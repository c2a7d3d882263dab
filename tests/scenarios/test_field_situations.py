"""Situations from the field: readings of one GPU and its node in, the verdict a person needs out.

Each file of ``tests/data/situations`` holds a list of situations. ``model``, ``given`` and
``siblings`` are those of rule tests. ``every`` thins all readings to one sample in so many seconds
(``every: 60`` is a slow scrape, ``every: scrape`` the newest sample only, without its time).

``expect`` says what must come out:

- ``verdict``: degraded, healthy, idle or unknown;
- ``first``: the cause named first, or a list of causes any of which will do;
- ``found``: causes that must appear, as a finding or as an effect of one;
- ``beneath``: causes that must appear as an effect of a finding, not as one of their own;
- ``never``: causes that must not be a finding, nor an effect of one;
- ``notes``: benign causes that must be noted; ``blind``: causes among what could not be seen;
- ``says`` / ``silent_on``: regular expressions that the text of the findings must, must not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.catalogue.types import RuleTest
from engine.diagnosis.judge import Judge, Judgement
from engine.diagnosis.ruletest import AT, frame_of
from engine.model import Diagnosis, Effect
from engine.samples import Column, Frame
from tests.support import packaged
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parent.parent / "data" / "situations"
SITUATIONS = [
    pytest.param(one, id=f"{path.stem}: {one['name']}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for one in parse(path.read_text())["situations"]
]


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(packaged.catalogue())


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_verdict_is_what_a_person_on_call_needs(
    judge: Judge, situation: Mapping[str, Any]
) -> None:
    answer = judge_situation(judge, situation)
    expect = situation["expect"]
    findings = [d.cause for d in answer.diagnoses]
    beneath = set(_beneath(e for d in answer.diagnoses for e in d.effects))
    notes = {d.cause for d in answer.notes}
    blind = {u.cause for u in answer.unknown}
    text = "\n".join(_texts(answer.diagnoses + answer.notes))

    assert answer.verdict.value == expect["verdict"], (findings, notes)
    if first := expect.get("first"):
        accepted = {first} if isinstance(first, str) else set(first)
        assert accepted & set(findings[:1]), findings
    else:
        assert not findings
    assert not set(expect.get("found", ())) - beneath - set(findings)
    assert not set(expect.get("beneath", ())) - (beneath - set(findings))
    assert not set(expect.get("never", ())) & (beneath | set(findings))
    assert not set(expect.get("notes", ())) - notes
    assert not set(expect.get("blind", ())) - blind
    for pattern in expect.get("says", ()):
        assert re.search(pattern, text), f"{pattern!r} is not in:\n{text}"
    for pattern in expect.get("silent_on", ()):
        assert not re.search(pattern, text), f"{pattern!r} is in:\n{text}"


def judge_situation(judge: Judge, situation: Mapping[str, Any]) -> Judgement:
    """Judge the first GPU of a situation."""
    test = RuleTest(
        name=situation["name"],
        given=situation["given"],
        expect="",
        model=situation.get("model"),
        siblings=situation.get("siblings"),
    )
    frame = _thinned(frame_of(judge.catalogue, test), situation.get("every"))
    seen = judge.observe(frame)
    return judge.judge(seen, 0, judge.states(seen))


def _thinned(frame: Frame, every: int | str | None) -> Frame:
    if every is None:
        return frame
    timed = every != "scrape"
    step_s = float(every) if timed else np.inf
    columns = {}
    for name, column in frame.columns.items():
        keep = (AT - column.ts) % step_s == 0.0 if timed else column.ts == AT
        ends = np.concatenate([[0], np.cumsum(keep)])[column.offsets]
        ts = column.ts[keep] if timed else np.zeros(int(keep.sum()))
        columns[name] = Column(ts, column.values[keep], ends.astype(np.int64))
    return replace(frame, columns=columns, timed=timed)


def _beneath(effects: Iterable[Effect]) -> list[str]:
    return [name for e in effects for name in (e.cause, *_beneath(e.effects))]


def _texts(diagnoses: Iterable[Diagnosis]) -> Iterable[str]:
    for d in diagnoses:
        yield d.says
        for step in d.next:
            yield f"{step.do} {step.command or ''}"
