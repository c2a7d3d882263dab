"""Jobs and racks that no label names: the map of the site does, and the answers are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.diagnosis import Engine
from engine.diagnosis.whynot import why_not
from engine.diagnosis.whynotmodel import Outcome
from engine.errors import UsageError
from engine.model import Kind, Why
from engine.samples import RawSeries
from engine.signals.labels import JOB_LABELS
from engine.simulate.scenarios import Run, Severity, openmetrics, realise
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sitemap import SiteFile
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, catalogue, engine, node
from tests.support.servers import load_openmetrics, start_prometheus

STRAGGLER = realise(SCENARIOS["job-straggler"], Severity.SEVERE, 0)
HOSTS = sorted({s.labels["Hostname"] for s in STRAGGLER.series if "Hostname" in s.labels}) or [
    "node-1",
    "node-2",
    "node-3",
    "node-4",
]


def mapped(tmp_path: Path, text: str) -> Engine:
    file = tmp_path / "sitemap.yaml"
    file.write_text(text)
    return Engine(catalogue(), site=SiteFile(file))


def unlabelled(run: Run, **more: str) -> list[RawSeries]:
    """Return a run's series without the job's label, and with others for series of GPUs."""
    out = []
    for one in run.series:
        labels = {k: v for k, v in one.labels.items() if k not in JOB_LABELS}
        of_job = len(labels) < len(one.labels)
        if of_job:
            labels |= {k: v.format(**labels) for k, v in more.items()}
        out.append(replace(one, labels=labels))
    return out


def told(answer: Why) -> list[tuple[str, str]]:
    return [(d.cause, d.says) for d in answer.diagnoses]


async def labelled() -> Why:
    source = MemorySource(STRAGGLER.series, now=STRAGGLER.at)
    return await engine().why("job/51234", source, at=STRAGGLER.at)


async def test_a_job_that_only_the_map_knows(tmp_path):
    site = mapped(tmp_path, f"jobs: {{'51234': [{', '.join(HOSTS)}]}}")
    source = MemorySource(unlabelled(STRAGGLER), now=STRAGGLER.at)
    answer = await site.why("job/51234", source, at=STRAGGLER.at)
    assert [d.cause for d in answer.diagnoses] == ["straggler"]
    assert told(answer) == told(await labelled())


async def test_a_victim_is_told_apart_by_the_map(tmp_path):
    site = mapped(tmp_path, f"jobs: {{'51234': [{', '.join(HOSTS)}]}}")
    run = realise(SCENARIOS["job-victim"], Severity.SEVERE, 0)
    source = MemorySource(unlabelled(run), now=run.at)
    answer = await site.why(run.scenario.target, source, at=run.at)
    assert answer.diagnoses[0].cause == "straggler"
    assert run.scenario.culprit in answer.diagnoses[0].says


async def test_why_a_rule_did_not_fire_sees_the_jobs_of_the_map(tmp_path):
    site = mapped(tmp_path, f"jobs: {{'51234': [{', '.join(HOSTS)}]}}")
    source = MemorySource(unlabelled(STRAGGLER), now=STRAGGLER.at)
    found = await why_not(site, "straggler", "job/51234", source, at=STRAGGLER.at)
    assert found.outcome is Outcome.FIRED
    culprit = STRAGGLER.scenario.culprit
    fired = [c for c in found.checks if c.outcome is Outcome.FIRED]
    assert [c.entity.name for c in fired] == [culprit]
    source = MemorySource(STRAGGLER.series, now=STRAGGLER.at)
    by_labels = await why_not(engine(), "straggler", "job/51234", source, at=STRAGGLER.at)
    assert [(c.entity.name, c.says) for c in found.checks] == [
        (c.entity.name, c.says) for c in by_labels.checks
    ]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({"pod_label_app": "51234"}, "job_labels: [pod_label_app]"),
        (
            {"exported_pod": "51234-worker-{gpu}", "exported_namespace": "ml"},
            "job_of_pod: '(?P<job>.+)-worker-[0-9]+'",
        ),
    ],
)
async def test_a_job_by_labels_and_pods(tmp_path, labels, text):
    source = MemorySource(unlabelled(STRAGGLER, **labels), now=STRAGGLER.at)
    answer = await mapped(tmp_path, text).why("job/51234", source, at=STRAGGLER.at)
    assert [d.cause for d in answer.diagnoses] == ["straggler"]


async def test_a_real_server_is_asked_as_well(tmp_path):
    site = mapped(tmp_path, f"jobs: {{'51234': [{', '.join(HOSTS)}]}}")
    bare = replace(STRAGGLER, series=unlabelled(STRAGGLER))
    load_openmetrics(openmetrics(bare), tmp_path / "data")
    with start_prometheus(tmp_path / "data") as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        answer = await site.why("job/51234", source, at=STRAGGLER.at)
        await source.aclose()
    assert told(answer) == told(await labelled())


BRAKE = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}


async def test_braked_nodes_of_a_rack_are_one_incident(tmp_path):
    site = mapped(tmp_path, "racks: {r7: ['node-[1-3]'], r8: [node-4, node-5]}")
    series = [
        *node(BRAKE, gpus=2),
        *node(BRAKE, gpus=2, host="node-2"),
        *node(FULL, gpus=2, host="node-3"),
        *node(BRAKE, gpus=2, host="node-4"),
        *node(FULL, gpus=2, host="node-5"),
    ]
    found = await site.sweep(MemorySource(series), at=AT)
    names = {one.diagnosis.entity.name: one for one in found.incidents}
    assert set(names) == {"rack/r7", "node-4"}
    assert len(names["rack/r7"].members) == 4
    assert "2 of 3 nodes of rack r7" in names["rack/r7"].diagnosis.says


RACKS = "racks: {r7: ['node-[1-3]'], r8: [node-4, node-5]}"


async def test_why_a_rack_is_slow_names_what_its_nodes_share(tmp_path):
    series = [
        *node(BRAKE, gpus=2),
        *node(BRAKE, gpus=2, host="node-2"),
        *node(FULL, gpus=2, host="node-3"),
        *node(BRAKE, gpus=2, host="node-4"),
    ]
    answer = await mapped(tmp_path, RACKS).why("rack/r7", MemorySource(series), at=AT)
    assert answer.target.kind is Kind.RACK
    (diagnosis,) = answer.diagnoses
    assert (diagnosis.cause, diagnosis.entity.name) == ("power_brake", "rack/r7")
    assert "2 of 3 nodes of rack r7" in diagnosis.says
    assert {m.host for m in answer.members} == {"node-1", "node-2", "node-3"}


async def test_why_not_of_what_a_rack_shares_says_that_it_fired(tmp_path):
    series = [*node(BRAKE, gpus=2), *node(BRAKE, gpus=2, host="node-2")]
    series += node(FULL, gpus=2, host="node-3")
    found = await why_not(
        mapped(tmp_path, RACKS), "power_brake", "rack/r7", MemorySource(series), at=AT
    )
    assert found.outcome is Outcome.FIRED


async def test_a_rack_whose_nodes_are_well_is_healthy(tmp_path):
    series = [s for k in (1, 2, 3) for s in node(FULL, gpus=2, host=f"node-{k}")]
    answer = await mapped(tmp_path, RACKS).why("rack/r7", MemorySource(series), at=AT)
    assert answer.verdict == "healthy"


async def test_a_rack_with_a_node_that_nothing_is_read_of_is_not_healthy(tmp_path):
    series = [s for k in (1, 2) for s in node(FULL, gpus=2, host=f"node-{k}")]
    answer = await mapped(tmp_path, RACKS).why("rack/r7", MemorySource(series), at=AT)
    assert answer.verdict == "unknown"
    assert "no GPU reading came from: node-3" in answer.unknown[0].why


async def test_a_job_of_the_map_with_a_host_that_is_gone_is_not_healthy(tmp_path):
    series = [s for k in (1, 2) for s in node(FULL, gpus=2, host=f"node-{k}")]
    site = mapped(tmp_path, "jobs: {train-7: ['node-[1-3]']}")
    answer = await site.why("job/train-7", MemorySource(series), at=AT)
    assert answer.verdict == "unknown"
    assert "job/train-7 what no GPU reading came from: node-3" in answer.unknown[0].why


async def test_a_job_of_the_map_of_which_a_gpu_is_gone_is_not_healthy(tmp_path):
    site = mapped(tmp_path, "jobs: {train-7: ['node-[1-2]:0-3']}")
    series = [*node(FULL, gpus=4), *node(FULL, gpus=2, host="node-2")]
    answer = await site.why("job/train-7", MemorySource(series), at=AT)
    assert answer.verdict == "unknown"
    assert "node-2:2, node-2:3" in answer.unknown[0].why


async def test_two_braked_nodes_of_a_large_rack_are_not_the_rack(tmp_path):
    site = mapped(tmp_path, "{racks: {r1: ['node-[1-40]']}, jobs: {j: [node-1, node-2]}}")
    series = [s for k in (1, 2) for s in node(BRAKE, gpus=2, host=f"node-{k}")]
    answer = await site.why("job/j", MemorySource(series), at=AT)
    assert {d.entity.name for d in answer.diagnoses} == {"node-1", "node-2"}


async def test_a_rack_of_which_nothing_is_read_is_unknown(tmp_path):
    answer = await mapped(tmp_path, RACKS).why("rack/r8", MemorySource(node(FULL, gpus=2)), at=AT)
    assert answer.verdict == "unknown"
    assert "node-4, node-5" in answer.unknown[0].why


async def test_a_rack_that_no_map_has_is_told(tmp_path):
    source = MemorySource(node(FULL))
    with pytest.raises(UsageError, match="no rack 'r9'") as told_:
        await mapped(tmp_path, RACKS).why("rack/r9", source, at=AT)
    assert "it has r7, r8" in told_.value.hint or "did you mean" in told_.value.hint
    with pytest.raises(UsageError, match="no rack 'r9'") as told_:
        await engine().why("rack/r9", source, at=AT)
    assert "setting sitemap" in told_.value.hint


async def test_a_rack_asked_of_a_real_server(tmp_path):
    series = [
        *node(BRAKE, gpus=2),
        *node(BRAKE, gpus=2, host="node-2"),
        *node(FULL, gpus=2, host="node-3"),
        *node(BRAKE, gpus=2, host="node-4"),
    ]
    run = replace(STRAGGLER, series=series)
    load_openmetrics(openmetrics(run), tmp_path / "data")
    site = mapped(tmp_path, RACKS)
    with start_prometheus(tmp_path / "data") as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        answer = await site.why("rack/r7", source, at=AT)
        await source.aclose()
    from_memory = await site.why("rack/r7", MemorySource(series), at=AT)
    assert told(answer) == told(from_memory)
    assert answer.diagnoses[0].entity.name == "rack/r7"


async def test_a_map_that_is_gone_is_told(tmp_path):
    site = mapped(tmp_path, "racks: {}")
    (tmp_path / "sitemap.yaml").unlink()
    with pytest.raises(Exception, match="cannot be used"):
        await site.sweep(MemorySource(node(FULL)), at=AT)


async def test_what_the_map_says_twice_is_told_in_every_answer(tmp_path):
    site = mapped(tmp_path, "jobs: {a: [node-1], b: [node-1]}")
    source = MemorySource(node(FULL))
    for answer in (await site.why("node-1:0", source, at=AT), await site.sweep(source, at=AT)):
        assert any("node-1 stands in the jobs a and b" in w for w in answer.warnings)
