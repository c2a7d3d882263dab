"""What each exporter set-up prints."""

import re
import shutil
import subprocess

import pytest

from engine.errors import UsageError
from engine.simulate import MODELS, Fault, Fleet, Profile
from engine.simulate.fields import FIELDS

AT = 1764432000.0 + 900.0

# The rows that are on in dcgm-exporter's default-counters.csv (4.5.3-4.8.2 and 4.6.0-4.8.3).
STOCK = {
    f"DCGM_FI_{name}"
    for name in [
        "DEV_SM_CLOCK",
        "DEV_MEM_CLOCK",
        "DEV_MEMORY_TEMP",
        "DEV_GPU_TEMP",
        "DEV_POWER_USAGE",
        "DEV_TOTAL_ENERGY_CONSUMPTION",
        "DEV_PCIE_REPLAY_COUNTER",
        "DEV_GPU_UTIL",
        "DEV_MEM_COPY_UTIL",
        "DEV_ENC_UTIL",
        "DEV_DEC_UTIL",
        "DEV_XID_ERRORS",
        "DEV_FB_FREE",
        "DEV_FB_USED",
        "DEV_FB_RESERVED",
        "DEV_NVLINK_BANDWIDTH_TOTAL",
        "DEV_VGPU_LICENSE_STATUS",
        "DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DEV_CORRECTABLE_REMAPPED_ROWS",
        "DEV_ROW_REMAP_FAILURE",
        "PROF_GR_ENGINE_ACTIVE",
        "PROF_PIPE_TENSOR_ACTIVE",
        "PROF_DRAM_ACTIVE",
        "PROF_PCIE_TX_BYTES",
        "PROF_PCIE_RX_BYTES",
    ]
}


def text_of(profile: Profile, model: str = "h100_sxm", workload: str = "training") -> str:
    fleet = Fleet(1, 2, model=model, workloads=(workload,), profile=profile)
    return fleet.exposition("node-0", AT)


def test_stock_exports_the_default_rows_and_nothing_else(by_gpu) -> None:
    assert set(by_gpu(text_of(Profile(fields="stock")))) == STOCK


def test_full_exports_every_field_the_board_supports(by_gpu) -> None:
    names = set(by_gpu(text_of(Profile())))
    unsupported = {"DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_RETIRED_DBE",
                   "DCGM_FI_DEV_RETIRED_PENDING"}  # fmt: skip
    assert {f.legacy for f in FIELDS} - unsupported <= names
    assert not unsupported & names


def test_canonical_names_replace_the_legacy_ones(by_gpu) -> None:
    names = set(by_gpu(text_of(Profile(names="canonical"))))
    assert {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_BOARD_POWER_WATTS",
            "DCGM_FI_PROF_SM_UTIL_RATIO", "DCGM_FI_DEV_XID_ERROR"} <= names  # fmt: skip
    assert not {f.legacy for f in FIELDS if f.legacy != f.canonical} & names


def test_labels_are_those_of_a_real_exporter() -> None:
    line = next(v for v in text_of(Profile()).splitlines() if v.startswith("DCGM_FI_DEV_SM_CLOCK{"))
    assert re.fullmatch(
        r'DCGM_FI_DEV_SM_CLOCK\{gpu="0",UUID="GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",'
        r'pci_bus_id="0{8}:18:00\.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",'
        r'Hostname="node-0",DCGM_FI_DRIVER_VERSION="[\d.]+",container="main",namespace="ml",'
        r'pod="train-node-0-0"\} \d+',
        line,
    )


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_model_name_is_printed_as_exporters_do(model: str) -> None:
    assert f'modelName="{MODELS[model].name}"' in text_of(Profile(), model)


@pytest.mark.parametrize("label", ["Hostname", "hostname", ""])
def test_the_host_label_is_spelled_as_asked(label: str) -> None:
    line = next(
        v
        for v in text_of(Profile(host_label=label)).splitlines()  # type: ignore[arg-type]
        if v.startswith("DCGM_FI_DEV_SM_CLOCK{")
    )
    spelled = {name for name in ("Hostname", "hostname") if f',{name}="node-0"' in line}
    assert spelled == ({label} if label else set())


def test_the_old_exporter_calls_the_nvlink_rate_a_counter() -> None:
    old, new = text_of(Profile()), text_of(Profile(host_label="hostname"))
    assert "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter" in old
    assert "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL gauge" in new


