"""A sweep finds what is no GPU as well: services, jobs, ports, mounts, pods; one incident a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model import Incident, Sweep, to_json
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sources import FileSource, PrometheusConfig, PrometheusSource
from tests.support.memory import MemorySource
from tests.support.readings import engine
from tests.support.servers import load_openmetrics, start_prometheus

# Scenario, and the kind of entity that the incident is said of.
SICK = {
    "kv-cache-pressure-vllm": "service",
    "engine-cpu-bound": "service",
    "engine-imbalance-replicas": "service",
    "queue-saturation-tgi": "service",
    "checkpoint-stall": "job",
    "job-straggler-power-brake": "node",
    "nccl-socket-fallback": "job",
    "ib-link-errors": "node",
    "ib-link-down": "node",
    "job-waits-for-nfs": "node",
    "cpu-quota": "pod",
    "host-cpu-saturated": "node",
    "amd-pcie-slow-link": "gpu",
}
WELL = ("healthy-vllm-busy", "healthy-vllm-warm-start", "healthy-rebooted")
# One of each kind, asked of a real server too.
SERVED = (
    "engine-cpu-bound",
    "ib-link-errors",
    "job-straggler-power-brake",
    "cpu-quota",
    "job-waits-for-nfs",
)


async def sweep(name: str) -> Sweep:
    run = realise(SCENARIOS[name], Severity.CLEAR, 0)
    source = MemorySource(run.series, now=run.at)
    return await engine().sweep(source, at=run.at, window_s=run.scenario.window_s)


def right(found: Sweep, name: str) -> list[Incident]:
    causes = SCENARIOS[name].causes
    return [one for one in found.incidents if one.diagnosis.cause in causes]


@pytest.mark.parametrize(("name", "kind"), SICK.items())
async def test_an_operator_sees_the_root_cause_wherever_it_is(name: str, kind: str):
    found = await sweep(name)
    assert kind in {one.diagnosis.entity.kind.value for one in right(found, name)}
    keys = [(one.diagnosis.cause, one.diagnosis.entity.key) for one in found.incidents]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", WELL)
async def test_an_operator_is_not_bothered_by_what_is_well(name: str):
    found = await sweep(name)
    assert found.incidents == ()
    assert sum(found.checked.values()) > 0


async def test_services_and_jobs_that_were_looked_at_are_counted():
    assert (await sweep("healthy-vllm-busy")).checked["service"] >= 1
    assert (await sweep("regression")).checked["rank"] >= 1


async def test_those_who_wait_hang_beneath_the_cause_at_the_culprit():
    name = "job-straggler-power-brake"
    found = await sweep(name)
    assert len(found.incidents) == 1
    (brake,) = right(found, name)
    assert brake.diagnosis.effects
    assert len({member.host for member in brake.members}) > 1


@pytest.mark.parametrize("name", SERVED)
async def test_a_server_and_a_file_tell_the_same(name: str, tmp_path: Path):
    run = realise(SCENARIOS[name], Severity.CLEAR, 0)
    text = openmetrics(run)
    (tmp_path / "metrics.om").write_text(text, encoding="utf-8")
    load_openmetrics(text, tmp_path / "data")
    at, window_s = run.at, run.scenario.window_s
    file = FileSource([tmp_path / "metrics.om"])
    from_file = await engine().sweep(file, at=at, window_s=window_s)
    await file.aclose()
    with start_prometheus(tmp_path / "data") as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        from_server = await engine().sweep(source, at=at, window_s=window_s)
        await source.aclose()
    assert right(from_server, name)
    assert _comparable(from_file) == _comparable(from_server)


def _comparable(found: Sweep) -> dict[str, object]:
    out: dict[str, object] = to_json(found)
    del out["queries"], out["waves"]
    return out
