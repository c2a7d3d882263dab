"""Rails: a port compared with the same port of like hosts, and a switch that many ports share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.diagnosis import sweeppush
from engine.diagnosis.whynot import why_not
from engine.diagnosis.whynotmodel import Outcome
from engine.model import Kind, Sweep
from engine.samples import RawSeries
from engine.signals.labels import locate
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.machine_io import HDR, NDR, rdma
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, H100, engine, gpu
from tests.support.servers import load_openmetrics, start_prometheus

HOSTS = tuple(f"node-{k}" for k in range(1, 9))
H200 = "NVIDIA H200"
TS = np.arange(AT - 1500.0, AT + 1.0, 30.0)

# Per host and device what differs from a port that is well.
Ill = Mapping[str, Mapping[str, Mapping[str, object]]]


def fleet(
    ill: Ill, *, hosts: tuple[str, ...] = HOSTS, ports: int = 2, others: tuple[str, ...] = ()
) -> list[RawSeries]:
    """Return busy nodes with two GPUs and some RDMA ports each, the sick ones as told.

    ``others`` are the hosts with GPUs of another model.
    """
    series = [
        s
        for host in hosts
        for k in range(2)
        for s in gpu(FULL, host=host, index=k, model=H200 if host in others else H100)
    ]
    for host in hosts:
        rng = np.random.default_rng(int(host.removeprefix("node-")))
        record = Recorder(rng, TS, {"instance": f"{host}:9100", "job": "node-exporter"})
        for k in range(ports):
            rdma(record, f"mlx5_{k}", **ill.get(host, {}).get(f"mlx5_{k}", {}))  # type: ignore[arg-type]
        series += record.series
    return series


def fallen(ago_s: float) -> np.ndarray:
    """Return the state of a port that went down so long ago."""
    return np.where(AT - ago_s > TS, 1.0, 0.0)


async def sweep(series: list[RawSeries]) -> Sweep:
    return await engine().sweep(MemorySource(series), at=AT)


def told(found: Sweep) -> dict[tuple[str, str], str]:
    return {(i.diagnosis.cause, i.diagnosis.entity.name): i.diagnosis.says for i in found.incidents}


HALF = {f"mlx5_{k}": {"rate": NDR / 2} for k in range(2)}


async def test_a_host_whose_ports_all_came_up_at_half_rate_differs_from_its_rails():
    found = await sweep(fleet({"node-4": HALF}))
    assert set(told(found)) == {("ib_link_degraded", "node-4")}
    (incident,) = found.incidents
    assert incident.diagnosis.confidence == "likely"
    says = " ".join(e.says for e in incident.diagnosis.evidence)
    assert "the same ports of hosts with the same GPUs" in says


async def test_a_host_with_one_port_is_compared_too():
    found = await sweep(fleet({"node-4": {"mlx5_0": {"rate": NDR / 4}}}, ports=1))
    assert set(told(found)) == {("ib_link_degraded", "node-4")}


async def test_hosts_with_other_gpus_and_slower_adapters_are_no_fault():
    slow = {host: {f"mlx5_{k}": {"rate": HDR} for k in range(2)} for host in HOSTS[5:]}
    assert told(await sweep(fleet(slow, others=HOSTS[5:]))) == {}
    assert set(told(await sweep(fleet(slow)))) == {("ib_link_degraded", h) for h in HOSTS[5:]}


async def test_two_hosts_alone_are_not_compared():
    assert told(await sweep(fleet({"node-2": HALF}, hosts=HOSTS[:2]))) == {}


async def test_a_port_that_this_host_does_not_use_is_slower_on_purpose():
    idle = {"mlx5_1": {"rate": NDR / 4, "traffic": 1e5}}
    assert told(await sweep(fleet({"node-3": idle}))) == {}


DOWN = {"mlx5_1": {"up": fallen(400.0)}}


async def test_a_leaf_switch_that_fails_is_one_incident():
    found = await sweep(fleet(dict.fromkeys(HOSTS[:5], DOWN)))
    (incident,) = found.incidents
    diagnosis = incident.diagnosis
    assert (diagnosis.cause, diagnosis.entity.name) == ("ib_link_down", "fabric/mlx5_1/1")
    assert diagnosis.entity.kind is Kind.FABRIC
    assert "5 hosts have it, all at port mlx5_1/1" in diagnosis.says
    assert diagnosis.next[0].command == "ssh node-1 smpquery -C mlx5_1 -P 1 -D nodedesc 0,1"
    assert {m.host for m in incident.members} >= set(HOSTS[:5])


async def test_cables_that_fail_at_different_ports_stay_apart():
    ill = {
        "node-1": {"mlx5_0": {"up": fallen(400.0)}},
        "node-2": {"mlx5_1": {"up": fallen(500.0)}},
        "node-3": {"mlx5_2": {"up": fallen(600.0)}},
    }
    found = await sweep(fleet(ill, ports=3))
    assert set(told(found)) == {("ib_link_down", f"node-{k}") for k in (1, 2, 3)}


async def test_a_whole_host_that_lost_its_ports_is_not_part_of_the_rail():
    ill = {
        **dict.fromkeys(HOSTS[:4], DOWN),
        "node-6": {f"mlx5_{k}": DOWN["mlx5_1"] for k in (0, 1)},
    }
    found = await sweep(fleet(ill))
    assert set(told(found)) == {("ib_link_down", "fabric/mlx5_1/1"), ("ib_link_down", "node-6")}


async def test_congestion_says_at_which_ports_it_was_seen():
    lost = {"packet_sequence_errors_total": 4000.0, "duplicate_requests_packets_total": 3000.0}
    busy = {"mlx5_0": {"counters": lost}}
    found = await sweep(fleet(dict.fromkeys(HOSTS[:4], busy)))
    says = told(found)["network_congestion", "fabric"]
    assert "Seen at 4 ports of 4 hosts" in says
    assert "most at port mlx5_0/1: look at the leaf switch of that rail first" in says


@pytest.mark.parametrize("fewest", [1_000_000, 2], ids=["in full", "pushed down"])
async def test_a_server_finds_the_same_however_it_is_asked(tmp_path, monkeypatch, fewest):
    hosts = tuple(f"node-{k}" for k in range(1, 41))
    ill = {"node-4": HALF, "node-33": HALF, **dict.fromkeys(HOSTS[4:8], DOWN)}
    series = fleet(ill, hosts=hosts)
    expected = told(await sweep(series))
    assert len(expected) == 3
    assert await _served(tmp_path, series, monkeypatch, fewest) == expected


async def _served(
    folder: Path, series: list[RawSeries], monkeypatch: pytest.MonkeyPatch, fewest: int
) -> dict[tuple[str, str], str]:
    monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", fewest)
    run = replace(realise(SCENARIOS["healthy-rebooted"], Severity.CLEAR, 0), series=series)
    load_openmetrics(openmetrics(run), folder)
    with start_prometheus(folder) as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        try:
            return told(await engine().sweep(source, at=AT))
        finally:
            await source.aclose()


def job_of_four(straggler: bool) -> tuple[list[RawSeries], str]:
    """Return a job over four hosts, one with a bad link, and the host that has it.

    With a straggler the bad link is at a host on which no GPU is slow.
    """
    name = "job-straggler" if straggler else "communication-bound"
    run = realise(SCENARIOS[name], Severity.SEVERE, 0)
    hosts = sorted({h for s in run.series if "gpu" in s.labels and (h := locate(s.labels).host)})
    slow = (run.scenario.culprit or "").partition(":")[0]
    bad = next(host for host in hosts if host != slow)
    ts = np.arange(run.at - 1500.0, run.at + 1.0, 30.0)
    record = Recorder(np.random.default_rng(3), ts, {"instance": f"{bad}:9100", "job": "node"})
    errors = np.where(ts < run.at - 500.0, 0.0, 5.0)
    rdma(record, "mlx5_9", counters={"symbol_error_total": errors})
    return [*run.series, *record.series], bad


def effects(found: Sweep, host: str) -> set[str]:
    one = next(i for i in found.incidents if i.diagnosis.entity.host == host)
    return {e.cause for e in one.diagnosis.effects}


async def test_a_bad_link_of_one_host_stands_above_the_communication_of_its_job():
    series, bad = job_of_four(straggler=False)
    found = await engine().sweep(MemorySource(series), at=realised("communication-bound"))
    assert {i.diagnosis.cause for i in found.incidents} == {"ib_link_degraded"}
    assert effects(found, bad) == {"communication_bound"}


async def test_a_bad_link_is_not_blamed_for_a_gpu_that_is_slow_at_another_host():
    series, bad = job_of_four(straggler=True)
    found = await engine().sweep(MemorySource(series), at=realised("job-straggler"))
    assert {i.diagnosis.cause for i in found.incidents} >= {"ib_link_degraded", "straggler"}
    assert "straggler" not in effects(found, bad)


def realised(name: str) -> float:
    return realise(SCENARIOS[name], Severity.SEVERE, 0).at


async def test_who_asks_about_a_gpu_that_waits_is_told_of_the_link_at_another_host():
    series, bad = job_of_four(straggler=False)
    at = realised("communication-bound")
    gpus = sorted({locate(s.labels).host or "" for s in series if "gpu" in s.labels} - {bad})
    answer = await engine().why(f"{gpus[0]}:0", MemorySource(series), at=at)
    link = next(d for d in answer.diagnoses if d.cause == "ib_link_degraded")
    assert link.entity.host == bad
    assert f"for which {gpus[0]}:0 works and waits" in link.says
    assert {e.entity.name for e in link.evidence} == {f"{bad} mlx5_9/1", f"{gpus[0]}:0"}
    assert answer.verdict == "degraded"


async def test_a_gpu_that_works_at_full_power_is_not_told_of_links_elsewhere():
    hosts = ("node-1", "node-2")
    full = {**FULL, "DCGM_FI_DEV_POWER_USAGE": 690}
    series = [s for host in hosts for s in gpu(full, host=host, index=0, hpc_job="7")]
    record = Recorder(np.random.default_rng(3), TS, {"instance": "node-2:9100", "job": "node"})
    rdma(record, "mlx5_0", counters={"symbol_error_total": np.where(TS < AT - 500.0, 0.0, 5.0)})
    answer = await engine().why("node-1:0", MemorySource([*series, *record.series]), at=AT)
    assert (answer.verdict, answer.diagnoses) == ("healthy", ())


@pytest.mark.parametrize("target", ["node-3", "node-3:5", "node-1:2", "job/51234", "fleet"])
async def test_a_slow_host_is_found_whoever_of_its_job_is_asked_about(target):
    run = realise(SCENARIOS["ib-slow-host"], Severity.CLEAR, 0)
    answer = await engine().why(target, MemorySource(run.series, now=run.at), at=run.at)
    assert [d.cause for d in answer.diagnoses] == ["ib_link_degraded"]
    assert answer.diagnoses[0].entity.name == "node-3"


@pytest.mark.parametrize("served", [False, True], ids=["file", "server"])
async def test_a_host_that_a_sweep_finds_by_its_rail_is_found_when_it_is_asked_about(
    served, tmp_path, monkeypatch
):
    series = fleet({"node-4": HALF})
    (swept,) = (await sweep(series)).incidents
    if served:
        run = replace(realise(SCENARIOS["healthy-rebooted"], Severity.CLEAR, 0), series=series)
        load_openmetrics(openmetrics(run), tmp_path)
        with start_prometheus(tmp_path) as server:
            source = PrometheusSource(PrometheusConfig(server.url))
            answer = await engine().why("node-4", source, at=AT)
            well = await engine().why("node-5", source, at=AT)
            await source.aclose()
    else:
        answer = await engine().why("node-4", MemorySource(series), at=AT)
        well = await engine().why("node-5", MemorySource(series), at=AT)
    assert [d.says for d in answer.diagnoses] == [swept.diagnosis.says]
    assert {m.host for m in answer.members} == {"node-4"}
    assert well.verdict == "healthy"


async def test_why_a_rule_about_rails_did_not_fire_sees_the_rail():
    found = await why_not(
        engine(), "port_rate_below_rail", "node-5", MemorySource(fleet({})), at=AT
    )
    assert found.outcome is Outcome.QUIET
    assert "below 3" not in found.checks[0].says


async def test_cables_of_hosts_with_one_port_each_are_no_rail():
    ill = {f"node-{k}": {"mlx5_0": {"up": fallen(400.0)}} for k in (1, 3, 5)}
    assert set(told(await sweep(fleet(ill, ports=1)))) == {
        ("ib_link_down", f"node-{k}") for k in (1, 3, 5)
    }


async def test_cables_that_fail_at_different_times_are_no_rail():
    ill = {f"node-{k}": {"mlx5_1": {"up": fallen(200.0 * k)}} for k in (1, 2, 3, 4)}
    assert {name for _, name in told(await sweep(fleet(ill)))} == {
        f"node-{k}" for k in (1, 2, 3, 4)
    }


async def test_a_leaf_switch_is_found_among_cables_that_failed_elsewhere():
    ill = {
        **dict.fromkeys(HOSTS[:4], DOWN),
        "node-6": {"mlx5_0": {"up": fallen(700.0)}},
        "node-7": {"mlx5_2": {"up": fallen(500.0)}},
    }
    found = told(await sweep(fleet(ill, ports=3)))
    assert {name for _, name in found} == {"fabric/mlx5_1/1", "node-6", "node-7"}


async def test_a_bad_link_of_a_host_of_the_same_name_in_another_cluster_is_not_blamed():
    spins = {**FULL, "DCGM_FI_DEV_POWER_USAGE": 300}
    series = []
    for number, cluster in enumerate("xy"):
        for host in ("node-1", "node-2"):
            uuid = f"GPU-{number}{host[-1]}000000-0000-4000-8000-000000000000"
            series += gpu(spins, host=host, cluster=cluster, hpc_job=f"job-{cluster}", uuid=uuid)
        where = {"instance": "node-2:9100", "job": "node-exporter", "cluster": cluster}
        record = Recorder(np.random.default_rng(3), TS, where)
        errors = np.where(TS < AT - 500.0, 0.0, 5.0) if cluster == "y" else 0.0
        rdma(record, "mlx5_0", counters={"symbol_error_total": errors})
        series += record.series
    well = await engine().why("x::node-1:0", MemorySource(series), at=AT)
    ill = await engine().why("y::node-1:0", MemorySource(series), at=AT)
    assert well.diagnoses == ()
    assert [d.cause for d in ill.diagnoses] == ["ib_link_degraded"]
    host = await engine().why("x::node-2", MemorySource(series), at=AT)
    assert host.diagnoses == ()


async def test_a_gpu_that_its_own_memory_bounds_is_not_told_of_links():
    decodes = {
        **FULL,
        "DCGM_FI_DEV_POWER_USAGE": 300,
        "DCGM_FI_PROF_DRAM_ACTIVE": 0.85,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.1,
    }
    series = [s for host in HOSTS[:2] for s in gpu(decodes, host=host, hpc_job="vllm")]
    record = Recorder(np.random.default_rng(3), TS, {"instance": "node-2:9100", "job": "node"})
    rdma(record, "mlx5_0", counters={"symbol_error_total": np.where(TS < AT - 500.0, 0.0, 5.0)})
    answer = await engine().why("node-1:0", MemorySource([*series, *record.series]), at=AT)
    assert (answer.verdict, answer.diagnoses) == ("healthy", ())


async def test_many_slow_hosts_do_not_outvote_their_rail_on_a_server(tmp_path, monkeypatch):
    hosts = tuple(f"node-{k}" for k in range(1, 101))
    slow = sorted(hosts)[:42]
    series = fleet(dict.fromkeys(slow, HALF), hosts=hosts)
    expected = {("ib_link_degraded", host) for host in slow}
    assert set(told(await sweep(series))) == expected
    assert set(await _served(tmp_path, series, monkeypatch, 2)) == expected
