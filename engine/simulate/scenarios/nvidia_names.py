"""How exporters spell the fields of an NVIDIA GPU, and which of them each publishes.

Four ways: dcgm-exporter with a well-kept list of counters (``full``), the same under the names of
DCGM 4.6 (``canonical``), the list that comes with it (``stock``: no clock event reasons, no power
limits, no ECC counters, no SM activity), and nvidia_gpu_exporter, which repeats ``nvidia-smi``
(``smi``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.samples import Floats

# Fields of etc/default-counters.csv of dcgm-exporter 4.5.3-4.8.2.
STOCK = frozenset(
    {
        *("DEV_SM_CLOCK", "DEV_MEM_CLOCK", "DEV_MEMORY_TEMP", "DEV_GPU_TEMP", "DEV_POWER_USAGE"),
        *("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_PCIE_REPLAY_COUNTER", "DEV_GPU_UTIL"),
        *("DEV_MEM_COPY_UTIL", "DEV_XID_ERRORS", "DEV_FB_FREE", "DEV_FB_USED", "DEV_FB_RESERVED"),
        *("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_UNCORRECTABLE_REMAPPED_ROWS"),
        *("DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_FAILURE", "PROF_GR_ENGINE_ACTIVE"),
        *("PROF_PIPE_TENSOR_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_PCIE_TX_BYTES"),
        "PROF_PCIE_RX_BYTES",
    }
)

# dcgm_fields.h of DCGM 4.6.0; fields that are not here kept their names.
CANONICAL = {
    "DEV_CLOCK_THROTTLE_REASONS": "DEV_CLOCKS_EVENT_REASONS",
    "DEV_PSTATE": "DEV_GPU_PSTATE",
    "DEV_GPU_TEMP": "DEV_GPU_TEMP_CELSIUS",
    "DEV_MEMORY_TEMP": "DEV_MEMORY_TEMP_CELSIUS",
    "DEV_GPU_MAX_OP_TEMP": "DEV_GPU_MAX_OP_TEMP_CELSIUS",
    "DEV_MEM_MAX_OP_TEMP": "DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
    "DEV_SLOWDOWN_TEMP": "DEV_GPU_TEMP_SLOWDOWN_CELSIUS",
    "DEV_SHUTDOWN_TEMP": "DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
    "DEV_POWER_USAGE": "DEV_BOARD_POWER_WATTS",
    "DEV_POWER_MGMT_LIMIT": "DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS",
    "DEV_POWER_MGMT_LIMIT_DEF": "DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",
    "DEV_ENFORCED_POWER_LIMIT": "DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",
    "DEV_XID_ERRORS": "DEV_XID_ERROR",
    "DEV_UNCORRECTABLE_REMAPPED_ROWS": "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
    "DEV_CORRECTABLE_REMAPPED_ROWS": "DEV_ROW_REMAP_CORRECTABLE_TOTAL",
    "DEV_ROW_REMAP_FAILURE": "DEV_ROW_REMAP_FAILED",
    "DEV_RETIRED_PENDING": "DEV_PAGE_RETIRED_PENDING",
    "DEV_RETIRED_SBE": "DEV_PAGE_RETIRED_SBE_TOTAL",
    "DEV_RETIRED_DBE": "DEV_PAGE_RETIRED_DBE_TOTAL",
    "DEV_PCIE_REPLAY_COUNTER": "DEV_PCIE_REPLAY_TOTAL",
    "DEV_PCIE_COUNT_CORRECTABLE_ERRORS": "DEV_PCIE_CORRECTABLE_ERROR_TOTAL",
    "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "DEV_NVLINK_CRC_FLIT_ERROR_TOTAL",
    "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "DEV_NVLINK_CRC_DATA_ERROR_TOTAL",
    "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "DEV_NVLINK_REPLAY_ERROR_TOTAL",
    "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "DEV_NVLINK_RECOVERY_ERROR_TOTAL",
    "DEV_NVLINK_BANDWIDTH_TOTAL": "DEV_NVLINK_THROUGHPUT_TOTAL",
    "PROF_GR_ENGINE_ACTIVE": "PROF_GR_ENGINE_UTIL_RATIO",
    "PROF_SM_ACTIVE": "PROF_SM_UTIL_RATIO",
    "PROF_SM_OCCUPANCY": "PROF_SM_OCCUPANCY_RATIO",
    "PROF_PIPE_TENSOR_ACTIVE": "PROF_TENSOR_UTIL_RATIO",
    "PROF_DRAM_ACTIVE": "PROF_DRAM_UTIL_RATIO",
    "PROF_PIPE_FP64_ACTIVE": "PROF_FP64_UTIL_RATIO",
    "PROF_PIPE_FP32_ACTIVE": "PROF_FP32_UTIL_RATIO",
    "PROF_PIPE_FP16_ACTIVE": "PROF_FP16_UTIL_RATIO",
}

# nvidia_gpu_exporter: field, name, factor; it repeats nvidia-smi's columns in base units.
_SMI: tuple[tuple[str, str, float], ...] = (
    ("DEV_SM_CLOCK", "clocks_current_sm_clock_hz", 1e6),
    ("DEV_MEM_CLOCK", "clocks_current_memory_clock_hz", 1e6),
    ("DEV_MAX_SM_CLOCK", "clocks_max_sm_clock_hz", 1e6),
    ("DEV_PSTATE", "pstate", 1.0),
    ("DEV_GPU_TEMP", "temperature_gpu", 1.0),
    ("DEV_MEMORY_TEMP", "temperature_memory", 1.0),
    ("DEV_POWER_USAGE", "power_draw_watts", 1.0),
    ("DEV_POWER_MGMT_LIMIT", "power_limit_watts", 1.0),
    ("DEV_POWER_MGMT_LIMIT_DEF", "power_default_limit_watts", 1.0),
    ("DEV_ENFORCED_POWER_LIMIT", "enforced_power_limit_watts", 1.0),
    ("DEV_GPU_UTIL", "utilization_gpu_ratio", 0.01),
    ("DEV_MEM_COPY_UTIL", "utilization_memory_ratio", 0.01),
    ("DEV_FB_USED", "memory_used_bytes", 1048576.0),
    ("DEV_FB_FREE", "memory_free_bytes", 1048576.0),
    ("DEV_PCIE_LINK_GEN", "pcie_link_gen_current", 1.0),
    ("DEV_PCIE_MAX_LINK_GEN", "pcie_link_gen_max", 1.0),
    ("DEV_PCIE_LINK_WIDTH", "pcie_link_width_current", 1.0),
    ("DEV_PCIE_MAX_LINK_WIDTH", "pcie_link_width_max", 1.0),
    ("DEV_ECC_SBE_VOL_TOTAL", "ecc_errors_corrected_volatile_total", 1.0),
    ("DEV_ECC_DBE_VOL_TOTAL", "ecc_errors_uncorrected_volatile_total", 1.0),
)
_SMI_REASONS = (
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
)

Fields = dict[str, Floats | float]


@dataclass(frozen=True, slots=True)
class Style:
    """Spelling of one fleet's exporter. ``host_label`` names the host, ``reasons`` field 112."""

    kind: str
    host_label: str
    reasons: str = "DEV_CLOCK_THROTTLE_REASONS"


