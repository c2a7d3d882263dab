"""The last day of what is sick: what changed, and whether an Xid came before."""

from __future__ import annotations

import numpy as np

from engine.errors import SourceError
from engine.model import Why
from engine.samples import RawSeries
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, causes, engine, gpu, uuid_of

LIMITED = {
    **FULL,
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 500,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": 500,
    "DCGM_FI_DEV_POWER_USAGE": 498,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4,
}
XID = "DCGM_FI_DEV_XID_ERRORS"


def earlier(name: str, values: dict[float, float], **labels: str) -> RawSeries:
    """One series from hours ago up to now: {seconds before AT: value from then on}."""
    steps = sorted(values, reverse=True)
    ts = np.arange(AT - steps[0], AT + 1, 60.0)
    out = np.zeros(ts.size)
    for ago in steps:
        out[ts >= AT - ago] = values[ago]
    own = gpu({name: 0})[0].labels
    return RawSeries(name, {**own, **labels}, ts, out)


def while_(name: str, value: float, begin_ago: float, end_ago: float, **labels: str) -> RawSeries:
    """One series that was there for a part of the day only."""
    ts = np.arange(AT - begin_ago, AT - end_ago + 1, 60.0)
    return RawSeries(name, {**gpu({name: 0})[0].labels, **labels}, ts, np.full(ts.size, value))


async def ask(series: list[RawSeries]) -> Why:
    return await engine().why("node-1:0", MemorySource(series), at=AT)


async def test_a_power_limit_that_was_lowered_today_is_told_with_its_time():
    limit = "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"
    rest = {k: v for k, v in LIMITED.items() if k != limit}
    answer = await ask([*gpu(rest), earlier(limit, {20_400: 700, 7_200: 500})])
    assert causes(answer) == ["power_limit_lowered"]
    (change,) = [c for c in answer.changes if c.what == "enforced_power_limit"]
    assert (change.before, change.after, change.at) == ("700 W", "500 W", AT - 7_200)
    assert change.entity.name == "node-1:0"


async def test_a_new_driver_a_reboot_and_a_new_workload_are_told():
    temp = "DCGM_FI_DEV_GPU_TEMP"
    rest = {k: v for k, v in LIMITED.items() if k != temp}
    old = {"DCGM_FI_DRIVER_VERSION": "550.54.15", "pod": "train-a", "namespace": "ml"}
    new = {"DCGM_FI_DRIVER_VERSION": "570.133.20", "pod": "train-b", "namespace": "ml"}
    boot = earlier("node_boot_time_seconds", {20_000: AT - 900_000, 9_000: AT - 9_100})
    boot.labels = {"instance": "node-1:9100", "job": "node-exporter"}
    answer = await ask(
        [
            *gpu(rest),
            while_(temp, 60, 20_000, 10_000, **old),
            while_(temp, 60, 8_800, 0, **new),
            boot,
        ]
    )
    told = {c.what: (c.before, c.after) for c in answer.changes}
    assert told["driver"] == ("550.54.15", "570.133.20")
    assert told["workload"] == ("pod/ml/train-a", "pod/ml/train-b")
    assert "reboot" in told


async def test_what_did_not_change_is_not_told():
    answer = await ask(gpu(LIMITED))
    assert causes(answer) == ["power_limit_lowered"]
    assert answer.changes == ()


async def test_a_healthy_gpu_is_not_asked_for_its_past():
    source = MemorySource(gpu(FULL))
    answer = await engine().why("node-1:0", source, at=AT)
    assert answer.changes == ()
    assert answer.waves == len(source.asked) == 1


async def test_the_same_xid_under_several_programs_is_put_down_to_the_gpu():
    rest = {k: v for k, v in FULL.items() if k not in {XID, "DCGM_FI_DEV_GPU_TEMP"}}
    xid = earlier(XID, {40_000: 0, 30_000: 13, 20_000: 0, 300: 13})
    users = [
        while_("DCGM_FI_DEV_GPU_TEMP", 60, 40_000, 20_000, pod="train-a", namespace="ml"),
        while_("DCGM_FI_DEV_GPU_TEMP", 60, 19_000, 0, pod="train-b", namespace="ml"),
    ]
    answer = await ask([*gpu(rest), xid, *users])
    assert causes(answer) == ["gpu_needs_reset"]
    (found,) = answer.diagnoses
    assert "under 2 different workloads" in found.says
    assert found.evidence[0].value == 13
    assert any("dcgmi diag -r 3" in (step.command or "") for step in found.next)


async def test_the_same_xid_under_one_program_stays_the_programs():
    rest = {k: v for k, v in FULL.items() if k not in {XID, "DCGM_FI_DEV_GPU_TEMP"}}
    xid = earlier(XID, {40_000: 0, 30_000: 13, 20_000: 0, 300: 13})
    user = while_("DCGM_FI_DEV_GPU_TEMP", 60, 40_000, 0, pod="train-a", namespace="ml")
    answer = await ask([*gpu(rest), xid, user])
    assert causes(answer) == ["app_fault_xid"]
    assert "It came 2 times" in answer.diagnoses[0].says


async def test_an_xid_that_came_once_says_nothing_of_a_past():
    rest = {k: v for k, v in FULL.items() if k != XID}
    answer = await ask([*gpu(rest), earlier(XID, {40_000: 0, 300: 13})])
    assert causes(answer) == ["app_fault_xid"]
    assert "times" not in answer.diagnoses[0].says


async def test_a_source_that_gives_no_past_still_answers():
    class Forgetful(MemorySource):
        async def select(self, selections, *, at):
            if max(s.window_s for s in selections) > 80_000:
                raise SourceError("the range is too long", hint="ask for less")
            return await super().select(selections, at=at)

    series = gpu(LIMITED)
    answer = await engine().why(uuid_of("node-1", 0), Forgetful(series), at=AT)
    assert causes(answer) == ["power_limit_lowered"]
    assert any("what changed in the last day is not known" in w for w in answer.warnings)
