"""The alerts of the knowledge base: when each fires, under old and new metric names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import packaged
from tests.support.promtool import run

CATALOGUE = packaged.catalogue()
MADE = packaged.exported()
REFERENCE = [alert for alert in MADE.alerts if alert.origin == "reference"]
GPU = '{gpu="0",UUID="GPU-a",hostname="n1",instance="n1:9400"}'
OTHER = '{gpu="1",UUID="GPU-b",hostname="n1",instance="n1:9400"}'
TEMPERATURE = ("DCGM_FI_DEV_GPU_TEMP" + GPU, "50x200")
UP = ('up{job="dcgm-exporter",instance="n1:9400"}', "1x200")
SEEN = [TEMPERATURE, UP]


def xid(code: int, pod: str = "") -> str:
    more = f',pod="{pod}"' if pod else ""
    return f'DCGM_FI_DEV_XID_ERRORS{GPU[:-1]},err_code="{code}",err_msg="x"{more}}}'


def d(name: str) -> str:
    return f"DCGM_FI_{name}{GPU}"


# What is going on, the series (a sample every 30 s), the moment, and what fires.
CASES: list[tuple[str, list[tuple[str, str]], str, list[str]]] = [
    ("idle, then a power cap", [*SEEN, (d("DEV_CLOCKS_EVENT_REASONS"), "1x100 4x100")], "60m", []),
    ("software thermal, old name", [*SEEN, (d("DEV_CLOCK_THROTTLE_REASONS"), "36x200")], "30m",
     ["gpu_thermal_throttle"]),
    ("hardware thermal", [*SEEN, (d("DEV_CLOCKS_EVENT_REASONS"), "72x200")], "30m",
     ["gpu_thermal_throttle"]),
    ("power brake", [*SEEN, (d("DEV_CLOCKS_EVENT_REASONS"), "136x200")], "30m",
     ["gpu_power_brake"]),
    ("hardware slowdown alone", [*SEEN, (d("DEV_CLOCKS_EVENT_REASONS"), "8x200")], "30m",
     ["gpu_hw_slowdown"]),
    ("a tenth of the time in thermal slowdown",
     [*SEEN, (d("DEV_THERMAL_VIOLATION"), "0+3000000000x200")], "30m", ["gpu_thermal_throttle"]),
    ("a new Xid", [*SEEN, (xid(79), "_x80 79x120")], "42m", ["gpu_xid_error"]),
    ("the same Xid a quarter of an hour later", [*SEEN, (xid(79), "_x80 79x120")], "60m", []),
    ("an old Xid on a GPU that gets a new pod",
     [*SEEN, (xid(79, "a"), "79x100 _x100"), (xid(79, "b"), "_x100 79x100")], "55m", []),
    ("an Xid of the program", [*SEEN, (xid(31), "_x80 31x120")], "42m", ["gpu_xid_application"]),
    ("an Xid that the exporter counted",
     [*SEEN, (f'DCGM_EXP_XID_ERRORS_COUNT{GPU[:-1]},xid="48",window_size_in_ms="300000"}}', "1x200")],
     "20m", ["gpu_xid_error"]),
    ("a GPU that has gone", [*SEEN, ("DCGM_FI_DEV_GPU_TEMP" + OTHER, "50x40")], "60m",
     ["gpu_lost"]),
    ("near its limit", [UP, (d("DEV_GPU_TEMP"), "85x200"), (d("DEV_GPU_MAX_OP_TEMP"), "87x200")],
     "30m", ["gpu_high_temperature"]),
    ("warm", [UP, (d("DEV_GPU_TEMP"), "83x200"), (d("DEV_GPU_MAX_OP_TEMP"), "87x200")], "30m", []),
    ("a limit of 0 means none is told",
     [UP, (d("DEV_GPU_TEMP"), "83x200"), (d("DEV_GPU_MAX_OP_TEMP"), "0x200"),
      (d("DEV_GPU_TEMP_LIMIT"), "4x200")], "30m", []),
    ("one degree of margin, new names",
     [UP, (d("DEV_GPU_TEMP_CELSIUS"), "86x200"), (d("DEV_GPU_TEMP_MARGIN_CELSIUS"), "1x200")],
     "30m", ["gpu_high_temperature"]),
    ("hot memory",
     [*SEEN, (d("DEV_MEMORY_TEMP"), "93x200"), (d("DEV_MEM_MAX_OP_TEMP"), "95x200")], "30m",
     ["gpu_memory_hot"]),
    ("a new double-bit error", [*SEEN, (d("DEV_ECC_DBE_VOL_TOTAL"), "0x78 1x120")], "42m",
     ["gpu_uncorrectable_ecc"]),
    ("double-bit errors of old", [*SEEN, (d("DEV_ECC_DBE_VOL_TOTAL"), "3x200")], "42m", []),
    ("a burst of corrected errors", [*SEEN, (d("DEV_ECC_SBE_VOL_TOTAL"), "0x60 5000x140")], "45m",
     ["gpu_corrected_ecc"]),
    ("work on few SMs",
     [*SEEN, (d("PROF_SM_ACTIVE"), "0.2x200"), (d("DEV_FB_USED"), "40000x200")], "60m",
     ["gpu_sm_underutilized"]),
    ("work on all SMs",
     [*SEEN, (d("PROF_SM_ACTIVE"), "0.9x200"), (d("DEV_FB_USED"), "40000x200")], "60m", []),
    ("work on few SMs, new names",
     [*SEEN, (d("PROF_SM_UTIL_RATIO"), "0.2x200"), (d("DEV_FB_USED_BYTES"), "40000000000x200")],
     "60m", ["gpu_sm_underutilized"]),
    ("half the clock under load",
     [*SEEN, (d("DEV_SM_CLOCK"), "900x200"), (d("DEV_MAX_SM_CLOCK"), "1980x200"),
      (d("PROF_GR_ENGINE_ACTIVE"), "0.97x200")], "60m", ["gpu_clock_low_under_load"]),
    ("a lowered power limit",
     [*SEEN, (d("DEV_ENFORCED_POWER_LIMIT"), "500x200"), (d("DEV_POWER_MGMT_LIMIT_DEF"), "700x200")],
     "60m", ["gpu_power_limit_lowered"]),
    ("an exporter that is down", [TEMPERATURE, (UP[0], "0x200")], "60m", ["exporter_down"]),
    ("no GPU metrics at all", [("something_else", "1x200")], "60m", ["exporter_absent"]),
    ("profiling fields that stopped", [*SEEN, (d("PROF_GR_ENGINE_ACTIVE"), "0.5x40")], "60m",
     ["profiling_metrics_missing"]),
    ("NVLink replays", [*SEEN, (d("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"), "0+1x200")], "60m",
     ["nvlink_errors"]),
    ("few CRC errors", [*SEEN, (d("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"), "0+10x200")], "60m",
     []),
    ("many CRC errors", [*SEEN, (d("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"), "0+6000x200")], "60m",
     ["nvlink_errors"]),
    ("a fabric manager that failed", [*SEEN, (d("DEV_FABRIC_MANAGER_STATUS"), "4x200")], "60m",
     ["fabric_manager_not_ready"]),
    ("a fabric in order",
     [*SEEN, (d("DEV_FABRIC_MANAGER_STATUS"), "3x200"), (d("DEV_FABRIC_HEALTH_SUMMARY"), "1x200")],
     "60m", []),
    ("PCIe replays", [*SEEN, (d("DEV_PCIE_REPLAY_COUNTER"), "0+20x200")], "60m", ["pcie_replay"]),
    ("half the PCIe lanes",
     [*SEEN, (d("DEV_PCIE_LINK_WIDTH"), "8x200"), (d("DEV_PCIE_MAX_LINK_WIDTH"), "16x200")], "60m",
     ["pcie_width_degraded"]),
    ("row remapping",
     [*SEEN, (d("DEV_ROW_REMAP_PENDING"), "1x200"), (d("DEV_ROW_REMAP_FAILURE"), "1x200")], "60m",
     ["gpu_row_remap_pending", "gpu_row_remap_failure"]),
    ("the driver wants a reboot", [*SEEN, (d("DEV_GET_GPU_RECOVERY_ACTION"), "2x200")], "60m",
     ["gpu_recovery_action"]),
    ("memory held, nothing done",
     [*SEEN, (d("PROF_GR_ENGINE_ACTIVE"), "0x250"), (d("DEV_FB_USED"), "40000x250")], "90m",
     ["gpu_idle_with_memory"]),
    ("a health watch that fails",
     [*SEEN, (f'DCGM_EXP_GPU_HEALTH_STATUS{GPU[:-1]},health_watch="PCIE"}}', "20x200")], "60m",
     ["gpu_health_status"]),
    ("NVLink 5 recovery that failed",
     [*SEEN, (d("DEV_NVLINK_RECOVERY_FAILED_TOTAL"), "0x100 1x100")], "55m", ["nvlink5_errors"]),
    ("a fatal SXid",
     [*SEEN, ('DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS{nvswitch="nvswitch0",hostname="n1"}',
              "0x80 20034x120")], "42m", ["nvswitch_sxid"]),
]  # fmt: skip


def only_reference() -> str:
    """The rule file without the recorded series: the reference alerts must work alone."""
    from engine.export.yamltext import dump

    rules = [{"alert": a.id, "expr": a.expr, "for": a.hold} for a in REFERENCE]
    return dump({"groups": [{"name": "reference", "interval": "30s", "rules": rules}]})


def test_each_alert_fires_when_it_should_and_no_other_does(tmp_path: Path):
    tests: list[dict[str, Any]] = [
        {
            "name": name,
            "interval": "30s",
            "input_series": [{"series": s, "values": v} for s, v in series],
            "promql_expr_test": [
                {
                    "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": at,
                    "exp_samples": [{"labels": f'{{alertname="{a}"}}', "value": 1} for a in fire],
                }
            ],
        }
        for name, series, at, fire in CASES
    ]
    assert run(tmp_path, only_reference(), tests, "30s") == ""


def test_every_alert_of_the_knowledge_base_is_tried():
    tried = {name for _, _, _, fire in CASES for name in fire}
    assert tried == {alert.id for alert in REFERENCE}


def test_they_are_exported_as_written():
    entries = CATALOGUE.entries["alerts"]
    assert [alert.id for alert in REFERENCE] == list(entries)
    for alert in REFERENCE:
        entry = entries[alert.id]
        assert alert.expr.split() == str(entry["expr"]).split()
        assert (alert.hold, alert.labels["severity"]) == (entry["for"], entry["severity"])
