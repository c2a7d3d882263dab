"""What must hold for any fleet: the laws, not the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.simulate import MODELS, WORKLOADS, Fault, Fleet
from engine.simulate.fleet import FAULTS
from engine.simulate.physics import (
    HW_SLOWDOWN,
    HW_THERMAL,
    IDLE,
    POWER_BRAKE,
    POWER_CAP,
    SW_THERMAL,
    clock_for,
    power_share,
)
from engine.simulate.timeline import Rows

RATIOS = ("gr", "sm", "occupancy", "tensor", "dram", "fp64", "fp32", "fp16")
COUNTERS = (
    "energy_mj", "power_ns", "thermal_ns", "sync_ns", "brake_ns", "low_util_ns", "sbe", "replay",
    "flit", "data", "nv_replay", "nv_recovery", "pcie_errors",
)  # fmt: skip


def rows_of(fleet: Fleet, minutes: int = 20, node: int = 0) -> Rows:
    times = np.arange(fleet.start, fleet.start + 60.0 * minutes, 5.0)
    return fleet.views(times, [node])[0].rows


@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from(sorted(MODELS)),
    workload=st.sampled_from(WORKLOADS),
    cause=st.sampled_from(sorted(FAULTS)),
    severity=st.floats(0.0, 1.0),
)
@settings(max_examples=30, deadline=None)
def test_the_laws_hold_under_every_fault(
    seed: int, model: str, workload: str, cause: str, severity: float
) -> None:
    target = "node-0" if FAULTS[cause].node else "node-0:1"
    fault = Fault(cause, target, 1764432000.0 + 120.0, severity)
    fleet = Fleet(1, 3, seed, model=model, workloads=(workload,), faults=(fault,))
    rows, board = rows_of(fleet), MODELS[model]
    mask = rows["mask"].astype(int)
    busy = rows["busy"] > 0.0

    for name in RATIOS:
        assert ((rows[name] >= 0.0) & (rows[name] <= 1.0)).all(), name
    assert (rows["sm"] <= rows["gr"]).all()
    for pipe in ("tensor", "fp64", "fp32", "fp16"):
        assert (rows[pipe] <= rows["sm"]).all(), pipe
    assert (rows["dram"] <= 0.85).all()
    assert ((rows["gpu_util"] >= 0) & (rows["gpu_util"] <= 100)).all()

    assert (rows["power_w"] <= 1.05 * rows["enforced_w"]).all()
    assert (rows["power_w"] > 0.0).all()
    assert (rows["sm_clock"] <= board.max_sm_mhz).all()
    assert (rows["sm_clock"][~busy] == board.idle_sm_mhz).all()
    assert (rows["die_c"] >= np.floor(rows["inlet_c"]) - 1.0).all()
    assert (rows["die_c"] < board.shutdown_c).all()
    assert (rows["fb_used"] + rows["fb_free"] + board.fb_reserved_mib == board.fb_mib).all()
    assert (rows["pcie_tx"] <= board.pcie_bps * rows["link_width"] / 16.0).all()
    assert (rows["nvlink_tx"] <= board.nvlink_bps).all()

    # The reasons in the mask match the state they stand for.
    assert ((mask & IDLE > 0) == ~busy).all()
    assert (mask[~busy] & POWER_CAP == 0).all()
    hot = mask & HW_THERMAL > 0
    braked = mask & POWER_BRAKE > 0
    assert ((mask & HW_SLOWDOWN > 0) == (hot | braked)).all()
    assert (rows["sm_clock"][braked & busy] <= 0.5 * board.max_sm_mhz).all()
    assert (rows["die_c"][hot] >= board.max_op_c - 4.0).all()
    near = (rows["die_c"] >= board.max_op_c - 2.0) | (
        rows["memory_c"] >= (board.mem_max_op_c or np.inf) - 3.0
    )
    slowed = mask & SW_THERMAL > 0
    assert (rows["sm_clock"][slowed] < board.max_sm_mhz).all()
    assert near.any() or not slowed.any()
    for name in COUNTERS:
        assert (np.diff(rows[name], axis=0) >= 0.0).all(), name


def test_power_and_clock_are_each_others_inverse() -> None:
    ratios = np.linspace(0.05, 1.0, 40)
    assert np.allclose(clock_for(power_share(ratios)), ratios, atol=1e-4)


def test_energy_is_the_integral_of_power() -> None:
    rows = rows_of(Fleet(1, 4, workloads=("training",)))
    joules = np.diff(rows["energy_mj"], axis=0).sum(axis=0) / 1e3
    assert joules == pytest.approx(rows["power_w"][1:].sum(axis=0) * 5.0, rel=0.01)


def test_violation_time_is_nanoseconds_of_the_time_the_bit_was_set() -> None:
    fault = Fault("power_limit_lowered", "node-0:0", 0.0)
    rows = rows_of(Fleet(1, 2, workloads=("compute",), faults=(fault,)))
    capped = (rows["mask"][1:, 0].astype(int) & POWER_CAP > 0).sum() * 5e9
    gained = rows["power_ns"][-1, 0] - rows["power_ns"][0, 0]
    assert gained == pytest.approx(capped, rel=0.05)


def test_activity_drives_power_drives_temperature() -> None:
    hot, cold = (
        rows_of(Fleet(1, 4, workloads=(kind,)), minutes=30) for kind in ("compute", "idle")
    )
    assert cold["power_w"].mean() < 0.15 * 700
    assert 0.85 * 700 < hot["power_w"].mean() <= 700
    assert cold["die_c"][-1].max() < 35
    assert 55 < hot["die_c"][-1].min() <= hot["die_c"][-1].max() < 80


def test_temperature_follows_power_with_a_delay() -> None:
    fault = Fault("idle", "node-0:0", 1764432000.0 + 300.0)
    rows = rows_of(Fleet(1, 1, workloads=("training",), faults=(fault,)), minutes=15)
    power, die = rows["power_w"][:, 0], rows["die_c"][:, 0]
    after = 61
    assert power[after] < 100.0
    assert die[after] > die[-1] + 15.0
    assert (np.diff(die[after:]) <= 0.0).all()


def test_siblings_differ_a_little() -> None:
    rows = rows_of(Fleet(1, 8, workloads=("training",)))
    mean = rows["die_c"].mean(axis=0)
    assert 0.5 < mean.max() - mean.min() < 7.0


def test_a_slower_clock_gives_a_memory_bound_program_little_less_traffic() -> None:
    lock = Fault("clocks_locked", "node-0:0", 0.0)
    decode = rows_of(Fleet(1, 2, workloads=("decode",), faults=(lock,)))
    matmul = rows_of(Fleet(1, 2, workloads=("compute",), faults=(lock,)))
    kept = {
        name: rows["nvlink_tx"][:, 0].mean() / rows["nvlink_tx"][:, 1].mean()
        for name, rows in (("decode", decode), ("matmul", matmul))
    }
    assert kept["decode"] > 0.8
    assert kept["matmul"] < 0.65


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_healthy_fleet_shows_no_bad_bit(workload: str) -> None:
    rows = rows_of(Fleet(2, 8, workloads=(workload,)), minutes=60)
    bad = HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | POWER_BRAKE
    assert not (rows["mask"].astype(int) & bad).any()
    assert (rows["enforced_w"] == 700).all()


def test_training_pauses_for_checkpoints_and_warms_up_first() -> None:
    training = rows_of(Fleet(1, 2, workloads=("training",)), minutes=60)
    paused = (training["sm"] < 0.2).mean()
    assert 0.005 < paused < 0.06
    assert (training["pcie_tx"][training["sm"] < 0.2] > 5e9).all()
    warm_up = rows_of(Fleet(1, 2, workloads=("warm_up",)), minutes=10)
    assert (warm_up["sm"][:40] < 0.4).all()
    assert (warm_up["sm"][60:] > 0.6).mean() > 0.8
