"""Sweep: every GPU judged, grouped by root cause, and silence never taken for health."""

from __future__ import annotations

import pytest

from engine.model import Severity
from engine.samples import Matcher
from engine.sources import FileSource
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, IDLE, engine, gpu, incidents, node, up

BRAKE = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}
NARROW = {**FULL, "DCGM_FI_DEV_PCIE_LINK_WIDTH": 8}


async def sweep(series, where=()):
    return await engine().sweep(MemorySource(series), at=AT, where=where)


def one_sick(values, index, host):
    return gpu(values, index=index, host=host) + [
        s for s in node(FULL, host=host) if s.labels["gpu"] != str(index)
    ]


async def test_a_fault_of_a_node_is_one_incident_with_eight_members():
    found = await sweep(node(BRAKE) + node(FULL, host="node-2"))
    assert incidents(found) == {("power_brake", "node-1"): [f"node-1:{k}" for k in range(8)]}
    assert found.checked == {"gpu": 16, "node": 2}
    assert found.verdicts == {"degraded": 8, "healthy": 8, "idle": 0, "unknown": 0}


async def test_the_same_fault_of_two_gpus_is_two_incidents():
    found = await sweep(one_sick(NARROW, 1, "node-1") + one_sick(NARROW, 5, "node-2"))
    assert incidents(found) == {
        ("pcie_degraded", "node-1:1"): ["node-1:1"],
        ("pcie_degraded", "node-2:5"): ["node-2:5"],
    }


async def test_worst_first():
    found = await sweep(one_sick(NARROW, 1, "node-1") + node(BRAKE, host="node-2"))
    assert [i.diagnosis.severity for i in found.incidents] == [Severity.CRITICAL, Severity.HIGH]
    assert [i.diagnosis.cause for i in found.incidents] == ["power_brake", "pcie_degraded"]


async def test_a_selector_narrows_it():
    everything = node(BRAKE) + one_sick(NARROW, 5, "node-2")
    found = await sweep(everything, (Matcher("Hostname", "=", "node-2"),))
    assert found.checked == {"gpu": 8, "node": 1}
    assert list(incidents(found)) == [("pcie_degraded", "node-2:5")]


async def test_more_hosts_than_one_request_takes():
    series = [s for k in range(40) for s in gpu(IDLE, host=f"node-{k}")]
    source = MemorySource(series + one_sick(NARROW, 5, "zulu"))
    found = await engine().sweep(source, at=AT)
    assert found.checked == {"gpu": 48, "node": 41}
    assert list(incidents(found)) == [("pcie_degraded", "zulu:5")]
    assert found.waves == 1 + len(source.asked)


async def test_an_empty_source_checks_nothing():
    found = await sweep([])
    assert found.checked == {"gpu": 0, "node": 0}
    assert found.incidents == ()


# --- silence


async def test_a_gpu_that_went_hours_ago_is_found():
    lost = gpu(FULL, index=3, shift_s=-7200)
    found = await sweep(lost + [s for s in node(FULL) if s.labels["gpu"] != "3"])
    assert incidents(found) == {("gpu_off_bus", "node-1:3"): ["node-1:3"]}
    assert found.checked["gpu"] == 8


async def test_a_gpu_that_went_hours_ago_is_found_in_a_file(tmp_path):
    file = tmp_path / "metrics.prom"
    lines = []
    lost = gpu(FULL, index=3, shift_s=-7200)
    for one in lost + [s for s in node(FULL, gpus=5) if s.labels["gpu"] != "3"]:
        labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items())
        for t, v in zip(one.ts.tolist(), one.values.tolist(), strict=True):
            lines.append(f"{one.name}{{{labels}}} {v} {int(t * 1000)}\n")
    file.write_text("".join(lines))
    found = await engine().sweep(FileSource([file]))
    assert incidents(found) == {("gpu_off_bus", "node-1:3"): ["node-1:3"]}


async def test_a_host_that_went_hours_ago_is_unknown_not_forgotten():
    lost = [s for k in range(8) for s in gpu(FULL, index=k, shift_s=-7200)]
    found = await sweep(lost + node(FULL, host="node-2"))
    assert found.incidents == ()
    assert found.verdicts == {"degraded": 0, "healthy": 8, "idle": 0, "unknown": 8}
    assert [e.name for e in found.unseen] == [f"node-1:{k}" for k in range(8)]
    assert "stale_data" in {u.cause for u in found.unknown}


