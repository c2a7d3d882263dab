"""Where ``amd-smi`` prints what: paths of listings and JSON, and columns of its CSV.

A path is the keys in lower case joined by dots, without the GPU: ``temperature.hotspot``. Source:
ROCm/amdsmi amdsmi_cli 24.6 to 26 (metric, static, list), ROCm/rocm-systems projects/amdsmi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from engine.readers.amd_smi.state import AmdGpu
from engine.readers.amd_smi.values import most, reading, word

_NUMBERS: Final[Mapping[str, str]] = {
    "usage.gfx_activity": "gfx_activity_percent",
    "usage.gfx_usage": "gfx_activity_percent",
    "usage.umc_activity": "umc_activity_percent",
    "usage.mem_usage": "umc_activity_percent",
    "power.socket_power": "power_w",
    "power.current_power": "power_w",
    "power.average_socket_power": "power_w",
    "power.current_socket_power": "power_w",
    "power.power_limit": "power_cap_w",
    "temperature.edge": "edge_c",
    "temperature.hotspot": "hotspot_c",
    "temperature.junction": "hotspot_c",
    "temperature.mem": "memory_c",
    "temperature.vram": "memory_c",
    "pcie.width": "pcie_width_lanes",
    "pcie.current_lanes": "pcie_width_lanes",
    "pcie.speed": "pcie_speed_gts",
    "pcie.current_speed": "pcie_speed_gts",
    "pcie.replay_count": "pcie_replay_count",
    "pcie.nak_sent_count": "pcie_nak_sent_count",
    "pcie.nak_received_count": "pcie_nak_received_count",
    "pcie.replay_roll_over_count": "pcie_replay_rollover_count",
    "ecc.total_correctable_count": "correctable_count",
    "ecc.total_uncorrectable_count": "uncorrectable_count",
    "ecc.total_deferred_count": "deferred_count",
    "mem_usage.total_vram": "vram_total_mb",
    "mem_usage.used_vram": "vram_used_mb",
    "fan.usage": "fan_percent",
    "bus.max_pcie_width": "pcie_max_width_lanes",
    "bus.max_pcie_lanes": "pcie_max_width_lanes",
    "bus.max_pcie_speed": "pcie_max_speed_gts",
    "limit.max_power": "power_cap_max_w",
    "limit.max_power_limit": "power_cap_max_w",
    "limit.ppt0.max_power_limit": "power_cap_max_w",
    "limit.socket_power": "power_cap_w",
    "limit.current_power": "power_cap_w",
    "limit.power_limit": "power_cap_w",
    "limit.socket_power_limit": "power_cap_w",
    "limit.ppt0.socket_power_limit": "power_cap_w",
    "limit.slowdown_edge_temperature": "slowdown_edge_c",
    "limit.slowdown_hotspot_temperature": "slowdown_hotspot_c",
    "limit.slowdown_vram_temperature": "slowdown_memory_c",
    "limit.slowdown_mem_temperature": "slowdown_memory_c",
    "limit.shutdown_hotspot_temperature": "shutdown_hotspot_c",
    "limit.shutdown_vram_temperature": "shutdown_memory_c",
    "limit.shutdown_mem_temperature": "shutdown_memory_c",
    "ras.bad_page_threshold": "bad_page_threshold_count",
}
_VIOLATION: Final = re.compile(
    r"^(?:throttle|violation)\.(?P<what>[a-z_]{2,48}?)_(?P<form>violation_activity|violation_status"
    r"|activity|percentage|status)$"
)
_VIOLATIONS: Final[Mapping[str, str]] = {
    "prochot": "prochot",
    "processor_hot": "prochot",
    "ppt": "ppt",
    "socket_thermal": "socket_thermal",
    "vr_thermal": "vr_thermal",
    "hbm_thermal": "hbm_thermal",
    "gfx_clk_below_host_limit": "below_host_limit",
    "gfx_clk_below_host_limit_power": "below_host_limit_power",
    "gfx_clk_below_host_limit_thermal": "below_host_limit_thermal",
    "gfx_clk_below_host_limit_pwr": "below_host_limit_power",
    "gfx_clk_below_host_limit_thm": "below_host_limit_thermal",
    "gfx_clk_below_host_limit_total": "below_host_limit",
    "total_gfx_clk_below_host_limit": "below_host_limit",
    "low_utilization": "low_utilization",
}
_CLOCK: Final = re.compile(r"^clock\.(?P<which>gfx|mem|sys)_?(?P<n>\d{0,2})\.(?P<what>\w{3,10})$")
_ECC: Final = re.compile(
    r"^ecc_blocks\.(?P<block>\w{2,16})\.(?P<what>correctable|uncorrectable|deferred)_count$"
)
_ECC_PLACE: Final = {"correctable": 0, "uncorrectable": 1, "deferred": 2}
_WORDS: Final[Mapping[str, str]] = {
    "power.throttle_status": "throttle_status",
    "perf_level": "perf_level",
    "xgmi_err": "xgmi_error",
    "ras.bad_page_threshold_exceeded": "bad_page_threshold_exceeded",
    "partition.compute_partition": "compute_partition",
    "partition.accelerator_partition": "compute_partition",
    "partition.memory_partition": "memory_partition",
    "asic.market_name": "model",
    "board.product_name": "product",
    "driver.version": "driver",
}
# Lists of partitions: throttle.….xcp_0.
_XCP: Final = re.compile(r"\.xcp_\d{1,2}$")
_PAGES: Final = re.compile(r"^(?P<kind>retired|pending|un_res)(?P<page>\.page_address)?$")
_NO_PAGES: Final = "no bad pages found"
_PCI: Final = frozenset({"bdf", "bus.bdf"})
_PARTITION: Final = frozenset({"partition_id", "partition.partition_id", "xcp"})


def put(gpu: AmdGpu, path: str, raw: object) -> bool:
    """Store a value; return whether its path is one of those that are known."""
    if "xcp_" in path:
        path = _XCP.sub("", path)
    if (name := _NUMBERS.get(path)) is not None:
        _number(gpu, name, raw)
        return True
    if violation := _VIOLATION.match(path):
        _violation(gpu, violation["what"], violation["form"], raw)
        return True
    if clock := _CLOCK.match(path):
        _clock(gpu, clock["which"], clock["what"], raw)
        return True
    if ecc := _ECC.match(path):
        value = reading(raw)
        if value is not None and len(gpu.ecc) < 64:
            counts = list(gpu.ecc.get(ecc["block"], (0, 0, 0)))
            counts[_ECC_PLACE[ecc["what"]]] = int(value)
            gpu.ecc[ecc["block"]] = (counts[0], counts[1], counts[2])
        return True
    if pages := _PAGES.match(path):
        _page(gpu, pages["kind"], raw, of_list=pages["page"] is not None)
        return True
    if path in _PCI:
        gpu.pci = (word(raw, 16) or "").lower() or gpu.pci
        return True
    if path in _PARTITION:
        value = reading(raw)
        gpu.partition = gpu.partition if value is None else int(value)
        return True
    if (name := _WORDS.get(path)) is not None:
        text = word(raw)
        if text is not None:
            gpu.words[name] = text
            if name == "model":
                gpu.model = text
        return True
    return False


def flat(value: object, prefix: str = "", depth: int = 0) -> dict[str, object]:
    """Flatten nested keys into paths; ``{"value": …, "unit": …}`` is one value."""
    found: dict[str, object] = {}
    if isinstance(value, Mapping) and not ("value" in value and len(value) <= 2):
        if depth < 6:
            for key, inner in list(value.items())[:512]:
                name = str(key)[:64].lower().replace(" ", "_")
                found |= flat(inner, f"{prefix}.{name}" if prefix else name, depth + 1)
        return found
    if prefix:
        found[prefix] = value
    return found


# CSV has only the last keys: the paths that they stand for. `mem` alone is a temperature there.
CSV: Final[Mapping[str, str]] = {
    **{path.rsplit(".", 1)[1]: path for path in _NUMBERS if not path.startswith("usage.mem")},
    "mem": "temperature.mem",
    "socket_power": "power.socket_power",
    "current_power": "power.socket_power",
    "bdf": "bdf",
    "gpu_bdf": "bdf",
    "market_name": "asic.market_name",
    "throttle_status": "power.throttle_status",
    "perf_level": "perf_level",
    "xgmi_err": "xgmi_err",
    "partition_id": "partition_id",
    "power_usage": "power.socket_power",
    "max_power": "power.power_limit",
    "hotspot_temperature": "temperature.hotspot",
    "memory_temperature": "temperature.mem",
    "gfx": "usage.gfx_activity",
    "gfx_clock": "clock.gfx_0.clk",
    "gfx_clk": "clock.gfx_0.clk",
    "mem_clock": "clock.mem_0.clk",
    "mem_util": "usage.umc_activity",
    "gfx_util": "usage.gfx_activity",
    "vram_used": "mem_usage.used_vram",
    "vram_total": "mem_usage.total_vram",
    "single_bit_ecc": "ecc.total_correctable_count",
    "double_bit_ecc": "ecc.total_uncorrectable_count",
    "pcie_replay": "pcie.replay_count",
    "pviol": "throttle.ppt_violation_activity",
    "tviol": "throttle.socket_thermal_violation_activity",
    "phot_tviol": "throttle.prochot_violation_activity",
    "vr_tviol": "throttle.vr_thermal_violation_activity",
    "hbm_tviol": "throttle.hbm_thermal_violation_activity",
    "tviol_active": "throttle.socket_thermal_violation_status",
    "gfx_clkviol": "throttle.gfx_clk_below_host_limit_total_violation_activity",
    "gfxclk_totalviol": "throttle.gfx_clk_below_host_limit_total_violation_activity",
    "gfxclk_pviol": "throttle.gfx_clk_below_host_limit_power_violation_activity",
    "gfxclk_tviol": "throttle.gfx_clk_below_host_limit_thermal_violation_activity",
    "low_utilviol": "throttle.low_utilization_violation_activity",
    # Headings of `amd-smi monitor`.
    "power": "power.socket_power",
    "pwr_cap": "power.power_limit",
    "gpu_temp": "temperature.hotspot",
    "hotspot_temp": "temperature.hotspot",
    "gpu_t": "temperature.hotspot",
    "mem_temp": "temperature.mem",
    "mem_t": "temperature.mem",
    "gfx%": "usage.gfx_activity",
    "mem%": "usage.umc_activity",
    "throttle": "power.throttle_status",
    "single_bit": "ecc.total_correctable_count",
    "single_ecc": "ecc.total_correctable_count",
    "double_ecc": "ecc.total_uncorrectable_count",
    "correctable_ecc": "ecc.total_correctable_count",
    "uncorrectable_ecc": "ecc.total_uncorrectable_count",
    "xcp": "xcp",
}
_NOW: Final = ("clk", "cur_clk", "frequency", "current")
_CSV_CLOCK: Final = re.compile(r"^(gfx|mem)_(\d{1,2})_(clk|min_clk|max_clk|clk_locked)$")
_CSV_ECC: Final = re.compile(r"^(\w{2,16})_((?:un)?correctable|deferred)_count$")


def csv_path(column: str) -> str | None:
    """Return the path that a CSV column stands for."""
    name = column.strip().lower()
    if clock := _CSV_CLOCK.match(name):
        return f"clock.{clock[1]}_{clock[2]}.{clock[3]}"
    if name in CSV:
        return CSV[name]
    if ecc := _CSV_ECC.match(name):
        return f"ecc_blocks.{ecc[1]}.{ecc[2]}_count" if ecc[1] not in ("total", "cache") else None
    return f"throttle.{name}" if "violation" in name else None


def _number(gpu: AmdGpu, name: str, raw: object) -> None:
    value = reading(raw)
    if value is not None:
        gpu.numbers[name] = value
    elif isinstance(raw, str):
        gpu.lacks(name)


def _items(raw: object) -> list[object]:
    if isinstance(raw, bool):
        return ["TRUE" if raw else "FALSE"]
    if isinstance(raw, list):
        return raw[:512]
    return list(raw.split(",")[:512]) if isinstance(raw, str) else []


def _page(gpu: AmdGpu, kind: str, raw: object, *, of_list: bool) -> None:
    """Count a page, or take note that there is none."""
    if of_list:
        gpu.pages[kind] = gpu.pages.get(kind, 0) + 1
    elif isinstance(raw, str) and raw.strip().lower().startswith(_NO_PAGES):
        gpu.pages.setdefault(kind, 0)


def _violation(gpu: AmdGpu, what: str, form: str, raw: object) -> None:
    known = _VIOLATIONS.get(what)
    if known is None:
        return
    if form.endswith("status"):
        words = [word(one) or "" for one in _items(raw)]
        if {"ACTIVE", "TRUE"} & {one.strip(" []'").upper() for one in words}:
            gpu.activate(known)
        return
    value = most(raw)
    if value is not None and 0 <= value <= 100:
        name = f"{known}_percent"
        gpu.numbers[name] = max(value, gpu.numbers.get(name, 0.0))


def _clock(gpu: AmdGpu, which: str, what: str, raw: object) -> None:
    """One GPU has a clock for each XCD: the slowest counts, and the highest limit."""
    if what == "clk_locked":
        if (word(raw) or "").upper() == "ENABLED" and which != "mem":
            gpu.words["clk_locked"] = "ENABLED"
        return
    value = reading(raw)
    kind = "mem" if which == "mem" else "gfx"
    if value is None:
        if what in _NOW and isinstance(raw, str):
            gpu.lacks(f"{kind}_clock_mhz")
        return
    if what in _NOW:
        name = f"{kind}_clock_mhz"
        gpu.numbers[name] = min(value, gpu.numbers.get(name, value))
    elif what in ("max_clk", "max"):
        name = f"{kind}_clock_max_mhz"
        gpu.numbers[name] = max(value, gpu.numbers.get(name, value))
