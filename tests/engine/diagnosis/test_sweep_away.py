"""What no host of a GPU brings along in a sweep: pods of quiet hosts, targets of Lustre servers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.diagnosis import sweeppush
from engine.model import Sweep
from engine.samples import RawSeries
from engine.simulate import Fleet
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.hosts import container
from engine.simulate.scenarios.registry import SCENARIOS
from engine.simulate.scenarios.shapes import series
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.memory import MemorySource
from tests.support.readings import engine, of_fleet
from tests.support.servers import load_openmetrics, start_prometheus

FLEET = Fleet(nodes=8, gpus=2, seed=4, workloads=("training",))
AT = FLEET.start + 3600.0
THROTTLED = {"worker-3": 0.7, "worker-6": 0.9, "frontend": 0.9}


def labels_of(pod: str, node: str, renamed: bool) -> dict[str, str]:
    """Return cAdvisor's labels, as Prometheus keeps them or as it renames them."""
    if renamed:
        own = {
            "exported_pod": pod,
            "exported_namespace": "ml",
            "pod": "kubelet",
            "namespace": "kube",
        }
    else:
        own = {"pod": pod, "namespace": "ml"}
    return {**own, "container": "main", "node": node, "instance": f"{node}:10250"}


def fleet(renamed: bool) -> list[RawSeries]:
    """Return busy nodes whose GPUs work for pods, some of which their CPU quota stops."""
    rng, ts = np.random.default_rng(0), np.arange(AT - 900.0, AT + 1.0, 30.0)
    out = []
    for one in of_fleet(FLEET, AT - 960.0, AT):
        host = one.labels.get("Hostname", "")
        pod = host.replace("node", "worker")
        more = {"exported_pod": pod, "exported_namespace": "ml"} if host else {}
        out.append(replace(one, labels={**one.labels, **more}))
    for host in FLEET.nodes:
        pod = host.replace("node", "worker")
        out += container(rng, labels_of(pod, host, renamed), ts, quota_cpus=16.0, used=0.95,
                         throttled=THROTTLED.get(pod, 0.0))  # fmt: skip
    # A pod without a GPU: no business of a sweep over GPUs.
    out += container(rng, labels_of("frontend", "node-9", renamed), ts, quota_cpus=2.0, used=0.95,
                     throttled=0.9)  # fmt: skip
    return out


def lustre(left: float) -> list[RawSeries]:
    """Return what a Lustre server says of two targets, of which the second is so full."""
    out = []
    ts = np.arange(AT - 900.0, AT + 1.0, 30.0)
    for k, share in enumerate((0.5, left)):
        where = {"instance": "oss-1:32221", "component": "ost", "target": f"scratch-OST000{k}"}
        out.append(series("lustre_capacity_kilobytes", where, ts, 1e11))
        out.append(series("lustre_available_kilobytes", where, ts, 1e11 * share))
    return out


def told(found: Sweep) -> set[tuple[str, str]]:
    return {(i.diagnosis.cause, i.diagnosis.entity.name) for i in found.incidents}


async def served(
    folder: Path, series_: list[RawSeries], monkeypatch: pytest.MonkeyPatch, fewest: int
) -> Sweep:
    monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", fewest)
    run = replace(realise(SCENARIOS["healthy-rebooted"], Severity.CLEAR, 0), series=series_)
    load_openmetrics(openmetrics(run), folder)
    with start_prometheus(folder) as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        try:
            return await engine().sweep(source, at=AT)
        finally:
            await source.aclose()


STOPPED = {("cpu_quota_throttled", "pod/ml/worker-3"), ("cpu_quota_throttled", "pod/ml/worker-6")}


@pytest.mark.parametrize("renamed", [False, True], ids=["honoured", "renamed"])
async def test_a_stopped_pod_of_a_gpu_is_found_on_a_host_that_is_well(
    tmp_path, monkeypatch, renamed
):
    everything = fleet(renamed)
    from_file = await engine().sweep(MemorySource(everything), at=AT)
    pushed = await served(tmp_path, everything, monkeypatch, 2)
    assert told(from_file) == told(pushed) == STOPPED
    assert pushed.verdicts == from_file.verdicts
    # The two that are stopped, and that of the host that stands for what all lack.
    assert pushed.checked["pod"] <= 3


@pytest.mark.parametrize("fewest", [1_000_000, 2], ids=["in full", "pushed down"])
async def test_a_full_target_of_a_lustre_server_is_found(tmp_path, monkeypatch, fewest):
    everything = [*fleet(renamed=False), *lustre(0.001)]
    full = ("storage_full", "fs/scratch")
    assert full in told(await engine().sweep(MemorySource(everything), at=AT))
    assert told(await served(tmp_path, everything, monkeypatch, fewest)) == {*STOPPED, full}


async def test_servers_of_storage_alone_can_be_swept(tmp_path, monkeypatch):
    found = await served(tmp_path, lustre(0.001), monkeypatch, 2)
    assert told(found) == {("storage_full", "fs/scratch")}
    assert found.checked["filesystem"] == 2
    well = await served(tmp_path / "well", lustre(0.4), monkeypatch, 2)
    assert told(well) == set()