def test_percent_scales_prof_ratios_and_nothing_else(by_gpu) -> None:
    plain, scaled = by_gpu(text_of(Profile())), by_gpu(text_of(Profile(percent=True)))
    for name in plain:
        factor = 100.0 if name.startswith("DCGM_FI_PROF_") and "BYTES" not in name else 1.0
        assert scaled[name]["0"] == pytest.approx(factor * plain[name]["0"], rel=1e-3, abs=1e-3)


def test_blanks_leak_where_the_board_has_no_reading(by_gpu) -> None:
    leaky = by_gpu(text_of(Profile(leak_blanks=True), "l40s"))
    assert leaky["DCGM_FI_DEV_MEMORY_TEMP"]["0"] == float(9223372036854775794)
    assert leaky["DCGM_FI_DEV_FAN_SPEED"]["0"] == float(9223372036854775794)
    assert "DCGM_FI_DEV_MEMORY_TEMP" not in by_gpu(text_of(Profile(), "l40s"))


def test_floating_point_blanks_leak_while_profiling_is_paused(by_gpu) -> None:
    fault = Fault("profiling_paused", "node-0", AT - 60.0)
    fleet = Fleet(1, 1, faults=(fault,), profile=Profile(leak_blanks=True))
    seen = by_gpu(fleet.exposition("node-0", AT))
    assert seen["DCGM_FI_PROF_SM_ACTIVE"]["0"] == 140737488355328.0
    assert seen["DCGM_FI_PROF_PCIE_TX_BYTES"]["0"] == float(9223372036854775792)


def test_the_xid_series_can_be_absent_until_the_first_xid(by_gpu) -> None:
    fault = Fault("app_fault_xid", "node-0:1", AT - 60.0)
    fleet = Fleet(1, 2, faults=(fault,), profile=Profile(xid_absent=True))
    assert "DCGM_FI_DEV_XID_ERRORS" not in by_gpu(fleet.exposition("node-0", AT - 90.0))
    assert by_gpu(fleet.exposition("node-0", AT))["DCGM_FI_DEV_XID_ERRORS"] == {"1": 31}


def test_clock_events_count_samples_of_the_last_five_minutes() -> None:
    fault = Fault("power_brake", "node-0", AT - 150.0)
    fleet = Fleet(1, 1, faults=(fault,), profile=Profile(collect_s=15.0))
    line = next(
        v
        for v in fleet.exposition("node-0", AT).splitlines()
        if v.startswith("DCGM_EXP_CLOCK_EVENTS_COUNT{") and "hw_power_brake" in v
    )
    assert 'window_size_in_ms="300000"' in line
    assert line.endswith(" 11")


def test_exported_pod_is_what_a_scrape_without_honor_labels_leaves() -> None:
    fleet = Fleet(1, 1, profile=Profile(exported_pod=True))
    text = "".join(fleet.openmetrics(AT, AT, node_exporter=False))
    line = next(v for v in text.splitlines() if v.startswith("DCGM_FI_DEV_SM_CLOCK{"))
    assert 'exported_pod="train-node-0-0"' in line
    assert ',pod="nvidia-dcgm-exporter-node-0"' in line
    assert "exported_pod" not in fleet.exposition("node-0", AT)


def test_idle_gpus_have_no_pod() -> None:
    assert "pod=" not in text_of(Profile(), workload="idle")
    assert "pod=" not in text_of(Profile(pods=False))


@pytest.mark.parametrize("seconds", [0.0, -5.0, 7.0])
def test_an_impossible_collection_interval_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="collection interval"):
        Profile(collect_s=seconds)


@pytest.mark.parametrize(
    "profile",
    [Profile(), Profile(fields="stock"), Profile(names="canonical", leak_blanks=True)],
    ids=["full", "stock", "canonical"],
)
def test_promtool_reads_a_scrape(profile: Profile) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing; install the prometheus package"
    fleet = Fleet(1, 2, profile=profile)
    for text in (fleet.exposition("node-0", AT), fleet.node_exposition("node-0", AT)):
        done = subprocess.run(
            [promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False
        )
        # 0: fine, 3: style only (DCGM's names break Prometheus's naming rules), 1: not parsed.
        assert done.returncode in {0, 3}, done.stderr
        assert "error while" not in done.stderr
