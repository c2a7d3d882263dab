"""Ports and mounts of a large fleet: the server says which hosts have a bad one, none is missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from engine.diagnosis import sweeppush
from engine.model import Sweep
from engine.samples import Floats, RawSeries
from engine.simulate import Fleet
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.machine import disk
from engine.simulate.scenarios.machine_io import filesystem, interface, nfs, rdma
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.readings import engine, of_fleet
from tests.support.servers import load_openmetrics, start_prometheus

NODES = 16
FLEET = Fleet(nodes=NODES, gpus=2, seed=4, workloads=("training",))
AT = FLEET.start + 3600.0
BEGAN = AT - 400.0
EXPORT = "10.20.0.9:/export/data"


def since(ts: Floats, before: float, now: float) -> Floats:
    return np.where(ts >= BEGAN, now, before)


@dataclass(frozen=True)
class Machine:
    """How ill a node's ports and mounts are since `BEGAN`; the default is well."""

    errors: float = 0.0
    up: float = 1.0
    rate: float = 5e10
    trip_s: float = 0.0012
    drive_s: float = 0.0002
    left: float = 0.5
    resent: float = 0.0

    def series(self, host: str) -> list[RawSeries]:
        """Return what its node_exporter says: three ports, an interface, a share, a drive."""
        ts = np.arange(AT - 1500.0, AT + 1.0, 30.0)
        rng = np.random.default_rng(int(host.removeprefix("node-")))
        record = Recorder(rng, ts, {"instance": f"{host}:9100", "job": "node-exporter"})
        rdma(record, "mlx5_0", counters={"symbol_error_total": since(ts, 0.0, self.errors)})
        rdma(record, "mlx5_1", up=since(ts, 1.0, self.up))
        rdma(record, "mlx5_2", rate=since(ts, 5e10, self.rate))
        interface(record)
        trip = since(ts, 0.0012, self.trip_s)
        nfs(record, EXPORT, reads=np.minimum(900.0, 8.0 / trip), read_rtt_s=trip,
            write_rtt_s=trip, resent=since(ts, 0.0, self.resent))  # fmt: skip
        filesystem(record, "/mnt/data", EXPORT, "nfs4", size=2e14, free=0.4)
        slow = since(ts, 0.0002, self.drive_s)
        reads = np.minimum(6000.0, 16.0 / slow)
        disk(record, "nvme1n1", reads=reads, read_s=slow, writes=reads * 0.1, write_s=slow)
        filesystem(record, "/scratch", "/dev/nvme1n1", "xfs", size=7e12, free=self.left)
        return record.series


SICK = {
    "node-2": ("ib_link_degraded", Machine(errors=2.0)),
    "node-5": ("ib_link_down", Machine(up=0.0)),
    "node-7": ("storage_slow", Machine(trip_s=0.2)),
    "node-9": ("storage_slow", Machine(drive_s=0.08)),
    "node-11": ("storage_full", Machine(left=0.001)),
    "node-13": ("ib_link_degraded", Machine(rate=1.25e10)),
}


def somehow(rng: np.random.Generator) -> Machine:
    """Return a machine on which everything may be a little, or much, or not ill."""
    return Machine(
        errors=float(rng.choice([0.0, 0.005, 0.05, 1.0])),
        up=float(rng.choice([1.0, 1.0, 1.0, 0.0])),
        rate=float(rng.choice([5e10, 5e10, 2.5e10])),
        trip_s=float(rng.choice([0.0012, 0.004, 0.015, 0.022, 0.05])),
        drive_s=float(rng.choice([0.0002, 0.0006, 0.004, 0.009, 0.012, 0.03])),
        left=float(rng.choice([0.5, 0.06, 0.04, 0.015, 0.001])),
        resent=float(rng.choice([0.0, 0.0, 0.015, 0.025, 0.1])),
    )


@contextmanager
def serving(folder: Path, machines: Mapping[str, Machine]) -> Iterator[str]:
    series = [*of_fleet(FLEET, AT - 960.0, AT)]
    for node in FLEET.nodes:
        series += machines.get(node, Machine()).series(node)
    run = replace(realise(SCENARIOS["healthy-rebooted"], Severity.CLEAR, 0), series=series)
    load_openmetrics(openmetrics(run), folder)
    with start_prometheus(folder) as server:
        yield server.url


async def swept(url: str, monkeypatch: pytest.MonkeyPatch, fewest: int) -> Sweep:
    monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", fewest)
    source = PrometheusSource(PrometheusConfig(url))
    try:
        return await engine().sweep(source, at=AT)
    finally:
        await source.aclose()


def found(sweep: Sweep) -> dict[tuple[str, str], str]:
    return {
        (i.diagnosis.entity.host or i.diagnosis.entity.name, i.diagnosis.cause): i.diagnosis.says
        for i in sweep.incidents
    }


async def test_every_bad_port_and_mount_is_found_and_no_other_host_is_fetched(
    tmp_path, monkeypatch
):
    with serving(tmp_path, {node: machine for node, (_, machine) in SICK.items()}) as url:
        full = await swept(url, monkeypatch, 1_000_000)
        pushed = await swept(url, monkeypatch, 2)
    assert set(found(full)) == {(node, cause) for node, (cause, _) in SICK.items()}
    assert found(pushed) == found(full)
    assert pushed.verdicts == full.verdicts
    assert not pushed.warnings
    # The sick ones, and one that stands for what all hosts lack.
    assert pushed.checked["filesystem"] <= full.checked["filesystem"] * (len(SICK) + 2) / NODES


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_only_a_little_ill_is_found_alike(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    machines = {node: somehow(rng) for node in FLEET.nodes if rng.random() < 0.7}
    with serving(tmp_path, machines) as url:
        full = await swept(url, monkeypatch, 1_000_000)
        pushed = await swept(url, monkeypatch, 2)
    assert found(full)
    assert found(pushed) == found(full)
