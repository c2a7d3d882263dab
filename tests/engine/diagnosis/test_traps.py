"""Readings that mislead: what looks like a fault and is none, and what hides one."""

from __future__ import annotations

import pytest

from engine.model import Class, Verdict, Why
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, IDLE, STOCK, causes, engine, gpu, node, notes

EVENTS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
XID = "DCGM_FI_DEV_XID_ERRORS"
CLOCK = "DCGM_FI_DEV_SM_CLOCK"


async def ask(series, target="node-1:0") -> Why:
    return await engine().why(target, MemorySource(series), at=AT)


# --- Xids: the gauge holds the last code for ever


async def test_an_xid_that_did_not_change_is_history_and_says_since_when():
    answer = await ask(gpu({**FULL, XID: 79}))
    assert answer.verdict is Verdict.HEALTHY
    assert notes(answer) == ["xid_history"]
    note = answer.notes[0]
    assert note.class_ is Class.BENIGN
    assert "79" in note.says
    assert "not changed for at least 15 min" in note.says
    assert note.since is None


async def test_an_xid_from_hours_ago_is_dated_by_the_last_day_of_the_source():
    old = gpu({XID: 0}, shift_s=-3 * 3600)
    answer = await ask(gpu({**FULL, XID: 31}) + old)
    assert answer.verdict is Verdict.HEALTHY
    assert "It changed at 2025-11-29 15:45:00 UTC, 15 min earlier." in answer.notes[0].says
    assert answer.notes[0].since == AT - 900
    assert answer.waves == 2


async def test_an_xid_that_came_in_the_window_is_a_cause_since_then():
    answer = await ask(gpu({**FULL, XID: {"was": 0, "now": 79, "ago": "5m"}}))
    assert causes(answer) == ["gpu_off_bus"]
    assert answer.diagnoses[0].since == AT - 285
    assert notes(answer) == []


async def test_a_second_xid_of_the_same_code_shows_in_the_exporters_counts_only():
    counts = gpu(
        {"DCGM_EXP_XID_ERRORS_COUNT": {"was": 1, "now": 2, "ago": "3m"}},
        xid="94",
        window_size_in_ms="300000",
    )
    answer = await ask(gpu({**FULL, XID: 94}) + counts)
    assert causes(answer) == ["ecc_contained"]


async def test_an_xid_gauge_that_first_appears_with_its_first_xid_counts_by_the_counts():
    late = {"DCGM_FI_DEV_XID_ERRORS": 79}
    series = gpu({k: v for k, v in FULL.items() if k != XID})
    series += gpu(late, err_code="79")
    counts = gpu({"DCGM_EXP_XID_ERRORS_COUNT": {"was": 0, "now": 1, "ago": "4m"}}, xid="79")
    assert causes(await ask(series + counts)) == ["gpu_off_bus"]


async def test_the_new_series_of_another_err_code_is_a_change():
    """dcgm-exporter puts the code into a label: a new code comes as a new series."""
    calm = {k: v for k, v in FULL.items() if k != XID}
    before = gpu({XID: 0}, err_code="0")
    after = gpu({XID: 48}, err_code="48")
    for one in before:
        one.ts, one.values = one.ts[:40], one.values[:40]
    for one in after:
        one.ts, one.values = one.ts[40:], one.values[40:]
    assert causes(await ask(gpu(calm) + before + after)) == ["ecc_uncorrectable"]


# --- idle is not sick, and does not hide what is


async def test_the_power_cap_bit_at_idle_is_nothing():
    answer = await ask(gpu({**IDLE, EVENTS: 5}))
    assert answer.verdict is Verdict.IDLE
    assert causes(answer) == []
    assert notes(answer) == ["idle"]


async def test_idle_does_not_hide_an_asserted_power_brake():
    answer = await ask(gpu({**IDLE, EVENTS: 0x89}))
    assert answer.verdict is Verdict.DEGRADED
    assert causes(answer) == ["power_brake"]
    assert notes(answer) == ["idle"]


async def test_pcie_drops_its_generation_at_idle_to_save_power():
    answer = await ask(gpu({**IDLE, "DCGM_FI_DEV_PCIE_LINK_GEN": 1}))
    assert answer.verdict is Verdict.IDLE
    assert causes(answer) == []


async def test_pcie_at_a_lower_generation_under_load_is_a_fault():
    assert causes(await ask(gpu({**FULL, "DCGM_FI_DEV_PCIE_LINK_GEN": 1}))) == ["pcie_degraded"]


async def test_a_narrow_pcie_link_is_a_fault_even_at_idle():
    assert causes(await ask(gpu({**IDLE, "DCGM_FI_DEV_PCIE_LINK_WIDTH": 8}))) == ["pcie_degraded"]


async def test_lifetime_ecc_counters_that_stand_still_are_nothing():
    old = {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": 4000, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": 3}
    answer = await ask(gpu({**FULL, **old, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 1}))
    assert answer.verdict is Verdict.HEALTHY


# --- clocks and masks


async def test_clocks_pinned_low_with_an_all_clear_mask_are_a_lock():
    answer = await ask(gpu({**FULL, CLOCK: 1005}) + node(FULL)[len(FULL) :])
    assert causes(answer) == ["clocks_locked"]
    assert "mask" in answer.diagnoses[0].says


