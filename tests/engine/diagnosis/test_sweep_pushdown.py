"""A sweep that the server preselects finds what a sweep of everything finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.diagnosis import sweep as sweeping
from engine.diagnosis import sweeppush
from engine.diagnosis.sweeppush import Picked
from engine.model import Sweep
from engine.simulate import Fleet
from engine.sources import PrometheusConfig, PrometheusSource
from tests.support.randomfleets import random_fleet
from tests.support.readings import engine
from tests.support.servers import (
    Server,
    import_openmetrics,
    load_openmetrics,
    start_prometheus,
    start_victoriametrics,
)

WINDOW_S = 900.0
STEP_S = 60.0


@dataclass
class Both:
    """The same fleet swept twice: everything fetched, and preselected."""

    full: Sweep
    pushed: Sweep
    picked: list[Picked] = field(default_factory=list)


@contextmanager
def prometheus(folder: Path, fleet: Fleet, at: float, *args: str) -> Iterator[Server]:
    load_openmetrics("".join(fleet.openmetrics(at - WINDOW_S, at, STEP_S)), folder)
    with start_prometheus(folder, extra_args=args) as server:
        yield server


@contextmanager
def victoria(folder: Path, fleet: Fleet, at: float, *args: str) -> Iterator[Server]:
    with start_victoriametrics(folder, extra_args=args) as server:
        import_openmetrics(server, "".join(fleet.openmetrics(at - WINDOW_S, at, STEP_S)))
        yield server


async def swept_twice(server: Server, at: float, monkeypatch: pytest.MonkeyPatch) -> Both:
    picked: list[Picked] = []

    async def noted(*args: object, **named: object) -> Picked:
        found = await sweeppush.pick(*args, **named)
        picked.append(found)
        return found

    monkeypatch.setattr(sweeping, "pick", noted)
    source = PrometheusSource(PrometheusConfig(server.url))
    try:
        monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", 1_000_000)
        full = await engine().sweep(source, at=at)
        monkeypatch.setattr(sweeppush, "FEWEST_HOSTS", 2)
        pushed = await engine().sweep(source, at=at)
    finally:
        await source.aclose()
    return Both(full, pushed, picked)


def found(sweep: Sweep) -> dict[tuple[str, str], list[str]]:
    return {
        (i.diagnosis.cause, i.diagnosis.entity.name): sorted(m.name for m in i.members)
        for i in sweep.incidents
    }


def agree(both: Both) -> None:
    assert found(both.pushed) == found(both.full)
    assert both.pushed.verdicts == both.full.verdicts
    assert both.pushed.checked == both.full.checked
    assert {e.name for e in both.pushed.unseen} == {e.name for e in both.full.unseen}


@pytest.mark.parametrize("seed", range(8))
async def test_prometheus_preselects_all_that_is_found(tmp_path, monkeypatch, seed):
    fleet, at = random_fleet(seed)
    with prometheus(tmp_path, fleet, at) as server:
        both = await swept_twice(server, at, monkeypatch)
    agree(both)
    assert not any("failed" in warning for warning in both.pushed.warnings)


async def test_most_of_a_fleet_with_one_kind_of_exporter_is_settled(tmp_path, monkeypatch):
    """With faults and everything else going on, the server has work taken off."""
    fleet, at = random_fleet(3)
    with prometheus(tmp_path, fleet, at) as server:
        both = await swept_twice(server, at, monkeypatch)
    (picked,) = both.picked
    assert len(picked.judge) <= len(fleet.nodes) / 2
    assert picked.healthy + picked.idle >= len(fleet.gpus) / 2


@pytest.mark.parametrize("seed", [20, 21, 22])
async def test_victoriametrics_preselects_all_that_is_found(tmp_path, monkeypatch, seed):
    fleet, at = random_fleet(seed)
    with victoria(tmp_path, fleet, at) as server:
        both = await swept_twice(server, at, monkeypatch)
    agree(both)
    assert not any("failed" in warning for warning in both.pushed.warnings)


@pytest.mark.parametrize("serve", [prometheus, victoria])
async def test_a_healthy_fleet_is_settled_by_the_server(tmp_path, monkeypatch, serve: Callable):
    fleet = Fleet(nodes=12, gpus=4, seed=5, workloads=("training", "idle"))
    at = fleet.start + 3600.0
    with serve(tmp_path, fleet, at) as server:
        both = await swept_twice(server, at, monkeypatch)
    agree(both)
    (picked,) = both.picked
    # One node of each kind of exporter is looked at, to see what is not exported: those of idle
    # GPUs have no clock events to count.
    assert len(picked.judge) == 2
    assert (picked.healthy, picked.idle) == (20, 20)
    assert {u.needs for u in both.pushed.unknown} == {u.needs for u in both.full.unknown}


async def test_a_server_with_a_cap_on_samples_still_tells_what_it_can(tmp_path, monkeypatch):
    fleet, at = random_fleet(30, nodes=12)
    with prometheus(tmp_path, fleet, at, "--query.max-samples=3000") as server:
        both = await swept_twice(server, at, monkeypatch)
    agree(both)
    assert any("queries failed" in w or "fetched all" in w for w in both.pushed.warnings)
