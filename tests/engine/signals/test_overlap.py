"""A GPU that two exporters tell of, and one that moved."""

from __future__ import annotations

import numpy as np

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


def smi(value: float, **more: float) -> RawSeries:
    found = one("nvidia_smi_power_draw_watts", value, **more)
    found.labels = {"uuid": UUID, "instance": "node-1:9835"}
    return found


def test_two_exporters_that_disagree_are_told_and_the_fresher_one_counts():
    found = read(one("DCGM_FI_DEV_POWER_USAGE", 700, last=60), smi(350))
    _, values = found.frame.samples("power_usage", 0)
    assert set(values.tolist()) == {350.0}
    (warning,) = found.warnings
    assert "350 W by nvidia_gpu_exporter (node-1:9835)" in warning
    assert "700 W by dcgm-exporter (node-1:9400)" in warning


def test_two_exporters_that_agree_are_one_reading():
    found = read(one("DCGM_FI_DEV_POWER_USAGE", 700), smi(690))
    assert found.warnings == []
    assert len(found.frame.entities) == 1


def test_an_exporter_that_was_restarted_under_another_address_is_no_contradiction():
    before = one("DCGM_FI_DEV_POWER_USAGE", 700, first=900, last=400, instance="10.0.0.7:9400")
    after = one("DCGM_FI_DEV_POWER_USAGE", 200, first=380, instance="10.0.0.9:9400")
    found = read(before, after)
    assert found.warnings == []
    assert found.frame.samples("power_usage", 0)[1].size == before.ts.size + after.ts.size


def test_a_board_that_moved_is_where_it_was_seen_last():
    old = one("DCGM_FI_DEV_POWER_USAGE", 100, first=900, last=500)
    new = one("DCGM_FI_DEV_POWER_USAGE", 100, first=300, Hostname="node-2", gpu="3",
              instance="node-2:9400")  # fmt: skip
    for series in ((old, new), (new, old)):
        found = read(*series)
        assert [e.name for e in found.frame.entities] == ["node-2:3"]
        assert found.warnings == [f"{UUID} moved from node-1:0 to node-2:3 in the window"]
