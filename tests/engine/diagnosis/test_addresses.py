"""node_exporter is scraped by an address that is not the host's name: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from engine.diagnosis import sweeppush
from engine.samples import RawSeries
from engine.simulate import Fleet
from engine.simulate.scenarios import Severity, openmetrics, realise
from engine.simulate.scenarios.machine_io import rdma
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.registry import SCENARIOS
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.memory import MemorySource
from tests.support.readings import engine, of_fleet
from tests.support.servers import load_openmetrics, start_prometheus

FLEET = Fleet(nodes=8, gpus=2, seed=4, workloads=("training",))
AT = FLEET.start + 3600.0
SICK = "node-5"

Name = Callable[[str], str]


def number(host: str) -> str:
    return host.removeprefix("node-")


WAYS: dict[str, tuple[Name, Name]] = {
    # Where node_exporter is scraped, and how the GPU exporter names the host.
    "by name": (lambda h: f"{h}:9100", lambda h: h),
    "by address": (lambda h: f"10.0.0.{number(h)}:9100", lambda h: h),
    "by the name with its domain": (lambda h: f"{h}.example.com:9100", lambda h: h),
    "GPUs with the domain": (lambda h: f"{h}:9100", lambda h: f"{h}.example.com"),
}


def fleet(way: str) -> list[RawSeries]:
    """Return busy nodes, one with a port that went down."""
    scraped, called = WAYS[way]
    ts = np.arange(AT - 900.0, AT + 1.0, 30.0)
    out = []
    for one in of_fleet(FLEET, AT - 960.0, AT):
        labels = dict(one.labels)
        if host := labels.get("Hostname"):
            labels |= {"Hostname": called(host), "instance": f"10.42.0.{number(host)}:9400"}
        out.append(replace(one, labels=labels))
    for host in FLEET.nodes:
        where = {"instance": scraped(host), "job": "node-exporter"}
        record = Recorder(np.random.default_rng(int(number(host))), ts, where)
        up = np.where(ts < AT - 400.0, 1.0, 0.0) if host == SICK else 1.0
        rdma(record, "mlx5_0", up=up)
        record.gauge("node_uname_info", 1.0, {"nodename": host})
        out += record.series
    return out


@pytest.mark.parametrize("way", WAYS)
async def test_a_port_is_found_however_its_host_is_scraped(way, tmp_path, monkeypatch):
    series, called = fleet(way), WAYS[way][1](SICK)
    expected = {("ib_link_down", called)}
    run = replace(realise(SCENARIOS["healthy-rebooted"], Severity.CLEAR, 0), series=series)
    load_openmetrics(openmetrics(run), tmp_path)
    with start_prometheus(tmp_path) as server:
        for fewest in (1_000_000, 2):  # all hosts fetched, then those that the server finds
            monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", fewest)
            source = PrometheusSource(PrometheusConfig(server.url))
            found = await engine().sweep(source, at=AT)
            assert {
                (i.diagnosis.cause, i.diagnosis.entity.name) for i in found.incidents
            } == expected
            await source.aclose()
        source = PrometheusSource(PrometheusConfig(server.url))
        answer = await engine().why(called, source, at=AT)
        await source.aclose()
    assert {(d.cause, d.entity.name) for d in answer.diagnoses} == expected
    swept = await engine().sweep(MemorySource(series), at=AT)
    assert {(i.diagnosis.cause, i.diagnosis.entity.name) for i in swept.incidents} == expected
