"""One GPU that two exporters tell of: what counts, and what is said where they disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.model import Verdict, Why
from engine.samples import Batch, RawSeries
from engine.signals.normalise import Readings, build_frame
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, catalogue, engine, gpu

UUID = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
MASK, SMI_MASK = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "nvidia_smi_clocks_event_reasons_active"
XID = "DCGM_FI_DEV_XID_ERRORS"
DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"


def one(
    name: str,
    *values: float,
    first: float = 900,
    last: float = 0,
    every: float = 15.0,
    **labels: str,
) -> RawSeries:
    """Return a series of dcgm-exporter; of several values the last ones are the latest."""
    ts = np.arange(AT - first, AT - last + 1, every)
    own = {"UUID": UUID, "gpu": "0", "Hostname": "node-1", "instance": "node-1:9400", **labels}
    readings = np.full(ts.size, values[0])
    readings[ts.size - len(values) + 1 :] = values[1:]
    return RawSeries(name, own, ts, readings)


def two(name: str, *values: float, **more: Any) -> RawSeries:
    """Return a series of a second dcgm-exporter on the same host."""
    return one(name, *values, **{"instance": "node-1:9401", **more})


def smi(name: str, *values: float, **more: Any) -> RawSeries:
    """Return a series of nvidia_gpu_exporter."""
    found = one(name, *values, **more)
    found.labels = {"uuid": UUID, "instance": more.get("instance", "node-1:9835")}
    return found


def read(*series: RawSeries) -> Readings:
    return build_frame(Batch(list(series), AT, 1), catalogue(), at=AT, window_s=900.0)


def values_of(found: Readings, signal: str) -> list[float]:
    (_,) = found.frame.entities
    return found.frame.samples(signal, 0)[1].tolist()


def test_two_exporters_that_disagree_are_told_and_the_fresher_one_counts():
    found = read(
        one("DCGM_FI_DEV_POWER_USAGE", 700, last=60), smi("nvidia_smi_power_draw_watts", 350)
    )
    assert set(values_of(found, "power_usage")) == {350.0}
    (warning,) = found.warnings
    assert "350 W by nvidia_gpu_exporter (node-1:9835)" in warning
    assert "700 W by dcgm-exporter (node-1:9400)" in warning


def test_two_exporters_that_agree_are_one_reading_and_its_query_shows_one():
    found = read(one("DCGM_FI_DEV_POWER_USAGE", 700), two("DCGM_FI_DEV_POWER_USAGE", 690))
    assert found.warnings == []
    assert set(values_of(found, "power_usage")) == {700.0}
    matchers = {m.label: m.value for m in found.frame.origins["power_usage", 0].matchers}
    assert matchers == {"UUID": UUID, "instance": "node-1:9400"}


def test_an_exporter_that_was_restarted_under_another_address_is_no_contradiction():
    before = one("DCGM_FI_DEV_POWER_USAGE", 700, first=900, last=400, instance="10.0.0.7:9400")
    after = one("DCGM_FI_DEV_POWER_USAGE", 200, first=180, instance="10.0.0.9:9400")
    found = read(before, after)
    assert found.warnings == []
    assert found.frame.samples("power_usage", 0)[1].size == before.ts.size + after.ts.size


def test_one_that_began_later_adds_nothing_to_what_was_there_before():
    found = read(
        one("DCGM_FI_DEV_POWER_USAGE", 700, last=200),
        two("DCGM_FI_DEV_POWER_USAGE", 690, first=300),
    )
    ts, values = found.frame.samples("power_usage", 0)
    assert set(values[ts < AT - 300].tolist()) == {700.0}
    assert set(values[ts >= AT - 300].tolist()) == {690.0}


@pytest.mark.parametrize(
    ("first", "second"),
    [(one(MASK, 0x88), smi(SMI_MASK, 0)), (one(MASK, 0), smi(SMI_MASK, 0x88)),
     (one(MASK, 0x88, last=15), two(MASK, 0)), (one(MASK, 0x88), two(MASK, 0, every=60.0))],
)  # fmt: skip
def test_a_reason_that_one_mask_shows_is_not_hidden_by_the_other(first, second):
    found = read(first, second)
    assert set(values_of(found, "throttle_reasons")) == {0x88}
    (warning,) = found.warnings
    assert "0x88 (hw_slowdown, hw_power_brake) by dcgm-exporter" in warning or "nvidia" in warning
    assert "0x0 (none) by" in warning
    assert warning.endswith("what either shows counts")


def test_reasons_of_two_masks_are_added_and_idle_counts_where_both_are():
    found = read(one(MASK, 0x8), two(MASK, 0x21))
    assert set(values_of(found, "throttle_reasons")) == {0x28}
    assert set(values_of(read(one(MASK, 0x1), two(MASK, 0x1)), "throttle_reasons")) == {0x1}


def test_a_mask_that_stopped_says_nothing_about_now():
    found = read(one(MASK, 0x88, last=200), two(MASK, 0))
    ts, values = found.frame.samples("throttle_reasons", 0)
    assert set(values[ts > AT - 120].tolist()) == {0}
    assert set(values[ts < AT - 210].tolist()) == {0x88}
    assert len(found.warnings) == 1


def test_masks_that_come_and_go_alike_are_no_contradiction():
    wave = [0.0, 4.0] * 30
    assert read(one(MASK, *wave), two(MASK, *wave[1:], 0.0)).warnings == []


def test_error_counts_of_two_exporters_do_not_rise_by_being_read_in_turn():
    found = read(one(DBE, 5), two(DBE, 0, last=5))
    assert len(set(values_of(found, "ecc_dbe_volatile"))) == 1
    (warning,) = found.warnings
    assert "5 (+0) by dcgm-exporter (node-1:9400)" in warning
    assert "0 (+0) by dcgm-exporter (node-1:9401)" in warning


def test_of_two_counters_as_fresh_the_one_that_rose_counts():
    found = read(one(DBE, 0, 0, 3, 3, 3), two(DBE, 0))
    assert max(values_of(found, "ecc_dbe_volatile")) == 3
    assert "the worse is used" in found.warnings[0]


def test_counters_scraped_at_different_moments_agree():
    rising = [float(k) for k in range(40)]
    late = two(DBE, *rising, last=7)
    assert read(one(DBE, *rising), late).warnings == []


def test_an_xid_that_one_exporter_still_shows_is_no_event_and_not_lost():
    found = read(one(XID, 79), two(XID, 0, last=7))
    assert set(values_of(found, "xid")) == {79}
    assert (
        "79 by dcgm-exporter (node-1:9400), 0 by dcgm-exporter (node-1:9401)" in found.warnings[0]
    )


def test_an_xid_that_comes_to_both_is_one_event():
    found = read(one(XID, 0, 0, 79, 79, 79), two(XID, 0, 0, 79, 79, 79, last=7))
    values = np.array(values_of(found, "xid"))
    assert np.count_nonzero(np.diff(values)) == 1
    assert values[-1] == 79
    assert found.warnings == []


def test_a_flag_that_one_exporter_shows_counts():
    found = read(
        one("DCGM_FI_DEV_ROW_REMAP_PENDING", 0), smi("nvidia_smi_remapped_rows_pending", 1)
    )
    assert set(values_of(found, "row_remap_pending")) == {1}
    assert "0 by dcgm-exporter" in found.warnings[0]
    assert "1 by nvidia_gpu_exporter" in found.warnings[0]


def test_one_address_scraped_as_two_jobs_is_told_by_job():
    found = read(
        one(MASK, 0x88, job="dcgm", instance="node-1"), one(MASK, 0, job="other", instance="node-1")
    )
    assert "(job dcgm, node-1)" in found.warnings[0]
    assert "(job other, node-1)" in found.warnings[0]


def test_a_ratio_written_as_percent_contradicts_nothing():
    name = "DCGM_FI_PROF_SM_ACTIVE"
    assert not any("disagree" in w for w in read(one(name, 0.9), two(name, 90)).warnings)


def test_many_gpus_of_two_exporters_are_told_in_one_line():
    some = [
        series
        for k in range(5)
        for series in (
            one(MASK, 8, UUID=f"GPU-{k}", gpu=str(k)),
            two(MASK, 0, UUID=f"GPU-{k}", gpu=str(k)),
        )
    ]
    (warning,) = read(*some).warnings
    assert warning.endswith("(so for 4 more GPUs)")


REMAP = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
NEXT = {"instance": "10.0.0.9:9400"}


def changes(found: Readings) -> list[tuple[float, float]]:
    """Return when the Xid came new, and which."""
    ts, values = found.frame.samples("xid", 0)
    at = np.flatnonzero(np.diff(values)) + 1
    return [(ts.item(k) - AT, values.item(k)) for k in at if values[k]]


@pytest.mark.parametrize("beside", [[], [two(XID, 0), two(DBE, 0)]], ids=["alone", "beside"])
@pytest.mark.parametrize("begins", [245, 230, 290], ids=["overlap", "gap", "a minute"])
def test_what_came_while_an_exporter_was_restarted_is_seen(beside, begins):
    both = [
        series
        for name, value in ((XID, 79), (DBE, 2))
        for series in (one(name, 0, last=240), one(name, value, first=begins, **NEXT))
    ]
    found = read(*both, *beside)
    assert [code for _, code in changes(found)] == [79]
    rises = np.diff(values_of(found, "ecc_dbe_volatile"))
    assert rises[rises != 0].tolist() == [2]


def test_one_that_was_restarted_under_another_job_goes_on_as_well():
    found = read(
        one(XID, 0, last=240, job="a"), one(XID, 79, first=230, job="b", **NEXT), two(XID, 0)
    )
    assert [code for _, code in changes(found)] == [79]


def test_a_flag_does_not_end_with_the_exporter_of_another_job():
    found = read(one(REMAP, 1, last=90, job="a"), two(REMAP, 0, first=50, job="b"))
    assert values_of(found, "row_remap_failure")[-1] == 1


def test_an_exporter_that_began_beside_one_that_goes_on_is_no_restart():
    found = read(one(REMAP, 1, last=7), two(REMAP, 0, first=60))
    assert set(values_of(found, "row_remap_failure")) == {1}
    assert changes(read(one(XID, 0, last=7), two(XID, 79, first=60))) == []


@pytest.mark.parametrize("other", [0.0, 7.0])
def test_an_xid_that_came_new_to_one_is_seen_beside_the_same_of_long_ago(other):
    new = two(XID, 0, *[79] * 20, last=other)
    for some in ([one(XID, 79), new], [new, one(XID, 79)]):
        ((when, code),) = changes(read(*some))
        assert code == 79
        assert -305 < when < -280


def test_two_xids_of_one_moment_are_both_seen():
    found = read(one(XID, 0, 43, 43, 43), two(XID, 0, 79, 79, 79))
    assert [code for _, code in changes(found)] == [43, 79]


def test_an_xid_is_seen_where_both_had_the_same_codes_at_other_times():
    first = one(XID, 79, *[0] * 50)
    found = read(first, two(XID, 0, *[79] * 20))
    assert (-285.0, 79.0) in changes(found)


@pytest.mark.parametrize("wrong", [-1, 2**40])
def test_a_mask_that_cannot_be_hides_no_reason(wrong):
    for some in ([one(MASK, 0x80), two(MASK, wrong)], [two(MASK, 0x80), one(MASK, wrong)]):
        found = read(*some)
        assert set(values_of(found, "throttle_reasons")) == {0x80}
        assert found.warnings == []


@pytest.mark.parametrize("wrong", [-1, 5000])
@pytest.mark.parametrize("later", [0, 7])
def test_a_reading_that_cannot_be_contradicts_nothing(wrong, later):
    name = "DCGM_FI_DEV_GPU_TEMP"
    found = read(one(name, 60, last=later), two(name, wrong))
    assert set(values_of(found, "gpu_temp")) == {60}
    assert found.warnings == []
    assert found.frame.contradicted == {}


@pytest.mark.parametrize("behind", [90, 240])
@pytest.mark.parametrize(
    ("name", "signal", "worse", "well"),
    [(REMAP, "row_remap_failure", 1, 0), ("DCGM_FI_DEV_PCIE_LINK_GEN", "pcie_link_gen", 1, 5),
     ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "fabric_manager_status", 1, 3)],
)  # fmt: skip
def test_a_worse_state_counts_though_its_exporter_is_behind(behind, name, signal, worse, well):
    found = read(one(name, worse, last=behind), two(name, well))
    assert set(values_of(found, signal)) == {worse}
    assert found.warnings[0].endswith("the worse is used")
    gone = read(one(name, worse, last=400), two(name, well))
    assert values_of(gone, signal)[-1] == well


def test_a_state_that_got_worse_counts_beside_one_that_is_still_well():
    name = "DCGM_FI_DEV_PCIE_LINK_GEN"
    for some in ([one(name, 5, 1, 1, 1), two(name, 5)], [one(name, 5), two(name, 5, 1, 1, 1)]):
        assert values_of(read(*some), "pcie_link_gen")[-1] == 1


@pytest.mark.parametrize("behind", [0, 90, 240])
def test_a_rise_counts_though_its_exporter_is_behind(behind):
    found = read(one(DBE, 0, 2, 2, 2, last=behind), two(DBE, 0))
    values = values_of(found, "ecc_dbe_volatile")
    assert (values[0], values[-1]) == (0, 2)


def test_of_two_counters_the_worse_rise_counts_from_any_moment_on():
    early, late = one(DBE, 0, *[9] * 50), two(DBE, 0, *[4] * 10)
    ts, values = read(early, late).frame.samples("ecc_dbe_volatile", 0)
    assert values[-1] - values[0] == 9
    assert values[-1] - values[np.searchsorted(ts, AT - 300)] == 4


def test_xids_counted_by_either_are_seen():
    count = "DCGM_EXP_XID_ERRORS_COUNT"
    found = read(
        one(XID, 0), two(XID, 0), one(count, 0, 1, 1, xid="79"), two(count, *[5] * 61, xid="43")
    )
    assert 79 in [code for _, code in changes(found)]


async def why_of(first: dict[str, Any], second: dict[str, Any]) -> Why:
    more = {"instance": "node-1:9401", "job": "second"}
    return await engine().why("node-1:0", MemorySource([*gpu(first), *gpu(second, **more)]), at=AT)


async def test_a_gpu_that_one_exporter_calls_braked_is_not_healthy():
    braked = {**FULL, MASK: 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}
    for found in (await why_of(braked, FULL), await why_of(FULL, braked)):
        assert found.verdict is Verdict.DEGRADED
        assert "power_brake" in found.causes
        assert any("disagree" in w for w in found.warnings)


async def test_two_exporters_that_say_the_same_change_nothing():
    found = await why_of(FULL, FULL)
    assert found.verdict is Verdict.HEALTHY
    assert found.warnings == ()


@pytest.mark.parametrize("later", [0.0, 5.0], ids=["at once", "seconds apart"])
@pytest.mark.parametrize("job", ["a-jobs-name", "z-jobs-name"])
async def test_a_gpu_whose_core_readings_contradict_each_other_is_not_called_healthy(job, later):
    well = gpu(FULL, job="dcgm", instance="node-1:9400")
    hot = {**FULL, "DCGM_FI_DEV_SM_CLOCK": 600, "DCGM_FI_DEV_POWER_USAGE": 100}
    ill = gpu(hot, job=job, instance="node-1:9500", shift_s=-later)
    answer = await engine().why("node-1:0", MemorySource([*well, *ill]), at=AT)
    assert answer.verdict != "healthy"
    torn = next(u for u in answer.unknown if u.needs == "sm_clock")
    assert "two exporters contradict each other on SM clock" in torn.why
    assert "600 MHz" in torn.why
