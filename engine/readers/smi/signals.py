"""Which signal of the rules (knowledge/signals) a reading of ``nvidia-smi`` is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Reading to the signal it is (knowledge/signals), in the same unit.
SIGNALS: Final[Mapping[str, str]] = {
    "gpu_temp_c": "gpu_temp",
    "margin_c": "gpu_temp_margin",
    "max_op_temp_c": "gpu_max_op_temp",
    "slowdown_temp_c": "gpu_slowdown_temp",
    "shutdown_temp_c": "gpu_shutdown_temp",
    "memory_temp_c": "memory_temp",
    "memory_max_op_temp_c": "memory_max_op_temp",
    "fan_percent": "fan_speed",
    "power_w": "power_usage",
    "power_limit_w": "power_limit",
    "enforced_power_limit_w": "enforced_power_limit",
    "power_limit_default_w": "power_limit_default",
    "power_limit_min_w": "power_limit_min",
    "power_limit_max_w": "power_limit_max",
    "sm_clock_mhz": "sm_clock",
    "mem_clock_mhz": "mem_clock",
    "max_sm_clock_mhz": "max_sm_clock",
    "max_mem_clock_mhz": "max_mem_clock",
    "app_sm_clock_mhz": "app_sm_clock",
    "pstate": "pstate",
    "gpu_util_percent": "gpu_util",
    "mem_util_percent": "mem_copy_util",
    "fb_used_mib": "fb_used",
    "fb_free_mib": "fb_free",
    "fb_total_mib": "fb_total",
    "fb_reserved_mib": "fb_reserved",
    "pcie_gen": "pcie_link_gen",
    "pcie_gen_max": "pcie_max_link_gen",
    "pcie_width": "pcie_link_width",
    "pcie_width_max": "pcie_max_link_width",
    "pcie_replay_count": "pcie_replay",
    "retired_sbe_count": "retired_sbe",
    "retired_dbe_count": "retired_dbe",
    "remapped_correctable_count": "remapped_correctable",
    "remapped_uncorrectable_count": "remapped_uncorrectable",
    "banks_none_count": "bank_remap_none",
    "ecc_correctable_volatile_count": "ecc_sbe_volatile",
    "ecc_correctable_aggregate_count": "ecc_sbe_aggregate",
    "ecc_uncorrectable_volatile_count": "ecc_dbe_volatile",
    "ecc_uncorrectable_aggregate_count": "ecc_dbe_aggregate",
}
# Shares in percent to signals that are ratios: ``dmon --gpm-metrics``.
RATIO_SIGNALS: Final[Mapping[str, str]] = {
    "gr_engine_active_percent": "gr_engine_active",
    "sm_active_percent": "sm_active",
    "sm_occupancy_percent": "sm_occupancy",
    "tensor_active_percent": "tensor_active",
    "dram_active_percent": "dram_active",
}
# Words to the signal they are: yes-or-no flags as 1 or 0, enumerations by their number.
FLAG_SIGNALS: Final[Mapping[str, str]] = {
    "remap_pending": "row_remap_pending",
    "remap_failure": "row_remap_failure",
    "retired_pending": "retired_pending",
    "sram_threshold": "sram_exceeded",
    "unrepairable_memory": "memory_unrepairable",
}
ENUM_SIGNALS: Final[Mapping[str, tuple[str, Mapping[str, int]]]] = {
    # NVML API 13, nvmlDeviceGpuRecoveryAction_t.
    "recovery_action": (
        "recovery_action",
        {
            "none": 0,
            "reset": 1,
            "gpu reset": 1,
            "reboot": 2,
            "node reboot": 2,
            "drain p2p": 3,
            "drain and reset": 4,
        },
    ),
    # NVML API 13, nvmlGpuFabricHealthSummary.
    "fabric_summary": ("fabric_health", {"healthy": 1, "unhealthy": 2, "limited capacity": 3}),
}
COUNTER_SIGNALS: Final[Mapping[str, str]] = {
    "sw_power_cap": "sw_power_cap_ns",
    "sync_boost": "sync_boost_ns",
    "sw_thermal": "sw_thermal_ns",
    "hw_thermal": "hw_thermal_ns",
    "hw_power_brake": "hw_power_brake_ns",
}
