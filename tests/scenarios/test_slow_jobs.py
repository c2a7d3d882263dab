"""A job is slow: which GPU or rank holds it back and why, asked of the job, a victim, the culprit.

``tests/data/jobs/jobs.yaml`` says what every GPU and rank reads over a quarter of an hour; it becomes
a metrics file with times, under the names that exporters use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.ruletest import readings
from engine.model import Diagnosis, Effect, Why
from engine.sources import FileSource
from tests.support.readings import causes, engine
from tests.support.yamlfiles import parse

FILE = Path(__file__).parent.parent / "data" / "jobs" / "jobs.yaml"
JOBS = [
    pytest.param(job, target, id=f"{job['name']}: {target}")
    for job in parse(FILE.read_text(encoding="utf-8"))["jobs"]
    for target in job["ask"]
]
HOSTS = ("node-6", "node-7")
GPUS = 8
MODEL = "NVIDIA H100 80GB HBM3"


def exposition(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a metrics file, one family after the other."""
    families: dict[str, list[str]] = {}
    for number, (host, gpu) in enumerate((host, gpu) for host in HOSTS for gpu in range(GPUS)):
        name = f"{host}:{gpu}"
        uuid = f"GPU-{number:08x}-0000-4000-8000-000000000000"
        of_gpu = f'gpu="{gpu}",UUID="{uuid}",modelName="{MODEL}",Hostname="{host}",hpc_job="42"'
        _add(families, of_gpu, {**job["job"], **job.get("odd", {}).get(name, {})})
        of_rank = f'job_name="42",rank="{number}",node="{host}",instance="{host}:9100"'
        _add(
            families, of_rank, {**job.get("ranks", {}), **job.get("odd_ranks", {}).get(number, {})}
        )
    for lines in families.values():
        yield from lines
    yield "# EOF\n"


def _add(families: dict[str, list[str]], labels: str, given: Mapping[str, Any]) -> None:
    for signal, value in given.items():
        spelling = engine().catalogue.signals[signal].spellings[0]
        times, values = readings(value)
        families.setdefault(spelling.name, []).extend(
            f"{spelling.name}{{{labels}}} {v / spelling.scale:.9g} {t:.3f}\n"
            for t, v in zip(times, values, strict=True)
        )


def below(effects: tuple[Effect, ...]) -> Iterator[str]:
    """Yield the causes of a tree of effects, each after what brings it about."""
    for effect in effects:
        yield effect.cause
        yield from below(effect.effects)


def text_of(diagnoses: tuple[Diagnosis, ...]) -> str:
    """Return what a person reads of the findings."""
    return "\n".join(d.says for d in diagnoses)


@pytest.fixture
def ask(tmp_path):
    async def of(job: Mapping[str, Any], target: str) -> Why:
        file = tmp_path / "job.om"
        file.write_text("".join(exposition(job)), encoding="utf-8")
        return await engine().why(target, FileSource([file]))

    return of


@pytest.mark.parametrize(("job", "target"), JOBS)
async def test_a_slow_job_is_explained(ask, job, target):
    answer = await ask(job, target)
    found = causes(answer)
    named = [*found, *(c for d in answer.diagnoses for c in below(d.effects))]
    if "verdict" in job:
        assert answer.verdict.value == job["verdict"], found
    if first := job.get("first"):
        assert found[:1] in [[c] for c in ([first] if isinstance(first, str) else first)], found
    if culprit := job.get("culprit"):
        assert culprit in answer.diagnoses[0].says
    if (chain := job.get("chain")) and target != job["culprit"]:
        root = answer.diagnoses[0]
        assert [root.cause, *below(root.effects)] == chain
    assert not set(job.get("never", ())) & set(named)


async def test_the_answer_about_a_job_says_who_waits(ask):
    job = next(p.values[0] for p in JOBS if "power brake" in p.values[0]["name"])
    answer = await ask(job, "job/42")
    says = answer.diagnoses[0].says
    assert "Slow in job/42: node-7:3; waiting for it: node-6:0," in says
    assert "11 more" in says
    (found,) = answer.diagnoses
    assert {e.entity.name for e in found.evidence} == {"node-7:3"}


async def test_the_same_readings_give_the_same_answer(ask):
    job = JOBS[0].values[0]
    assert await ask(job, "node-6:1") == await ask(job, "node-6:1")
