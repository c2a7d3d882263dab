"""Each fault moves what the facts say it moves, on the GPUs it is planted on and on no others."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from engine.errors import SourceError, UsageError
from engine.simulate import Fault, Fleet, Profile
from engine.simulate.fleet import FAULTS, HERRINGS
from engine.simulate.observation import Rows

START = 1764432000.0
SINCE = START + 300.0
AT = START + 1200.0
WINDOW_S = 300.0
BAD_BITS = 0xE8


@cache
def well_fleet() -> Fleet:
    return Fleet(2, 4, workloads=("training",))


@cache
def fleet_with(cause: str, workload: str = "training", **more: object) -> Fleet:
    target = "node-0" if FAULTS[cause].node else "node-0:1"
    fault = Fault(cause, target, SINCE, **more)  # type: ignore[arg-type]
    return Fleet(2, 4, workloads=(workload,), faults=(fault,))


@cache
def well_says(node: str, at: float) -> tuple[str, str]:
    """What the exporter of a node says of its GPUs, and what that of the node itself says.

    Kept, since a fleet keeps its last quarter of an hour only and would compute it anew each time.
    """
    well = well_fleet()
    return well.exposition(node, at), well.node_exposition(node, at)


def window(fleet: Fleet, node: int = 0) -> Rows:
    return fleet.views(np.arange(AT - WINDOW_S, AT + 1.0, 15.0), [node])[0].rows


def bits(rows: Rows, gpu: int = 1) -> int:
    return int(np.bitwise_or.reduce(rows["mask"][:, gpu].astype(int)))


@pytest.mark.parametrize("cause", sorted(FAULTS))
def test_a_fault_changes_its_target_and_nothing_before_it_or_beside_it(cause: str) -> None:
    sick = fleet_with(cause)
    assert sick.exposition("node-0", SINCE - 15.0) == well_says("node-0", SINCE - 15.0)[0]
    assert sick.exposition("node-1", AT) == well_says("node-1", AT)[0]
    try:
        seen = sick.exposition("node-0", AT)
    except SourceError:
        assert cause == "exporter_down"
    else:
        assert (seen, sick.node_exposition("node-0", AT)) != well_says("node-0", AT)
    (planted,) = sick.planted
    node_wide = FAULTS[cause].node
    assert planted.members == tuple(f"node-0:{g}" for g in (range(4) if node_wide else (1,)))
    assert set(sick.healthy) == set(sick.gpus) - set(planted.members)


@pytest.mark.parametrize("cause", sorted(c for c, e in FAULTS.items() if not e.node))
def test_siblings_of_a_sick_gpu_read_as_if_nothing_had_happened(cause: str) -> None:
    sick, well = window(fleet_with(cause)), window(well_fleet())
    for name in ("power_w", "sm_clock", "mask", "tensor", "sbe", "flit", "link_width", "sight"):
        kept = np.isclose(sick[name][:, [0, 2, 3]], well[name][:, [0, 2, 3]], rtol=0.05)
        assert kept.all(), name
    # Fans follow the node's load, so the neighbours' temperature may move a little.
    assert (abs(sick["die_c"] - well["die_c"])[:, [0, 2, 3]] <= 6.0).all()


def test_a_fault_ends_when_it_is_told_to() -> None:
    fleet = Fleet(1, 2, faults=(Fault("power_brake", "node-0", SINCE, until=SINCE + 300.0),))
    masks = fleet.views(np.arange(SINCE, SINCE + 900.0, 15.0), [0])[0].rows["mask"].astype(int)
    assert (masks[:20] & 0x80 > 0).all()
    assert (masks[20:] == 0).all()


def test_severity_is_a_matter_of_degree() -> None:
    clocks = [
        window(fleet_with("clocks_locked", severity=s))["sm_clock"][:, 1].mean()
        for s in (0.1, 0.5, 1.0)
    ]
    assert clocks[0] > clocks[1] > clocks[2]


def test_power_limit_lowered() -> None:
    rows = window(fleet_with("power_limit_lowered", severity=0.6))
    assert rows["enforced_w"][-1, 1] == rows["requested_w"][-1, 1] < 500
    assert np.median(rows["power_w"][:, 1]) == pytest.approx(rows["enforced_w"][-1, 1], rel=0.02)
    assert bits(rows) == 0x4
    assert rows["sm_clock"][:, 1].mean() < 0.9 * 1980
    assert rows["power_ns"][-1, 1] - rows["power_ns"][0, 1] == pytest.approx(300e9, rel=0.01)


def test_platform_power_cap_leaves_the_requested_limit_alone() -> None:
    rows = window(fleet_with("platform_power_cap"))
    assert (rows["requested_w"] == 700).all()
    assert (rows["enforced_w"] < 400).all()
    assert all(bits(rows, g) == 0x4 for g in range(4))


def test_power_bound_sits_at_the_default_limit() -> None:
    rows = window(fleet_with("power_bound"))
    assert (rows["enforced_w"] == 700).all()
    assert rows["power_w"][:, 1].mean() == pytest.approx(700, rel=0.02)
    assert bits(rows) == 0x4


@pytest.mark.parametrize("workload", ["training", "decode"])
def test_power_brake_halves_every_gpu_of_the_node(workload: str) -> None:
    rows = window(fleet_with("power_brake", workload))
    assert (rows["mask"].astype(int) == 0x88).all()
    assert (rows["sm_clock"] <= 990).all()
    assert (rows["brake_ns"][-1] - rows["brake_ns"][0] == 300e9).all()


def test_power_brake_shows_on_an_idle_gpu_too() -> None:
    rows = window(fleet_with("power_brake", "idle"))
    assert (rows["mask"].astype(int) == 0x89).all()


@pytest.mark.parametrize("model", ["h100_sxm", "a100_sxm_80", "h200_sxm", "l40s"])
@pytest.mark.parametrize("workload", ["training", "decode"])
def test_thermal_slowdowns_sit_at_the_models_own_limits(model: str, workload: str) -> None:
    def hot(cause: str) -> tuple[Fleet, Rows]:
        fault = Fault(cause, "node-0:1", SINCE)
        fleet = Fleet(1, 4, model=model, workloads=(workload,), faults=(fault,))
        return fleet, window(fleet)

    fleet, soft = hot("thermal_slowdown_sw")
    board = fleet.model("node-0")
    assert board.max_op_c <= np.median(soft["die_c"][:, 1]) < board.slowdown_c
    assert bits(soft) == 0x20
    _, hard = hot("thermal_slowdown_hw")
    assert (hard["die_c"][:, 1] >= board.slowdown_c - 1.0).mean() > 0.9
    assert bits(hard) & 0x48 == 0x48
    assert hard["sm_clock"][:, 1].max() <= 0.5 * board.max_sm_mhz
    assert hard["hw_thermal_ns"][-1, 1] > hard["hw_thermal_ns"][0, 1]


def test_memory_overheat_spares_the_die() -> None:
    rows = window(fleet_with("memory_overheat"))
    assert (rows["memory_c"][:, 1] > 95).all()
    assert (rows["die_c"][:, 1] < 80).all()
    assert bits(rows) == 0x20


def test_cooling_outlier_is_hot_at_its_siblings_power() -> None:
    rows = window(fleet_with("cooling_outlier"))
    others = [0, 2, 3]
    assert rows["die_c"][:, 1].mean() > rows["die_c"][:, others].mean() + 12.0
    assert rows["power_w"][:, 1].mean() == pytest.approx(
        rows["power_w"][:, others].mean(), rel=0.06
    )
    assert rows["die_c"][:, 1].max() < 87
    assert bits(rows) == 0


def test_node_airflow_heats_the_whole_node_and_its_inlet() -> None:
    fleet = fleet_with("node_airflow")
    sick, well = window(fleet), window(fleet, node=1)
    assert (sick["die_c"].mean(axis=0) > well["die_c"].mean(axis=0) + 15.0).all()
    assert sick["inlet_c"].mean() > well["inlet_c"].mean() + 2.0
    text = fleet.node_exposition("node-0", AT)
    (rpm,) = (float(v.split()[-1]) for v in text.splitlines() if v.startswith("ipmi_fan"))
    assert rpm < 0.75 * 11800


def test_clocks_locked_has_no_reason_in_the_mask() -> None:
    rows = window(fleet_with("clocks_locked", value=1200.0))
    assert (rows["sm_clock"][:, 1] == 1200).all()
    assert bits(rows) == 0


def test_pstate_stuck_is_slow_in_core_and_memory() -> None:
    rows = window(fleet_with("pstate_stuck"))
    assert (rows["pstate"][:, 1] == 8).all()
    assert (rows["mem_clock"][:, 1] < 0.5 * 2619).all()
    assert (rows["sm_clock"][:, 1] < 0.5 * 1980).all()
    assert np.median(rows["gpu_util"][:, 1]) > 90


def test_sync_boost_held() -> None:
    rows = window(fleet_with("sync_boost_held"))
    assert bits(rows) == 0x10
    assert rows["sync_ns"][-1, 1] - rows["sync_ns"][0, 1] == 300e9


def test_clock_ramp_is_slow_after_every_pause() -> None:
    rows = window(fleet_with("clock_ramp"))
    working = rows["busy"][:, 1] > 0.0
    assert 0.2 < working.mean() < 0.8
    assert rows["sm_clock"][working, 1].max() < 0.6 * 1980


XIDS = {
    "ecc_uncorrectable": 48, "ecc_contained": 94, "ecc_uncontained": 95,
    "ecc_correctable_storm": 92, "row_remap_pending": 63, "row_remap_failure": 64,
    "gpu_off_bus": 79, "gsp_failure": 119, "gpu_needs_reset": 110, "firmware_hang": 62,
    "driver_or_firmware_xid": 39, "queue_hang_reset": 109, "app_fault_xid": 31, "nvlink_down": 74,
}  # fmt: skip


@pytest.mark.parametrize("cause", sorted(XIDS))
def test_faults_with_an_xid_raise_it_once_and_the_gauge_keeps_it(cause: str, by_gpu) -> None:
    fleet = fleet_with(cause)
    before = by_gpu(fleet.exposition("node-0", SINCE - 15.0))["DCGM_FI_DEV_XID_ERRORS"]
    after = by_gpu(fleet.exposition("node-0", SINCE + 30.0))["DCGM_FI_DEV_XID_ERRORS"]
    assert before == {"0": 0, "1": 0, "2": 0, "3": 0}
    assert after == {"0": 0, "1": XIDS[cause], "2": 0, "3": 0}
    if cause != "gpu_off_bus":
        later = by_gpu(fleet.exposition("node-0", AT))
        assert later["DCGM_FI_DEV_XID_ERRORS"]["1"] == XIDS[cause]


def test_a_given_xid_is_used() -> None:
    fleet = fleet_with("app_fault_xid", value=13.0)
    assert 'err_code="13"' in fleet.exposition("node-0", AT)


def test_xid_counts_stay_in_their_window(by_gpu) -> None:
    fleet = fleet_with("ecc_uncorrectable")
    inside, outside = fleet.exposition("node-0", SINCE + 100.0), fleet.exposition("node-0", AT)
    assert 'xid="48"' in inside
    assert 'xid="48"' not in outside
    assert by_gpu(outside)["DCGM_EXP_XID_ERRORS_COUNT"]["1"] == 0


def test_gpu_off_bus_ends_its_series_while_the_siblings_go_on(by_gpu) -> None:
    fleet = fleet_with("gpu_off_bus")
    at_once = by_gpu(fleet.exposition("node-0", SINCE + 30.0))
    assert set(at_once["DCGM_FI_DEV_GPU_TEMP"]) == {"0", "2", "3"}
    assert at_once["DCGM_FI_DEV_XID_ERRORS"]["1"] == 79
    later = by_gpu(fleet.exposition("node-0", AT))
    assert all("1" not in values for values in later.values())
    assert set(later["DCGM_FI_DEV_GPU_TEMP"]) == {"0", "2", "3"}


def test_gpu_off_bus_may_come_without_an_xid() -> None:
    fleet = fleet_with("gpu_off_bus", severity=0.3)
    text = fleet.exposition("node-0", SINCE + 15.0)
    assert 'err_code="79"' not in text
    assert 'gpu="1"' not in text


def test_gsp_failure_leaves_only_the_xid_or_blanks(by_gpu) -> None:
    fleet = fleet_with("gsp_failure")
    shown = {n for n, v in by_gpu(fleet.exposition("node-0", AT)).items() if "1" in v}
    assert shown == {"DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"}
    fault = Fault("gsp_failure", "node-0:1", SINCE)
    leaky = Fleet(1, 2, faults=(fault,), profile=Profile(leak_blanks=True))
    lines = [v for v in leaky.exposition("node-0", AT).splitlines() if 'gpu="1"' in v]
    (sm,) = (v for v in lines if v.startswith("DCGM_FI_DEV_SM_CLOCK{"))
    assert sm.endswith(" 9223372036854775792")
    (power,) = (v for v in lines if v.startswith("DCGM_FI_DEV_POWER_USAGE{"))
    assert power.endswith(" 140737488355328.000000")


def test_ecc_faults_move_their_counters() -> None:
    rows = window(fleet_with("ecc_uncorrectable"))
    assert rows["dbe"][-1, 1] > 0
    assert rows["remap_pending"][-1, 1] == 1
    assert rows["recovery"][-1, 1] == 1
    rows = window(fleet_with("ecc_correctable_storm"))
    rate = (rows["sbe"][-1] - rows["sbe"][0]) / WINDOW_S
    assert rate[1] == pytest.approx(20.0, rel=0.05)
    assert rate[[0, 2, 3]].max() < 0.1
    rows = window(fleet_with("row_remap_failure"))
    assert rows["remap_failure"][-1, 1] == 1
    assert rows["banks_none"][-1, 1] > 0
    assert rows["dbe"][-1, 1] == 0


@pytest.mark.parametrize("cause", ["ecc_uncontained", "gpu_needs_reset", "firmware_hang"])
def test_a_gpu_that_needs_a_reset_does_no_work(cause: str) -> None:
    rows = window(fleet_with(cause))
    assert (rows["gr"][:, 1] == 0.0).all()
    assert (rows["recovery"][:, 1] == 1.0).all()


def test_a_killed_program_comes_back() -> None:
    fleet = fleet_with("app_fault_xid")
    sm = fleet.views(np.array([SINCE + 30.0, SINCE + 120.0]), [0])[0].rows["sm"][:, 1]
    assert sm[0] == 0.0
    assert sm[1] > 0.5


def test_link_faults_move_their_counters() -> None:
    rows = window(fleet_with("pcie_degraded"))
    assert (rows["link_width"][:, 1] == 4).all()
    assert (rows["link_width"][:, 0] == 16).all()
    rows = window(fleet_with("pcie_errors"))
    assert rows["replay"][-1, 1] - rows["replay"][0, 1] > 1000
    rows = window(fleet_with("nvlink_errors"))
    gained = rows["flit"][-1] - rows["flit"][0]
    assert gained[1] / WINDOW_S > 100.0
    assert gained[[0, 2, 3]].max() == 0
    assert rows["nvlink_tx"][:, 1].mean() > 0
    rows = window(fleet_with("nvlink_down"))
    assert (rows["nvlink_tx"][:, 1] == 0).all()
    rows = window(fleet_with("nvlink_degraded"))
    assert rows["nvlink_tx"][:, 1].mean() < 0.6 * rows["nvlink_tx"][:, 0].mean()
    assert rows["flit"][-1, 1] == rows["flit"][0, 1]


def test_nvswitch_fault_is_told_by_the_switch() -> None:
    text = fleet_with("nvswitch_fault").exposition("node-0", AT)
    assert 'NVSWITCH_FATAL_ERRORS{nvswitch="nvswitch0",hostname="node-0"} 20034' in text
    mild = fleet_with("nvswitch_fault", severity=0.2).exposition("node-0", AT)
    assert 'NVSWITCH_NON_FATAL_ERRORS{nvswitch="nvswitch0",hostname="node-0"} 12028' in mild


@pytest.mark.parametrize(
    ("cause", "high", "low"),
    [
        ("tensor_cores_unused", {"sm": 0.8, "fp32": 0.4}, {"tensor": 0.02}),
        ("fp64_fallback", {"sm": 0.8, "fp64": 0.3}, {"tensor": 0.02}),
        ("memory_bound", {"dram": 0.7}, {"tensor": 0.2}),
        ("compute_bound", {"tensor": 0.7}, {"dram": 0.5}),
        ("low_occupancy", {"sm": 0.7}, {"occupancy": 0.1, "tensor": 0.1, "dram": 0.2}),
        ("launch_bound", {"gr": 0.85}, {"sm": 0.35, "tensor": 0.05}),
        ("idle", {}, {"gr": 0.01, "sm": 0.01}),
    ],
)
def test_how_the_program_uses_the_gpu(
    cause: str, high: dict[str, float], low: dict[str, float]
) -> None:
    rows = window(fleet_with(cause))
    for name, bound in high.items():
        assert rows[name][:, 1].mean() > bound, name
    for name, bound in low.items():
        assert rows[name][:, 1].mean() < bound, name
    assert bits(rows) & BAD_BITS == 0


def test_gpu_memory_full() -> None:
    rows = window(fleet_with("gpu_memory_full"))
    assert (rows["fb_free"][:, 1] < 0.01 * 81559).all()


def test_gpu_contention_shows_several_pods() -> None:
    text = fleet_with("gpu_contention").exposition("node-0", AT)
    temps = [v for v in text.splitlines() if v.startswith("DCGM_FI_DEV_GPU_TEMP{")]
    pods = {v.partition('pod="')[2].partition('"')[0] for v in temps if 'gpu="1"' in v}
    assert len(pods) == 3
    assert sum('gpu="2"' in v for v in temps) == 1


def test_mig_slice_shows_instances_only() -> None:
    lines = [
        v for v in fleet_with("mig_slice").exposition("node-0", AT).splitlines() if 'gpu="1"' in v
    ]
    ids = {v.partition('GPU_I_ID="')[2].partition('"')[0] for v in lines if "_TEMP{" in v}
    assert ids == {"1", "3", "5"}
    assert not any(v.startswith("DCGM_FI_DEV_GPU_UTIL{") for v in lines)
    assert not any(v.startswith("DCGM_FI_PROF_PCIE") for v in lines)
    used = [float(v.split()[-1]) for v in lines if v.startswith("DCGM_FI_DEV_FB_USED{")]
    assert len(used) == 3
    assert max(used) < 40000


def test_cpu_starved_fills_the_host() -> None:
    fleet = fleet_with("cpu_starved")

    def load(node: str) -> float:
        lines = fleet.node_exposition(node, AT).splitlines()
        return float(next(v for v in lines if v.startswith("node_load1 ")).split()[1])

    assert load("node-0") > 64
    assert load("node-1") < 32
    assert window(fleet)["sm"].mean() < 0.5


def test_exporter_down_answers_nothing_and_up_says_so() -> None:
    fleet = fleet_with("exporter_down")
    with pytest.raises(SourceError, match="exporter on node-0"):
        fleet.exposition("node-0", AT)
    assert fleet.exposition("node-1", AT)
    text = "".join(fleet.openmetrics(AT, AT))
    assert 'up{instance="node-0:9400",job="dcgm-exporter"} 0' in text
    assert 'up{instance="node-0:9100",job="node-exporter"} 1' in text
    assert 'Hostname="node-0"' not in text


def test_metrics_missing_leaves_a_stock_exporter(by_gpu) -> None:
    fault = Fault("metrics_missing", "node-0", SINCE)
    reduced = by_gpu(Fleet(1, 2, faults=(fault,)).exposition("node-0", AT))
    stock = by_gpu(Fleet(1, 2, profile=Profile(fields="stock")).exposition("node-0", AT))
    assert set(reduced) == set(stock)


def test_profiling_paused_takes_prof_fields_only(by_gpu) -> None:
    fleet = fleet_with("profiling_paused")
    before, after = (set(by_gpu(fleet.exposition("node-0", t))) for t in (SINCE - 15.0, AT))
    assert before - after == {n for n in before if n.startswith("DCGM_FI_PROF_")}
    assert not after - before


def test_stale_data_keeps_the_time_it_was_read() -> None:
    fleet = fleet_with("stale_data")
    lines = fleet.exposition("node-0", AT).splitlines()
    temps = {v[v.index('gpu="') + 5]: v for v in lines if v.startswith("DCGM_FI_DEV_GPU_TEMP{")}
    assert temps["1"].endswith(f" {SINCE * 1000:.0f}")
    assert len(temps["0"].rpartition("}")[2].split()) == 1
    history = "".join(fleet.openmetrics(SINCE - 30.0, SINCE + 60.0, node_exporter=False))
    stamps = {
        float(v.split()[-1])
        for v in history.splitlines()
        if v.startswith("DCGM_FI_DEV_GPU_TEMP{") and 'gpu="1"' in v and 'Hostname="node-0"' in v
    }
    assert stamps == {SINCE - 30.0, SINCE - 15.0}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("power_break", "node-0", 0.0), "no simulated fault 'power_break'"),
        (Fault("power_brake", "node-0:1", 0.0), "strikes a whole node"),
        (Fault("clocks_locked", "node-9:1", 0.0), "no target 'node-9:1'"),
        (Fault("clocks_locked", "node-0:1", 0.0, severity=2.0), "outside 0..1"),
        (Fault("clocks_locked", "node-0:1", 0.0, severity=float("nan")), "outside 0..1"),
    ],
)
def test_senseless_faults_are_refused(fault: Fault, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Fleet(1, 2, faults=(fault,))


def test_names_of_faults_and_herrings_do_not_overlap() -> None:
    assert not set(FAULTS) & set(HERRINGS)
