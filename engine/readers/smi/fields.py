"""Where each reading stands in the listing of ``nvidia-smi -q``.

Names are the keys of `GpuState.numbers` and `GpuState.words`. Source: ``nvidia-smi`` listings of
the driver branches 418 to 616.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# "section/key" of a listing, in lower case, with the sections as deep as needed to be unambiguous.
QUERY: Final[Mapping[str, str]] = {
    "temperature/gpu current temp": "gpu_temp_c",
    "temperature/gpu t.limit temp": "margin_c",
    "temperature/gpu max operating temp": "max_op_temp_c",
    "temperature/gpu slowdown temp": "slowdown_temp_c",
    "temperature/gpu shutdown temp": "shutdown_temp_c",
    "temperature/memory current temp": "memory_temp_c",
    "temperature/memory max operating temp": "memory_max_op_temp_c",
    "power readings/power draw": "power_w",
    "power readings/power limit": "power_limit_w",
    "power readings/default power limit": "power_limit_default_w",
    "power readings/enforced power limit": "enforced_power_limit_w",
    "power readings/min power limit": "power_limit_min_w",
    "power readings/max power limit": "power_limit_max_w",
    "gpu power readings/power draw": "power_w",
    "gpu power readings/average power draw": "power_w",
    "gpu power readings/instantaneous power draw": "power_instant_w",
    "gpu power readings/current power limit": "enforced_power_limit_w",
    "gpu power readings/requested power limit": "power_limit_w",
    "gpu power readings/default power limit": "power_limit_default_w",
    "gpu power readings/min power limit": "power_limit_min_w",
    "gpu power readings/max power limit": "power_limit_max_w",
    "module power readings/current power limit": "module_power_limit_w",
    "module power readings/default power limit": "module_power_limit_default_w",
    "clocks/sm": "sm_clock_mhz",
    "clocks/memory": "mem_clock_mhz",
    "applications clocks/graphics": "app_sm_clock_mhz",
    "max clocks/sm": "max_sm_clock_mhz",
    "max clocks/memory": "max_mem_clock_mhz",
    "performance state": "pstate",
    "fan speed": "fan_percent",
    "utilization/gpu": "gpu_util_percent",
    "utilization/memory": "mem_util_percent",
    "fb memory usage/total": "fb_total_mib",
    "fb memory usage/reserved": "fb_reserved_mib",
    "fb memory usage/used": "fb_used_mib",
    "fb memory usage/free": "fb_free_mib",
    "pci/gpu link info/pcie generation/max": "pcie_gen_max",
    "pci/gpu link info/pcie generation/current": "pcie_gen",
    "pci/gpu link info/pcie generation/device max": "pcie_device_gen_max",
    "pci/gpu link info/pcie generation/host max": "pcie_host_gen_max",
    "pci/gpu link info/link width/max": "pcie_width_max",
    "pci/gpu link info/link width/current": "pcie_width",
    "pci/replays since reset": "pcie_replay_count",
    "pci/replay number rollovers": "pcie_rollover_count",
    "persistence mode": "persistence_mode",
    "compute mode": "compute_mode",
    "mig mode/current": "mig_mode",
    "mig mode/pending": "mig_mode_pending",
    "ecc mode/current": "ecc_mode",
    "ecc mode/pending": "ecc_mode_pending",
    "gpu reset status/reset required": "reset_required",
    "gpu reset status/drain and reset recommended": "drain_and_reset",
    "gpu recovery action": "recovery_action",
    "serial number": "serial",
    "vbios version": "vbios",
    "inforom version/image version": "inforom",
    "gsp firmware version": "gsp_firmware",
    "gpu virtualization mode/virtualization mode": "virtualization_mode",
    "vgpu software licensed product/license status": "vgpu_license",
    "grid licensed product/license status": "vgpu_license",
    "fabric/state": "fabric_state",
    "fabric/status": "fabric_status",
    "fabric/cliqueid": "fabric_clique",
    "fabric/clusteruuid": "fabric_cluster",
    "fabric/health/summary": "fabric_summary",
    "fabric/health/bandwidth": "fabric_bandwidth",
    "fabric/health/route recovery in progress": "fabric_route_recovery",
    "fabric/health/route unhealthy": "fabric_route_unhealthy",
    "fabric/health/access timeout recovery": "fabric_access_timeout",
    "fabric/health/incorrect configuration": "fabric_configuration",
    "ecc errors/channel repair pending": "channel_repair_pending",
    "ecc errors/tpc repair pending": "tpc_repair_pending",
    "ecc errors/unrepairable memory": "unrepairable_memory",
    "ecc errors/aggregate/sram threshold exceeded": "sram_threshold",
    "retired pages/single bit ecc": "retired_sbe_count",
    "retired pages/double bit ecc": "retired_dbe_count",
    "retired pages/pending page blacklist": "retired_pending",
    "retired pages/pending": "retired_pending",
    "remapped rows/correctable error": "remapped_correctable_count",
    "remapped rows/uncorrectable error": "remapped_uncorrectable_count",
    "remapped rows/pending": "remap_pending",
    "remapped rows/remapping failure occurred": "remap_failure",
    "remapped rows/bank remap availability histogram/max": "banks_full_count",
    "remapped rows/bank remap availability histogram/high": "banks_high_count",
    "remapped rows/bank remap availability histogram/partial": "banks_partial_count",
    "remapped rows/bank remap availability histogram/low": "banks_low_count",
    "remapped rows/bank remap availability histogram/none": "banks_none_count",
} | {
    f"ecc errors/{span}/{key}": f"{name}_{span}_count"
    for span in ("volatile", "aggregate")
    for key, name in {
        "single bit/total": "ecc_correctable",
        "double bit/total": "ecc_uncorrectable",
        "sram correctable": "ecc_sram_correctable",
        "sram uncorrectable": "ecc_sram_uncorrectable",
        "sram uncorrectable parity": "ecc_sram_parity",
        "sram uncorrectable sec-ded": "ecc_sram_secded",
        "dram correctable": "ecc_dram_correctable",
        "dram uncorrectable": "ecc_dram_uncorrectable",
    }.items()
}  # fmt: skip

# Keys that say enough without the section they stand in: what `grep` leaves of a listing.
ALONE: Final[Mapping[str, str]] = {
    key.rpartition("/")[2]: name
    for key, name in QUERY.items()
    if key.rpartition("/")[2]
    in {
        "gpu current temp",
        "gpu t.limit temp",
        "gpu max operating temp",
        "gpu slowdown temp",
        "gpu shutdown temp",
        "memory current temp",
        "memory max operating temp",
        "average power draw",
        "instantaneous power draw",
        "requested power limit",
        "enforced power limit",
        "replays since reset",
        "replay number rollovers",
        "reset required",
        "drain and reset recommended",
        "cliqueid",
        "route recovery in progress",
        "route unhealthy",
        "access timeout recovery",
        "channel repair pending",
        "tpc repair pending",
        "unrepairable memory",
        "sram threshold exceeded",
        "single bit ecc",
        "double bit ecc",
        "pending page blacklist",
        "correctable error",
        "uncorrectable error",
        "remapping failure occurred",
    }
} | {
    "current power limit": "enforced_power_limit_w",
    "default power limit": "power_limit_default_w",
    "power draw": "power_w",
    "power limit": "power_limit_w",
    "sm": "sm_clock_mhz",
}

FLAGS: Final[Mapping[str, str]] = {
    "idle": "gpu_idle",
    "applications clocks setting": "clocks_setting",
    "sw power cap": "sw_power_cap",
    "hw slowdown": "hw_slowdown",
    "hw thermal slowdown": "hw_thermal",
    "hw power brake slowdown": "hw_power_brake",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal",
    "display clock setting": "display_clocks",
}
COUNTERS: Final[Mapping[str, str]] = {
    "sw power capping": "sw_power_cap",
    "sw power cap": "sw_power_cap",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal",
    "hw thermal slowdown": "hw_thermal",
    "hw power braking": "hw_power_brake",
    "hw power brake slowdown": "hw_power_brake",
}


def _ends(paths: Mapping[str, str]) -> Mapping[str, str]:
    """Every path and its ends of two parts or more, as far as they mean one thing."""
    found: dict[str, str | None] = {}
    for path, name in paths.items():
        parts = path.split("/")
        for start in range(max(len(parts) - 1, 1)):
            end = "/".join(parts[start:])
            found[end] = name if found.get(end, name) == name else None
    return {end: name for end, name in found.items() if name is not None}


_BY_PATH: Final = _ends(QUERY)
# Sections of a listing, with those whose keys look like others' (power of the memory, of the
# module) or are of no use here.
SECTIONS: Final = frozenset(part for path in QUERY for part in path.split("/")[:-1]) | {
    "accounting mode",
    "addressing mode",
    "aggregate uncorrectable sram sources",
    "bar1 memory usage",
    "bridge chip",
    "capabilities",
    "clock policy",
    "clocks event reasons",
    "clocks event reasons counters",
    "clocks throttle reasons",
    "conf compute protected memory usage",
    "default applications clocks",
    "deferred clocks",
    "device attributes",
    "dram encryption mode",
    "driver model",
    "encoder stats",
    "fbc stats",
    "gpu memory power readings",
    "gpu operation mode",
    "ibmnpu",
    "inforom bbx object flush",
    "max customer boost clocks",
    "mig device",
    "platform info",
    "power samples",
    "power smoothing",
    "processes",
    "shared",
    "voltage",
    "workload power profiles",
}


def query_field(sections: Sequence[str], key: str) -> str | None:
    """Return the reading that a key of a listing is, by the sections around it (lower case)."""
    path = [*sections, key]
    for start in range(len(path) - 1):
        name = _BY_PATH.get("/".join(path[start:]))
        if name is not None:
            return name
    if key in QUERY:
        return QUERY[key]
    return None if sections and sections[-1] in SECTIONS else ALONE.get(key)
