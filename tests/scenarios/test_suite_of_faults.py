"""The suite of faults and of healthy noise: never fewer right answers, never a false alarm."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import pytest

from benchmarks.exam import Mark, ask, examine
from engine.model import Why
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sources import FileSource, PrometheusConfig, PrometheusSource
from tests.support.readings import engine
from tests.support.servers import load_openmetrics, start_prometheus

# Right answers of one run each, clear and with seed 0, where all are right today.
FLOOR = 186

TOLD_ALIKE = (
    "power-limit-lowered",
    "gpu-shared-by-pods",
    "mig-thermal",
    "healthy-rebooted",
)


@cache
def marks() -> tuple[Mark, ...]:
    async def all_of_them() -> list[Mark]:
        runs = (realise(one, Severity.CLEAR, 0) for one in SCENARIOS.values())
        return [await examine(engine(), run) for run in runs]

    return tuple(asyncio.run(all_of_them()))


def test_an_operator_gets_no_fewer_right_answers_than_before():
    wrong = [f"{m.scenario.id}: {m.error or m.answer}" for m in marks() if not m.right]
    assert len(marks()) - len(wrong) >= FLOOR, "\n".join(wrong)


def test_nobody_is_woken_for_a_healthy_gpu():
    assert {m.scenario.id for m in marks() if m.alarm} == set()


def test_every_accepted_cause_is_a_word_of_the_taxonomy():
    known = set(engine().catalogue.taxonomy)
    named = {cause for one in SCENARIOS.values() for cause in one.causes}
    assert named <= known


def test_the_suite_has_the_breadth_that_it_promises():
    faults = [one for one in SCENARIOS.values() if one.causes]
    assert len(faults) >= 60
    assert len(SCENARIOS) - len(faults) >= 18


@pytest.mark.parametrize("severity", list(Severity))
def test_the_same_run_has_the_same_bytes(severity: Severity):
    one = SCENARIOS["healthy-rebooted"]
    again = openmetrics(realise(one, severity, 3))
    assert openmetrics(realise(one, severity, 3)) == again
    assert openmetrics(realise(one, severity, 4)) != again


def _told(answer: Why) -> tuple[object, ...]:
    return answer.verdict, answer.diagnoses, answer.notes, answer.unknown


@pytest.mark.parametrize("name", TOLD_ALIKE)
async def test_a_metrics_file_tells_the_same_as_memory(name: str, tmp_path: Path):
    run = realise(SCENARIOS[name], Severity.CLEAR, 1)
    path = tmp_path / "metrics.txt"
    path.write_text(openmetrics(run), encoding="utf-8")
    source = FileSource([path])
    target, window_s = run.scenario.target, run.scenario.window_s
    answer = await engine().why(target, source, at=run.at, window_s=window_s)
    await source.aclose()
    assert _told(answer) == _told(await ask(engine(), run))


@pytest.mark.parametrize("name", ["regression", "healthy-rebooted"])
async def test_prometheus_tells_the_same_as_memory(name: str, tmp_path: Path):
    run = realise(SCENARIOS[name], Severity.CLEAR, 0)
    load_openmetrics(openmetrics(run), tmp_path)
    target, window_s = run.scenario.target, run.scenario.window_s
    with start_prometheus(tmp_path) as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        answer = await engine().why(target, source, at=run.at, window_s=window_s)
        await source.aclose()
    assert _told(answer) == _told(await ask(engine(), run))
