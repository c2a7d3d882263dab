"""The fleet's hardware as columns: one number per GPU, so that physics runs on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.simulate import noise
from engine.simulate import workloads as w
from engine.simulate.hardware import GpuModel
from engine.simulate.noise import Floats, Ints, Words

# Share of the power above idle that an activity of 1.0 costs at full clocks. Dense matrix work
# (tensor about 0.85, DRAM about 0.6) reaches the power limit, memory-bound decode takes about 0.6
# of it, and an FP64 load is the hungriest per busy cycle.
_POWER_WEIGHTS = np.zeros(len(w.COLUMNS))
for _column, _weight in (
    (w.GR, 0.10), (w.SM, 0.25), (w.TENSOR, 0.55), (w.DRAM, 0.35),
    (w.FP64, 0.90), (w.FP32, 0.35), (w.FP16, 0.35), (w.NVLINK, 0.06),
):  # fmt: skip
    _POWER_WEIGHTS[_column] = _weight

_INLET_C = 23.0


def dynamic_power(boards: Boards, activity: Floats) -> Floats:
    """Return watts above idle at full clocks for activity [..., G, columns], float64[..., G]."""
    return (activity @ _POWER_WEIGHTS) * (boards.tdp_w - boards.idle_w) * boards.silicon


@dataclass(slots=True)
class Boards:
    """Hardware of G GPUs on N nodes. Every float64[G] unless said otherwise.

    Attributes:
        models: the model of each GPU.
        node: int64[G], the node each GPU sits in, ascending.
        gpus, nodes: uint64[G] and uint64[N], entity numbers for noise.
        silicon: spread of power from chip to chip (1.0 is typical).
        resistance: die temperature above inlet per watt, with each cooler's own spread.
        inlet_c: float64[N], usual inlet temperature of each node (degC).
        typical_w: power of each GPU in the main phase of its workload (W).
    """

    seed: int
    models: Sequence[GpuModel]
    node: Ints
    gpus: Words
    nodes: Words
    tdp_w: Floats = field(init=False)
    power_min_w: Floats = field(init=False)
    idle_w: Floats = field(init=False)
    max_sm: Floats = field(init=False)
    idle_sm: Floats = field(init=False)
    sm_step: Floats = field(init=False)
    max_mem: Floats = field(init=False)
    idle_mem: Floats = field(init=False)
    idle_pstate: Floats = field(init=False)
    max_op_c: Floats = field(init=False)
    slowdown_c: Floats = field(init=False)
    shutdown_c: Floats = field(init=False)
    mem_max_op_c: Floats = field(init=False)
    heat: Floats = field(init=False)
    fb_mib: Floats = field(init=False)
    fb_reserved_mib: Floats = field(init=False)
    pcie_gen: Floats = field(init=False)
    pcie_bps: Floats = field(init=False)
    nvlink_bps: Floats = field(init=False)
    silicon: Floats = field(init=False)
    resistance: Floats = field(init=False)
    inlet_c: Floats = field(init=False)
    typical_w: Floats = field(init=False)

    def __post_init__(self) -> None:
        def column(name: str) -> Floats:
            return np.array([getattr(m, name) for m in self.models], dtype=np.float64)

        self.tdp_w, self.power_min_w = column("tdp_w"), column("power_min_w")
        self.idle_w = column("idle_w")
        self.max_sm, self.idle_sm = column("max_sm_mhz"), column("idle_sm_mhz")
        self.sm_step = column("sm_step_mhz")
        self.max_mem, self.idle_mem = column("max_mem_mhz"), column("idle_mem_mhz")
        self.idle_pstate = column("idle_pstate")
        self.max_op_c, self.slowdown_c = column("max_op_c"), column("slowdown_c")
        self.shutdown_c = column("shutdown_c")
        self.mem_max_op_c = np.array(
            [np.inf if m.mem_max_op_c is None else m.mem_max_op_c for m in self.models]
        )
        self.heat = column("heat_j_per_k")
        self.fb_mib, self.fb_reserved_mib = column("fb_mib"), column("fb_reserved_mib")
        self.pcie_gen, self.pcie_bps = column("pcie_gen"), column("pcie_bps")
        self.nvlink_bps = column("nvlink_bps")

        def spread(channel: str, part: float) -> Floats:
            return 1.0 + part * (2.0 * noise.constant(self.seed, channel, self.gpus) - 1.0)

        self.silicon = spread("silicon", 0.03)
        self.resistance = column("rise_k_per_w") * spread("cooler", 0.04)
        self.inlet_c = _INLET_C + 3.0 * noise.constant(self.seed, "inlet", self.nodes)
        self.typical_w = self.idle_w

    def __len__(self) -> int:
        return len(self.models)

    def set_workload(self, main_phase: Ints) -> None:
        """Fill ``typical_w`` from the phase every GPU is usually in, int64[G]."""
        self.typical_w = np.minimum(
            self.idle_w + dynamic_power(self, w.TABLE[main_phase]), self.tdp_w
        )
