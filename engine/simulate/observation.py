"""From integrated state to readings: what the counters show of clocks, work, links and memory."""

from __future__ import annotations

import numpy as np

from engine.simulate import noise
from engine.simulate import workloads as w
from engine.simulate.boards import Boards
from engine.simulate.environment import Environment
from engine.simulate.noise import Floats, Ints

# Readings by name, float64[S, G].
Rows = dict[str, Floats]


def observe(boards: Boards, env: Environment, activity: Floats, steps: Ints, rows: Rows) -> None:
    """Turn integrated state and activity into what the counters report; adds to ``rows``."""
    busy = rows["busy"] > 0.0
    auto = np.where(busy, 0.0, boards.idle_pstate)
    rows["pstate"] = np.where((env.pstate >= 0.0) & busy, env.pstate, auto)
    # Lower performance states run the memory slower too.
    slow_memory = np.interp(rows["pstate"], [0.0, 5.0, 8.0], [1.0, 0.5, 0.25])
    memory: Floats = np.where(busy, boards.max_mem * slow_memory, boards.idle_mem)
    rows["mem_clock"] = np.round(memory)
    # Clocks can only take the values of the board's clock table.
    clock = np.floor(rows["ratio"] * boards.max_sm / boards.sm_step + 1e-9) * boards.sm_step
    rows["sm_clock"] = np.where(busy, clock, boards.idle_sm)

    ratio, m = np.maximum(rows["ratio"], 0.05), memory / boards.max_mem
    pipes = activity[:, :, [w.TENSOR, w.FP64, w.FP32, w.FP16]].sum(axis=2) ** 2
    compute = pipes / (pipes + activity[:, :, w.DRAM] ** 2 + 1e-9)
    # A program slows with the clock it leans on, a soft form of the roofline; a pipe's busy share
    # is work per cycle.
    speed = ratio**compute * m ** (1.0 - compute)
    per_cycle = np.where(busy, speed / ratio, 0.0)
    rows["gr"], rows["sm"] = activity[:, :, w.GR], activity[:, :, w.SM]
    rows["occupancy"] = activity[:, :, w.OCC]
    for name in ("tensor", "fp64", "fp32", "fp16"):
        value = activity[:, :, w.COLUMNS.index(name)]
        rows[name] = np.minimum(value * per_cycle, rows["sm"])
    rows["dram"] = np.minimum(activity[:, :, w.DRAM] * speed / m, 0.85)
    rows["gpu_util"] = np.round(100.0 * np.minimum(1.02 * rows["gr"], 1.0))
    rows["mem_copy_util"] = np.round(100.0 * np.minimum(1.15 * rows["dram"], 1.0))

    rows["link_gen"] = np.where(busy, np.minimum(env.gen_cap, boards.pcie_gen), 1.0)
    rows["link_width"] = env.lanes
    peak = boards.pcie_bps * env.lanes / 16.0 * 2.0 ** (rows["link_gen"] - boards.pcie_gen)
    for name, column in (("pcie_tx", w.PCIE_TX), ("pcie_rx", w.PCIE_RX)):
        wanted = activity[:, :, column] * boards.pcie_bps * speed
        rows[name] = np.round(np.minimum(wanted, 0.9 * peak))
    for name, share in (("nvlink_tx", 1.0), ("nvlink_rx", 0.98)):
        rows[name] = np.round(activity[:, :, w.NVLINK] * boards.nvlink_bps * speed * share)

    usable = boards.fb_mib - boards.fb_reserved_mib
    rows["fb_used"] = np.round(usable * activity[:, :, w.FB])
    rows["fb_free"] = usable - rows["fb_used"]
    wobble = noise.normal(boards.seed, "power reading", boards.gpus, steps)
    rows["power_w"] = rows["power_w"] * (1.0 + 0.003 * wobble)
    rows["die_c"] = np.where(env.hot_sample > 0.0, boards.max_op_c - 3.0, np.floor(rows["die_c"]))
    rows["memory_c"] = np.floor(rows["memory_c"])
    rows["gpu_util"] = np.where(env.wild_sample > 0.0, 2.0**32 - 1.0, rows["gpu_util"])
    idle_mask = env.mask_or.astype(np.int64) * ~busy
    rows["mask"] = (rows["mask"].astype(np.int64) | idle_mask).astype(np.float64)
    for name in _CARRIED:
        rows[name] = getattr(env, name)


_CARRIED = (
    "requested_w", "enforced_w", "dbe", "remap_u", "remap_c", "remap_pending", "remap_failure",
    "banks_none", "unrepairable", "sram_exceeded", "recovery", "fabric_health", "sxid_fatal",
    "sxid_nonfatal", "sight", "profiling_off", "stock_only", "down", "frozen_at", "pods", "mig",
    "host_load", "airflow",
)  # fmt: skip