def style(rng: np.random.Generator, *, stock: bool = False, smi: bool = False) -> Style:
    """Choose how a fleet is exported.

    Args:
        rng: where chance comes from.
        stock: the story can also be told from the list that dcgm-exporter brings.
        smi: likewise from what nvidia-smi prints.
    """
    kinds = ["full", "full", "canonical", *(["stock"] if stock else []), *(["smi"] if smi else [])]
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "canonical":
        return Style(kind, "hostname", CANONICAL["DEV_CLOCK_THROTTLE_REASONS"])
    label = ("Hostname", "Hostname", "hostname", "node", "instance")[int(rng.integers(5))]
    old = rng.random() < 0.5
    reasons = "DEV_CLOCK_THROTTLE_REASONS" if old else "DEV_CLOCKS_EVENT_REASONS"
    return Style(kind, "instance" if kind == "smi" else label, reasons)


def dcgm(how: Style, fields: Fields) -> Fields:
    """Return the fields that a dcgm-exporter of this style publishes, under its metric names."""
    rename: Callable[[str], str] = {
        "canonical": lambda name: CANONICAL.get(name, name),
    }.get(how.kind, lambda name: name)
    return {
        "DCGM_FI_" + (how.reasons if name == "DEV_CLOCK_THROTTLE_REASONS" else rename(name)): value
        for name, value in fields.items()
        if how.kind != "stock" or name in STOCK
    }


def smi(fields: Fields) -> Fields:
    """Return the fields that nvidia_gpu_exporter publishes, under its metric names."""
    out: Fields = {
        f"nvidia_smi_{name}": fields[key] * factor for key, name, factor in _SMI if key in fields
    }
    if "DEV_FB_USED" in fields and "DEV_FB_FREE" in fields:
        total = fields["DEV_FB_USED"] + fields["DEV_FB_FREE"] + fields["DEV_FB_RESERVED"]
        out["nvidia_smi_memory_total_bytes"] = total * 1048576.0
    mask = fields.get("DEV_CLOCK_THROTTLE_REASONS")
    if mask is not None:
        out["nvidia_smi_clocks_throttle_reasons_active"] = mask
        whole = np.asarray(mask).astype(np.int64)
        for bit, name in _SMI_REASONS:
            out[f"nvidia_smi_clocks_throttle_reasons_{name}"] = ((whole & bit) > 0).astype(
                np.float64
            )
    return out
