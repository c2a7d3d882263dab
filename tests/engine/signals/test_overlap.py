"""A board in two places."""

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


def test_a_board_that_moved_is_where_it_was_seen_last():
    old = one("DCGM_FI_DEV_POWER_USAGE", 100, first=900, last=500)
    new = one("DCGM_FI_DEV_POWER_USAGE", 100, first=300, Hostname="node-2", gpu="3",
              instance="node-2:9400")  # fmt: skip
    for series in ((old, new), (new, old)):
        found = read(*series)
        assert [e.name for e in found.frame.entities] == ["node-2:3"]
        assert found.warnings == [f"{UUID} moved from node-1:0 to node-2:3 in the window"]