async def test_a_single_blip_of_a_thermal_bit_is_not_a_slowdown():
    blip = [0] * 60 + [0x40]
    assert (await ask(gpu({**FULL, EVENTS: blip}))).verdict is Verdict.HEALTHY


async def test_the_power_cap_at_the_default_limit_under_load_is_as_designed():
    load = {EVENTS: 4, "DCGM_FI_DEV_POWER_USAGE": 695, CLOCK: [1590, 1650, 1620, 1605]}
    answer = await ask(gpu({**FULL, **load}))
    assert answer.verdict is Verdict.HEALTHY
    assert "power_bound" in notes(answer)


async def test_a_limit_that_nobody_set_but_is_enforced_is_the_platforms():
    load = {EVENTS: 4, "DCGM_FI_DEV_POWER_USAGE": 398, CLOCK: [1290, 1350, 1320, 1305]}
    lowered = {**FULL, **load, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 400}
    assert causes(await ask(gpu(lowered))) == ["platform_power_cap"]
    by_hand = {**lowered, "DCGM_FI_DEV_POWER_MGMT_LIMIT": 400}
    assert causes(await ask(gpu(by_hand))) == ["power_limit_lowered"]


# --- scales and limits


async def test_profiling_ratios_exported_as_percent_are_read_and_said():
    percent = {
        name: value * 100 if name.startswith("DCGM_FI_PROF_") else value
        for name, value in FULL.items()
    }
    answer = await ask(gpu(percent))
    plain = await ask(gpu(FULL))
    assert (answer.verdict, notes(answer)) == (plain.verdict, notes(plain))
    assert answer.warnings == (
        "node-1:9400 exports profiling ratios as percent: read as value / 100",
    )


@pytest.mark.parametrize(
    ("model", "celsius", "sick"),
    [
        ("NVIDIA H100 80GB HBM3", 85, False),
        ("NVIDIA H100 80GB HBM3", 87, True),
        ("NVIDIA A100-SXM4-80GB", 84, False),
        ("NVIDIA A100-SXM4-80GB", 86, True),
        ("Tesla V100-SXM2-32GB", 84, True),
    ],
)
async def test_the_temperature_limit_is_the_models(model, celsius, sick):
    hot = {**STOCK, "DCGM_FI_DEV_GPU_TEMP": celsius, CLOCK: 600}
    hot["DCGM_FI_DEV_POWER_USAGE"] = 200
    answer = await ask(gpu(hot, model=model))
    assert ("thermal_slowdown_hw" in causes(answer)) is sick


async def test_the_temperature_limit_the_exporter_gives_comes_first():
    hot = {**FULL, "DCGM_FI_DEV_GPU_TEMP": 80, EVENTS: 0x20, CLOCK: [1200, 1260, 1230, 1245]}
    answer = await ask(gpu({**hot, "DCGM_FI_DEV_GPU_MAX_OP_TEMP": 79}))
    assert causes(answer) == ["thermal_slowdown_sw"]
    assert any("79 °C" in e.says for e in answer.diagnoses[0].evidence)


# --- an unchanged exporter


async def test_a_stock_exporter_can_be_healthy_and_names_what_is_unseen():
    light = {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.1, "DCGM_FI_PROF_DRAM_ACTIVE": 0.3}
    answer = await ask(gpu({**STOCK, **light}))
    assert answer.verdict is Verdict.HEALTHY
    fixes = {u.needs: u.fix for u in answer.unknown}
    assert fixes["throttle_reasons"].startswith("DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, ")
    assert fixes["sm_active"].startswith("DCGM_FI_PROF_SM_ACTIVE, gauge, ")
    assert fixes["ecc_dbe_volatile"].startswith("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, ")
    blocked = {c for u in answer.unknown for c in u.blocks}
    assert {"power_brake", "thermal_slowdown_hw", "ecc_uncorrectable", "low_occupancy"} <= blocked
    assert answer.coverage.unseen == len({*blocked})
    assert answer.coverage.checked + answer.coverage.unseen == answer.coverage.rules


async def test_visibly_slow_on_a_stock_exporter_is_unknown_not_healthy():
    """A node whose brake is on halves all its clocks, constantly; nothing exported says why."""
    braked = {**STOCK, CLOCK: 990, "DCGM_FI_DEV_POWER_USAGE": 210, "DCGM_FI_DEV_GPU_TEMP": 40}
    answer = await ask(node(braked))
    assert answer.verdict is Verdict.UNKNOWN
    assert causes(answer) == []
    assert answer.unknown[0].cause == "metrics_missing"
    assert answer.unknown[0].fix.startswith("DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, ")


async def test_blank_values_are_no_readings():
    blank = {"DCGM_FI_DEV_PSTATE": 2147483632, EVENTS: 9.223372036854776e18}
    answer = await ask(gpu({**FULL, **blank}))
    assert answer.verdict is Verdict.HEALTHY
    why = {u.needs: u.why for u in answer.unknown}
    assert why["throttle_reasons"] == "exported, but blank (61 x INT64_BLANK)"
    assert why["pstate"] == "exported, but blank (61 x INT32_BLANK)"


async def test_an_impossible_sample_among_good_ones_is_dropped():
    wild = [98] * 30 + [4294967295] + [98] * 30
    assert (await ask(gpu({**FULL, "DCGM_FI_DEV_GPU_UTIL": wild}))).verdict is Verdict.HEALTHY
