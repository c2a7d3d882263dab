"""A board in two places."""

from __future__ import annotations

import numpy as np
import pytest

from engine.samples import Batch, RawSeries
from engine.signals.normalise import Readings, build_frame
from tests.support.readings import AT, catalogue

UUID = "GPU-aaaaaaaa-0000-4000-8000-000000000001"


def one(
    name: str, value: float, *, first: float = 900, last: float = 0, **labels: str
) -> RawSeries:
    ts = np.arange(AT - first, AT - last + 1, 15.0)
    own = {"UUID": UUID, "gpu": "0", "Hostname": "node-1", "instance": "node-1:9400", **labels}
    return RawSeries(name, own, ts, np.full(ts.size, value))


def read(*series: RawSeries) -> Readings:
    return build_frame(Batch(list(series), AT, 1), catalogue(), at=AT, window_s=900.0)


def test_a_board_that_moved_is_where_it_was_seen_last():
    old = one("DCGM_FI_DEV_POWER_USAGE", 100, first=900, last=500)
    new = one("DCGM_FI_DEV_POWER_USAGE", 100, first=300, Hostname="node-2", gpu="3",
              instance="node-2:9400")  # fmt: skip
    for series in ((old, new), (new, old)):
        found = read(*series)
        assert [e.name for e in found.frame.entities] == ["node-2:3"]
        assert found.warnings == [f"{UUID} moved from node-1:0 to node-2:3 in the window"]


def on(host: str, value: float, **more) -> RawSeries:
    return one(
        "DCGM_FI_DEV_POWER_USAGE", value, **{"Hostname": host, "instance": f"{host}:9400", **more}
    )


def powers(found: Readings) -> dict[str, set[float]]:
    return {
        entity.name: set(found.frame.samples("power_usage", i)[1].tolist())
        for i, entity in enumerate(found.frame.entities)
    }


def test_a_uuid_that_two_hosts_report_at_the_same_time_is_two_gpus():
    for series in ((on("node-1", 100), on("node-2", 700)), (on("node-2", 700), on("node-1", 100))):
        found = read(*series)
        assert powers(found) == {"node-1:0": {100}, "node-2:0": {700}}
        (warning,) = found.warnings
        assert warning.startswith(f"{UUID} reports from node-1:0 and node-2:0 at the same time")
    origin = found.frame.origins["power_usage", 0]
    assert {(m.label, m.value) for m in origin.matchers} == {("UUID", UUID), ("Hostname", "node-1")}


def test_one_scrape_of_two_hosts_with_the_same_uuid_is_two_gpus():
    found = read(on("node-1", 100, first=0), on("node-2", 700, first=0))
    assert powers(found) == {"node-1:0": {100}, "node-2:0": {700}}


@pytest.mark.parametrize(
    "labels",
    [
        {"Hostname": "node-1.example.com", "instance": "10.0.0.4:9400"},  # with its domain
        {"Hostname": "exporter-7xk2", "instance": "node-1:9401"},  # the name of a pod
        {"Hostname": "exporter-7xk2", "node": "node-1", "instance": "10.0.0.4:9400"},
        {"Hostname": "", "instance": "10.0.0.4:9400"},  # an address that no series explains
    ],
)
def test_one_host_of_two_names_is_no_clone(labels):
    found = read(on("node-1", 100), on("node-1", 101, **labels))
    assert len(found.frame.entities) == 1
    assert found.warnings == []


def test_a_host_and_its_address_at_another_exporter_are_no_clone():
    smi = on("x", 101)
    smi.name = "nvidia_smi_power_draw_watts"
    smi.labels = {"uuid": UUID.removeprefix("GPU-"), "instance": "10.0.0.4:9835"}
    assert len(read(on("node-1", 100), smi).frame.entities) == 1
