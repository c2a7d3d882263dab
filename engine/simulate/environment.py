"""Everything a fault can change, as arrays over time and GPUs.

Faults write into an `Environment`; the physics and the exporter only read it. A healthy fleet is
`Environment.calm`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from engine.simulate.boards import Boards
from engine.simulate.noise import Floats

# How much of a GPU the exporter can still see.
VISIBLE, XID_ONLY, GONE = 0.0, 1.0, 2.0


@dataclass(slots=True)
class Environment:
    """Conditions of G GPUs at S steps; every array is float64[S, G].

    Flags are 0.0 or 1.0. Attributes by group:

    Heat: ``resistance`` (factor on die temperature rise), ``mem_rise`` (extra K on the memory),
    ``airflow`` (factor, 1.0 healthy), ``inlet_rise`` (K), ``driver_floor`` (lowest clock ratio
    that software thermal slowdown goes to).

    Power and clocks: ``requested_w`` and ``enforced_w`` (power limits), ``brake``, ``clock_cap``
    (highest SM clock as a ratio of maximum), ``sync_boost`` (flag), ``pstate`` (-1 is automatic),
    ``slew`` (highest rise of the clock ratio per second), ``mask_or`` (clock event bits that are
    reported on top of the true ones).

    Work: ``phase`` (row of the phase table, -1 is the workload's own), ``blend`` (share of that
    phase, 0..1), ``work`` (factor on all activity), ``fb`` (used framebuffer ratio, -1 is the
    workload's own), ``burst`` (flag: work comes in short bursts), ``pods``, ``mig`` (flag).

    Memory: ``sbe_rate`` (corrected errors per second), ``dbe``, ``remap_u``, ``remap_c`` (counts
    added), ``remap_pending``, ``remap_failure``, ``banks_none``, ``unrepairable``,
    ``sram_exceeded``, ``recovery`` (action code).

    Links: ``lanes``, ``gen_cap``, ``replay_rate``, ``pcie_error_rate``, ``flit_rate``,
    ``data_rate``, ``nv_replay_rate``, ``nv_recovery_rate`` (per second), ``nvlink`` (factor on
    traffic), ``fabric_health`` (1 healthy, 2 unhealthy, 3 limited), ``sxid_fatal``,
    ``sxid_nonfatal`` (last code, 0 is none).

    Sight: ``sight`` (`VISIBLE`, `XID_ONLY` or `GONE`), ``profiling_off``, ``stock_only``,
    ``down``, ``frozen_at`` (Unix seconds of the last fresh reading, inf is fresh), ``hot_sample``
    and ``wild_sample`` (flags: one odd but harmless sample), ``host_load`` (runnable tasks per
    CPU on top of the usual).
    """

    resistance: Floats
    mem_rise: Floats
    airflow: Floats
    inlet_rise: Floats
    driver_floor: Floats
    requested_w: Floats
    enforced_w: Floats
    brake: Floats
    clock_cap: Floats
    sync_boost: Floats
    pstate: Floats
    slew: Floats
    mask_or: Floats
    phase: Floats
    blend: Floats
    work: Floats
    fb: Floats
    burst: Floats
    pods: Floats
    mig: Floats
    sbe_rate: Floats
    dbe: Floats
    remap_u: Floats
    remap_c: Floats
    remap_pending: Floats
    remap_failure: Floats
    banks_none: Floats
    unrepairable: Floats
    sram_exceeded: Floats
    recovery: Floats
    lanes: Floats
    gen_cap: Floats
    replay_rate: Floats
    pcie_error_rate: Floats
    flit_rate: Floats
    data_rate: Floats
    nv_replay_rate: Floats
    nv_recovery_rate: Floats
    nvlink: Floats
    fabric_health: Floats
    sxid_fatal: Floats
    sxid_nonfatal: Floats
    sight: Floats
    profiling_off: Floats
    stock_only: Floats
    down: Floats
    frozen_at: Floats
    hot_sample: Floats
    wild_sample: Floats
    host_load: Floats

    @classmethod
    def calm(cls, steps: int, boards: Boards) -> Self:
        """Return the conditions of a healthy fleet for a number of steps."""
        usual: dict[str, float | Floats] = {
            "resistance": 1.0, "airflow": 1.0, "driver_floor": 0.45, "clock_cap": 1.0,
            "requested_w": boards.tdp_w, "enforced_w": boards.tdp_w, "pstate": -1.0,
            "slew": np.inf, "phase": -1.0, "work": 1.0, "fb": -1.0, "pods": 1.0, "lanes": 16.0,
            "gen_cap": boards.pcie_gen, "nvlink": 1.0, "fabric_health": 1.0, "frozen_at": np.inf,
            # A rare corrected error is normal life of HBM, and so is a rare PCIe replay.
            "sbe_rate": 2e-6, "replay_rate": 4e-6,
        }  # fmt: skip
        shape = (steps, len(boards))
        return cls(
            **{f.name: np.full(shape, usual.get(f.name, 0.0), dtype=float) for f in fields(cls)}
        )