@pytest.mark.parametrize("ago_s", [180, 480, 7200])
async def test_a_dead_exporter_is_named(ago_s):
    lost = [s for k in range(8) for s in gpu(FULL, index=k, shift_s=-ago_s)]
    found = await sweep([*lost, up(0), *node(FULL, host="node-2"), up(1, host="node-2")])
    assert found.verdicts["unknown"] == 8
    assert found.unknown[0].cause == "exporter_down"


async def test_a_replaced_board_is_not_missed():
    old = gpu(NARROW, index=3, uuid="GPU-old", shift_s=-7200)
    found = await sweep(old + node(FULL))
    assert found.incidents == ()
    assert found.checked["gpu"] == 8


async def test_a_host_whose_label_changed_during_the_day_is_there_once():
    """dcgm-exporter 4.8.3 writes hostname where 4.8.2 wrote Hostname."""
    before = [s for k in range(8) for s in gpu(FULL, index=k, shift_s=-7200)]
    after = node(FULL)
    for one in after:
        one.labels["hostname"] = one.labels.pop("Hostname")
    found = await sweep(before + after)
    assert found.incidents == ()
    assert found.checked == {"gpu": 8, "node": 1}
    assert found.verdicts["healthy"] == 8


async def test_a_server_that_goes_away_half_way_leaves_what_was_judged(monkeypatch):
    from engine.diagnosis import sweepgroups as module
    from engine.errors import SourceError

    monkeypatch.setattr(module, "HOSTS_PER_REQUEST", 1)
    source = MemorySource([s for k in (1, 2) for s in gpu(FULL, host=f"node-{k}")])
    answer = source.select

    async def failing(selections, *, at):
        if len(source.asked) >= 1:
            raise SourceError("http://prometheus:9090 refuses the connection")
        return await answer(selections, at=at)

    monkeypatch.setattr(source, "select", failing)
    found = await engine().sweep(source)
    assert found.checked["gpu"] == 1
    assert [e.name for e in found.unseen] == ["node-2"]
    assert found.warnings == ("http://prometheus:9090 refuses the connection",)


async def test_hosts_whose_readings_do_not_come_are_named(monkeypatch):
    """A wave is several requests; when the large one breaks off, the small ones may not."""
    from engine.diagnosis import sweepgroups as module

    monkeypatch.setattr(module, "HOSTS_PER_REQUEST", 1)
    source = MemorySource([s for k in (1, 2) for s in gpu(FULL, host=f"node-{k}")])
    answer = source.select

    async def broken(selections, *, at):
        batch = await answer(selections, at=at)
        batch.series[:] = [s for s in batch.series if s.labels.get("Hostname") != "node-2"]
        return batch

    monkeypatch.setattr(source, "select", broken)
    found = await engine().sweep(source)
    assert found.checked == {"gpu": 1, "node": 1}
    assert [e.name for e in found.unseen] == ["node-2"]


async def test_what_one_host_lacks_is_said_of_that_host():
    bare = {k: v for k, v in FULL.items() if "CLOCKS_EVENT" not in k}
    found = await sweep(node(FULL) + node(bare, host="node-2"))
    why = {u.needs: u.why for u in found.unknown}
    assert why["throttle_reasons"] == "not exported on some hosts, such as node-2"
    found = await sweep(node(bare) + node(bare, host="node-2"))
    why = {u.needs: u.why for u in found.unknown}
    assert why["throttle_reasons"] == "not exported"


async def test_a_uuid_on_two_hosts_hides_no_fault():
    same = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
    found = await sweep(gpu(NARROW, uuid=same) + gpu(FULL, host="node-2", uuid=same))
    assert incidents(found) == {("pcie_degraded", "node-1:0"): ["node-1:0"]}
    assert found.checked == {"gpu": 2, "node": 2}
    (warning,) = found.warnings
    assert warning.startswith(f"{same} reports from node-1:0 and node-2:0 at the same time")


async def test_a_uuid_on_two_hosts_that_are_fetched_apart_is_told():
    same = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
    others = [s for k in range(2, 40) for s in gpu(FULL, host=f"node-{k:02}")]
    found = await sweep(
        others + gpu(NARROW, host="node-01", uuid=same) + gpu(FULL, host="node-99", uuid=same)
    )
    assert incidents(found) == {("pcie_degraded", "node-01:0"): ["node-01:0"]}
    (warning,) = found.warnings
    assert warning.startswith(f"{same} reports from node-01:0 and node-99:0 at the same time")
