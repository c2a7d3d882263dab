"""The metrics of the simulated dcgm-exporter: names, types, where each value comes from.

Names up to exporter 4.8.3 are the legacy ones; DCGM 4.6 renamed most fields (same numbers, same
units), and a custom CSV may carry the new names. Ratios are 0..1, violation counters nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from engine.simulate.boards import Boards
from engine.simulate.noise import Floats
from engine.simulate.observation import Rows

Reader = Callable[[Rows, Boards, slice], Floats]


class Form(Enum):
    """Type of a DCGM field, which decides how it is printed and which blank it has."""

    INT64 = "int64"
    FP64 = "fp64"


class Mig(Enum):
    """What a field reads on a MIG instance."""

    WHOLE = "the value of the whole GPU"
    SHARE = "the instance's share"
    OWN = "the instance's own activity"
    ABSENT = "nothing"


@dataclass(frozen=True, slots=True)
class Field:
    """One exported DCGM field.

    Attributes:
        legacy, canonical: metric names before and since the renaming of DCGM 4.6.
        kind: ``gauge`` or ``counter`` as the exporter declares it.
        help: help text.
        read: returns float64[samples, GPUs]; NaN where the board does not support the field.
        form: printed as integer or with six decimals.
        stock: exported by an unchanged default-counters.csv.
        profiling: a PROF field, blank while profiling is paused.
        ratio: a share of cycles, which a mis-scaled exporter prints as percent.
        mig: what a MIG instance shows.
    """

    legacy: str
    canonical: str
    kind: str
    help: str
    read: Reader
    form: Form = Form.INT64
    stock: bool = False
    profiling: bool = False
    ratio: bool = False
    mig: Mig = Mig.WHOLE


def _row(name: str) -> Reader:
    return lambda rows, _boards, _cols: rows[name]


def _board(name: str) -> Reader:
    def read(rows: Rows, boards: Boards, cols: slice) -> Floats:
        column: Floats = getattr(boards, name)[cols]
        finite = np.where(np.isfinite(column), column, np.nan)
        return np.broadcast_to(finite, rows["die_c"].shape)

    return read


def _fixed(value: float) -> Reader:
    return lambda rows, _boards, _cols: np.full(rows["die_c"].shape, value)


def _memory_temp(rows: Rows, boards: Boards, cols: slice) -> Floats:
    return np.where(np.isfinite(boards.mem_max_op_c[cols]), rows["memory_c"], np.nan)


def _margin(rows: Rows, boards: Boards, cols: slice) -> Floats:
    return np.asarray(boards.max_op_c[cols] - rows["die_c"])


def _fb_total(rows: Rows, boards: Boards, cols: slice) -> Floats:
    return np.asarray(rows["fb_used"] + rows["fb_free"] + boards.fb_reserved_mib[cols])


def _with_lifetime(name: str, lifetime: str) -> Reader:
    return lambda rows, _boards, _cols: rows[name] + rows[lifetime]


def _nvlink(name: str) -> Reader:
    return lambda rows, boards, cols: np.where(boards.nvlink_bps[cols] > 0.0, rows[name], np.nan)


def _nvlink_mb(rows: Rows, boards: Boards, cols: slice) -> Floats:
    total = np.round((rows["nvlink_tx"] + rows["nvlink_rx"]) / 1e6)
    return np.where(boards.nvlink_bps[cols] > 0.0, total, np.nan)


def _fabric(value: Reader) -> Reader:
    def read(rows: Rows, boards: Boards, cols: slice) -> Floats:
        return np.where(boards.nvlink_bps[cols] > 0.0, value(rows, boards, cols), np.nan)

    return read


def _plain(
    name: str,
    canonical: str,
    help_text: str,
    read: Reader,
    kind: str = "gauge",
    *,
    stock: bool = False,
) -> Field:
    return Field(f"DCGM_FI_{name}", f"DCGM_FI_{canonical}", kind, help_text, read, stock=stock)


def _watts(name: str, canonical: str, help_text: str, read: Reader, stock: bool = False) -> Field:
    legacy, new = f"DCGM_FI_DEV_{name}", f"DCGM_FI_DEV_{canonical}"
    return Field(legacy, new, "gauge", help_text, read, Form.FP64, stock)


def _ratio(name: str, canonical: str, help_text: str, row: str, stock: bool = False) -> Field:
    return Field(
        f"DCGM_FI_PROF_{name}", f"DCGM_FI_PROF_{canonical}_RATIO", "gauge", help_text, _row(row),
        Form.FP64, stock, profiling=True, ratio=True, mig=Mig.OWN,
    )  # fmt: skip


def _bytes(name: str, help_text: str, read: Reader, stock: bool = False) -> Field:
    full = f"DCGM_FI_PROF_{name}"
    return Field(full, full, "gauge", help_text, read, stock=stock, profiling=True, mig=Mig.ABSENT)


def _count(name: str, canonical: str, help_text: str, read: Reader, stock: bool = False) -> Field:
    return _plain(f"DEV_{name}", f"DEV_{canonical}", help_text, read, "counter", stock=stock)


def _ns(name: str, help_text: str, row: str | None) -> Field:
    read = _fixed(0.0) if row is None else _row(row)
    return _count(name, name, f"{help_text} (in ns).", read)


XID = _plain("DEV_XID_ERRORS", "DEV_XID_ERROR", "Last XID error seen.", _row("xid"), stock=True)
NVLINK_TOTAL = _plain(
    "DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_NVLINK_THROUGHPUT_TOTAL",
    "NVLink traffic, both directions, all links (in MB/s).", _nvlink_mb, stock=True,
)  # fmt: skip

_CLOCKS = (
    _plain("DEV_SM_CLOCK", "DEV_SM_CLOCK", "SM clock (in MHz).", _row("sm_clock"), stock=True),
    _plain("DEV_MEM_CLOCK", "DEV_MEM_CLOCK", "Memory clock (in MHz).", _row("mem_clock"),
           stock=True),
    _plain("DEV_APP_SM_CLOCK", "DEV_APP_SM_CLOCK", "Application SM clock (in MHz).",
           _board("max_sm")),
    _plain("DEV_MAX_SM_CLOCK", "DEV_MAX_SM_CLOCK", "Maximum SM clock (in MHz).", _board("max_sm")),
    _plain("DEV_MAX_MEM_CLOCK", "DEV_MAX_MEM_CLOCK", "Maximum memory clock (in MHz).",
           _board("max_mem")),
    _plain("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS",
           "Clock event reasons (bitmask).", _row("mask")),
    _plain("DEV_PSTATE", "DEV_GPU_PSTATE", "Performance state (0 is fastest).", _row("pstate")),
    _plain("DEV_FAN_SPEED", "DEV_FAN_SPEED", "Fan speed (in %).", _fixed(np.nan)),
)  # fmt: skip
_HEAT = (
    _plain("DEV_MEMORY_TEMP", "DEV_MEMORY_TEMP_CELSIUS", "Memory temperature (in C).",
           _memory_temp, stock=True),
    _plain("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS", "GPU temperature (in C).", _row("die_c"),
           stock=True),
    _plain("DEV_MEM_MAX_OP_TEMP", "DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
           "Maximum operating temperature of the memory (in C).", _board("mem_max_op_c")),
    _plain("DEV_GPU_MAX_OP_TEMP", "DEV_GPU_MAX_OP_TEMP_CELSIUS",
           "Maximum operating temperature of the GPU (in C).", _board("max_op_c")),
    _plain("DEV_GPU_TEMP_LIMIT", "DEV_GPU_TEMP_MARGIN_CELSIUS",
           "Kelvin left to the nearest slowdown threshold.", _margin),
    _plain("DEV_SLOWDOWN_TEMP", "DEV_GPU_TEMP_SLOWDOWN_CELSIUS",
           "Hardware slowdown temperature (in C).", _board("slowdown_c")),
    _plain("DEV_SHUTDOWN_TEMP", "DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
           "Shutdown temperature (in C).", _board("shutdown_c")),
)  # fmt: skip
_POWER = (
    _watts("POWER_USAGE", "BOARD_POWER_WATTS", "Power draw (in W).", _row("power_w"), stock=True),
    _watts("POWER_MGMT_LIMIT", "BOARD_POWER_LIMIT_REQUESTED_WATTS", "Requested limit (in W).",
           _row("requested_w")),
    _watts("POWER_MGMT_LIMIT_MIN", "BOARD_POWER_LIMIT_MIN_WATTS", "Lowest limit (in W).",
           _board("power_min_w")),
    _watts("POWER_MGMT_LIMIT_MAX", "BOARD_POWER_LIMIT_MAX_WATTS", "Highest limit (in W).",
           _board("tdp_w")),
    _watts("POWER_MGMT_LIMIT_DEF", "BOARD_POWER_LIMIT_DEFAULT_WATTS", "Default limit (in W).",
           _board("tdp_w")),
    _watts("ENFORCED_POWER_LIMIT", "BOARD_POWER_LIMIT_ENFORCED_WATTS", "Enforced limit (in W).",
           _row("enforced_w")),
    _count("TOTAL_ENERGY_CONSUMPTION", "TOTAL_ENERGY_CONSUMPTION",
           "Energy since the driver was loaded (in mJ).", _row("energy_mj"), stock=True),
)  # fmt: skip
_VIOLATIONS = (
    _ns("POWER_VIOLATION", "Time held back by power", "power_ns"),
    _ns("THERMAL_VIOLATION", "Time held back by heat", "thermal_ns"),
    _ns("SYNC_BOOST_VIOLATION", "Time held back by sync boost", "sync_ns"),
    _ns("BOARD_LIMIT_VIOLATION", "Time held back by board limits", None),
    _ns("LOW_UTIL_VIOLATION", "Time at low clocks for lack of work", "low_util_ns"),
    _ns("RELIABILITY_VIOLATION", "Time held back for reliability", None),
    _ns("CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", "Time under software power cap", "power_ns"),
    _ns("CLOCKS_EVENT_REASON_SYNC_BOOST_NS", "Time under sync boost", "sync_ns"),
    _ns("CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", "Time under software thermal slowdown",
        "sw_thermal_ns"),
    _ns("CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", "Time under hardware thermal slowdown",
        "hw_thermal_ns"),
    _ns("CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", "Time under power brake", "brake_ns"),
)  # fmt: skip
_MEMORY = (
    _plain("DEV_FB_FREE", "DEV_FB_FREE", "Framebuffer free (in MiB).", _row("fb_free"),
           stock=True),
    _plain("DEV_FB_USED", "DEV_FB_USED", "Framebuffer used (in MiB).", _row("fb_used"),
           stock=True),
    _plain("DEV_FB_RESERVED", "DEV_FB_RESERVED", "Framebuffer reserved (in MiB).",
           _board("fb_reserved_mib"), stock=True),
    _plain("DEV_FB_TOTAL", "DEV_FB_TOTAL", "Framebuffer (in MiB).", _fb_total),
    _count("ECC_SBE_VOL_TOTAL", "ECC_SBE_VOL_TOTAL", "Corrected errors since reload.",
           _row("sbe")),
    _count("ECC_DBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL", "Uncorrectable errors since reload.",
           _row("dbe")),
    _count("ECC_SBE_AGG_TOTAL", "ECC_SBE_AGG_TOTAL", "Corrected errors, lifetime.",
           _with_lifetime("sbe", "lifetime_sbe")),
    _count("ECC_DBE_AGG_TOTAL", "ECC_DBE_AGG_TOTAL", "Uncorrectable errors, lifetime.",
           _with_lifetime("dbe", "lifetime_dbe")),
    _count("RETIRED_SBE", "PAGE_RETIRED_SBE_TOTAL", "Pages retired for corrected errors.",
           _fixed(np.nan)),
    _count("RETIRED_DBE", "PAGE_RETIRED_DBE_TOTAL", "Pages retired for uncorrectable errors.",
           _fixed(np.nan)),
    _plain("DEV_RETIRED_PENDING", "DEV_PAGE_RETIRED_PENDING", "Pages waiting for retirement.",
           _fixed(np.nan)),
    _count("UNCORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_UNCORRECTABLE_TOTAL",
           "Rows remapped for uncorrectable errors.", _row("remap_u"), stock=True),
    _count("CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_CORRECTABLE_TOTAL",
           "Rows remapped for corrected errors.", _row("remap_c"), stock=True),
    _plain("DEV_ROW_REMAP_FAILURE", "DEV_ROW_REMAP_FAILED", "Row remapping has failed.",
           _row("remap_failure"), stock=True),
    _plain("DEV_ROW_REMAP_PENDING", "DEV_ROW_REMAP_PENDING", "A row remap waits for a reset.",
           _row("remap_pending")),
    _plain("DEV_BANKS_REMAP_ROWS_AVAIL_NONE", "DEV_BANK_REMAP_AVAIL_NONE",
           "Banks without spare rows.", _row("banks_none")),
    _plain("DEV_THRESHOLD_SRM", "DEV_SRAM_EXCEEDED", "SRAM error threshold exceeded.",
           _row("sram_exceeded")),
    _plain("DEV_MEMORY_UNREPAIRABLE_FLAG", "DEV_MEMORY_UNREPAIRABLE", "Memory cannot be repaired.",
           _row("unrepairable")),
    _plain("DEV_GET_GPU_RECOVERY_ACTION", "DEV_GPU_RECOVERY_ACTION", "Recovery action asked for.",
           _row("recovery")),
)  # fmt: skip
_USE = (
    _plain("DEV_GPU_UTIL", "DEV_GPU_UTIL", "GPU utilization (in %).", _row("gpu_util"),
           stock=True),
    _plain("DEV_MEM_COPY_UTIL", "DEV_MEM_COPY_UTIL", "Memory utilization (in %).",
           _row("mem_copy_util"), stock=True),
    _plain("DEV_ENC_UTIL", "DEV_ENC_UTIL", "Encoder utilization (in %).", _fixed(0.0), stock=True),
    _plain("DEV_DEC_UTIL", "DEV_DEC_UTIL", "Decoder utilization (in %).", _fixed(0.0), stock=True),
    _plain("DEV_VGPU_LICENSE_STATUS", "DEV_VGPU_LICENSE_STATUS", "vGPU licence status.",
           _fixed(0.0), stock=True),
    _ratio("GR_ENGINE_ACTIVE", "GR_ENGINE_UTIL", "Time the engine was active.", "gr", stock=True),
    _ratio("SM_ACTIVE", "SM_UTIL", "Cycles an SM had a warp resident.", "sm"),
    _ratio("SM_OCCUPANCY", "SM_OCCUPANCY", "Resident warps of the maximum.", "occupancy"),
    _ratio("PIPE_TENSOR_ACTIVE", "TENSOR_UTIL", "Cycles the tensor pipe was active.", "tensor",
           stock=True),
    _ratio("DRAM_ACTIVE", "DRAM_UTIL", "Cycles device memory moved data.", "dram", stock=True),
    _ratio("PIPE_FP64_ACTIVE", "FP64_UTIL", "Cycles the FP64 pipe was active.", "fp64"),
    _ratio("PIPE_FP32_ACTIVE", "FP32_UTIL", "Cycles the FP32 pipe was active.", "fp32"),
    _ratio("PIPE_FP16_ACTIVE", "FP16_UTIL", "Cycles the FP16 pipe was active.", "fp16"),
)  # fmt: skip
_LINKS = (
    _bytes("PCIE_TX_BYTES", "PCIe bytes sent per second.", _row("pcie_tx"), stock=True),
    _bytes("PCIE_RX_BYTES", "PCIe bytes received per second.", _row("pcie_rx"), stock=True),
    _count("PCIE_REPLAY_COUNTER", "PCIE_REPLAY_TOTAL", "PCIe replays.", _row("replay"),
           stock=True),
    _count("PCIE_COUNT_CORRECTABLE_ERRORS", "PCIE_CORRECTABLE_ERROR_TOTAL",
           "PCIe correctable errors.", _row("pcie_errors")),
    _plain("DEV_PCIE_MAX_LINK_GEN", "DEV_PCIE_MAX_LINK_GEN", "Highest PCIe generation.",
           _board("pcie_gen")),
    _plain("DEV_PCIE_MAX_LINK_WIDTH", "DEV_PCIE_MAX_LINK_WIDTH", "Highest PCIe width.",
           _fixed(16.0)),
    _plain("DEV_PCIE_LINK_GEN", "DEV_PCIE_LINK_GEN", "PCIe generation.", _row("link_gen")),
    _plain("DEV_PCIE_LINK_WIDTH", "DEV_PCIE_LINK_WIDTH", "PCIe width.", _row("link_width")),
    NVLINK_TOTAL,
    _bytes("NVLINK_TX_BYTES", "NVLink bytes sent per second.", _nvlink("nvlink_tx")),
    _bytes("NVLINK_RX_BYTES", "NVLink bytes received per second.", _nvlink("nvlink_rx")),
    _count("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_CRC_FLIT_ERROR_TOTAL",
           "NVLink flit CRC errors.", _nvlink("flit")),
    _count("NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "NVLINK_CRC_DATA_ERROR_TOTAL",
           "NVLink data CRC errors.", _nvlink("data")),
    _count("NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLINK_REPLAY_ERROR_TOTAL",
           "NVLink replay errors.", _nvlink("nv_replay")),
    _count("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "NVLINK_RECOVERY_ERROR_TOTAL",
           "NVLink recovery errors.", _nvlink("nv_recovery")),
    # 3 is DcgmFMStatusSuccess: the fabric manager has set the fabric up.
    _plain("DEV_FABRIC_MANAGER_STATUS", "DEV_FABRIC_MANAGER_STATUS", "Fabric manager status.",
           _fabric(_fixed(3.0))),
    _plain("DEV_FABRIC_HEALTH_SUMMARY", "DEV_FABRIC_HEALTH_SUMMARY", "Fabric health.",
           _fabric(_row("fabric_health"))),
)  # fmt: skip

_ABSENT_WITH_MIG = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL"}
_SHARED_WITH_MIG = {"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_TOTAL"}


def mig_view(field: Field) -> Mig:
    """Return what a MIG instance shows of a field."""
    if field.legacy in _ABSENT_WITH_MIG:
        return Mig.ABSENT
    return Mig.SHARE if field.legacy in _SHARED_WITH_MIG else field.mig


FIELDS: tuple[Field, ...] = (
    *_CLOCKS, *_HEAT, *_POWER, *_VIOLATIONS, XID, *_MEMORY, *_USE, *_LINKS,
)  # fmt: skip
