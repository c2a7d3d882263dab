"""The GPU models that can be simulated: what a vendor states, and how each one heats up.

Peaks, board power and temperature limits are the vendor figures for these boards. The thermal and
idle figures below them are not published; they are set so that a well-cooled board settles where
such boards are seen in air-cooled racks (about 60 to 70 degC at full load).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model.

    Attributes:
        id: short name, as used in ``Fleet(model=...)``.
        name: ``modelName`` as dcgm-exporter prints it.
        tdp_w: default power limit (W); ``power_min_w`` is the lowest limit that can be set.
        idle_w: board power without work (W).
        max_sm_mhz, idle_sm_mhz, max_mem_mhz, idle_mem_mhz: clocks (MHz).
        idle_pstate: performance state without work; HBM boards stay at 0.
        max_op_c, slowdown_c, shutdown_c: die limits (degC): software slowdown, hardware
            slowdown, shutdown.
        mem_max_op_c: memory limit (degC); None where the board reports no memory temperature.
        fb_mib, fb_reserved_mib: framebuffer (MiB).
        pcie_gen: PCIe generation; every board has 16 lanes.
        nvlinks: number of NVLinks; nvlink_bps: bytes/s of all links in one direction.
        rise_k_per_w: die temperature above the inlet, per watt, with fans at full speed.
        heat_j_per_k: heat capacity of die and cooler.
        sm_step_mhz: distance of two entries in the clock table.
    """

    id: str
    name: str
    tdp_w: float
    power_min_w: float
    idle_w: float
    max_sm_mhz: float
    idle_sm_mhz: float
    max_mem_mhz: float
    idle_mem_mhz: float
    idle_pstate: int
    max_op_c: float
    slowdown_c: float
    shutdown_c: float
    mem_max_op_c: float | None
    fb_mib: int
    fb_reserved_mib: int
    pcie_gen: int
    nvlinks: int
    nvlink_bps: float
    rise_k_per_w: float
    heat_j_per_k: float
    sm_step_mhz: float = 15.0

    @property
    def pcie_bps(self) -> float:
        """Bytes/s of the PCIe link in one direction: 16 lanes of 0.985 GB/s at generation 3."""
        return float(15.75e9 * 2.0 ** (self.pcie_gen - 3))


_H100 = GpuModel(
    id="h100_sxm", name="NVIDIA H100 80GB HBM3", tdp_w=700, power_min_w=200, idle_w=70,
    max_sm_mhz=1980, idle_sm_mhz=345, max_mem_mhz=2619, idle_mem_mhz=2619, idle_pstate=0,
    max_op_c=87, slowdown_c=89, shutdown_c=92, mem_max_op_c=95, fb_mib=81559, fb_reserved_mib=551,
    pcie_gen=5, nvlinks=18, nvlink_bps=450e9, rise_k_per_w=0.060, heat_j_per_k=720,
)  # fmt: skip
_H200 = GpuModel(
    id="h200_sxm", name="NVIDIA H200", tdp_w=700, power_min_w=200, idle_w=76,
    max_sm_mhz=1980, idle_sm_mhz=345, max_mem_mhz=3201, idle_mem_mhz=3201, idle_pstate=0,
    max_op_c=87, slowdown_c=89, shutdown_c=92, mem_max_op_c=95, fb_mib=143771, fb_reserved_mib=602,
    pcie_gen=5, nvlinks=18, nvlink_bps=450e9, rise_k_per_w=0.060, heat_j_per_k=740,
)  # fmt: skip
_A100 = GpuModel(
    id="a100_sxm_80", name="NVIDIA A100-SXM4-80GB", tdp_w=400, power_min_w=100, idle_w=62,
    max_sm_mhz=1410, idle_sm_mhz=210, max_mem_mhz=1593, idle_mem_mhz=1593, idle_pstate=0,
    max_op_c=85, slowdown_c=89, shutdown_c=92, mem_max_op_c=95, fb_mib=81920, fb_reserved_mib=669,
    pcie_gen=4, nvlinks=12, nvlink_bps=300e9, rise_k_per_w=0.100, heat_j_per_k=460,
)  # fmt: skip
# No public log states the L40S limits; these are the values of its class, and it reports them.
_L40S = GpuModel(
    id="l40s", name="NVIDIA L40S", tdp_w=350, power_min_w=100, idle_w=36,
    max_sm_mhz=2520, idle_sm_mhz=210, max_mem_mhz=9001, idle_mem_mhz=405, idle_pstate=8,
    max_op_c=88, slowdown_c=91, shutdown_c=96, mem_max_op_c=None, fb_mib=46068,
    fb_reserved_mib=489, pcie_gen=4, nvlinks=0, nvlink_bps=0.0, rise_k_per_w=0.115,
    heat_j_per_k=420,
)  # fmt: skip

MODELS: dict[str, GpuModel] = {m.id: m for m in (_H100, _H200, _A100, _L40S)}


def gpu_model(name: str) -> GpuModel:
    """Return the model with this id or exporter name.

    Raises:
        UsageError: no such model.
    """
    for model in MODELS.values():
        if name in {model.id, model.name}:
            return model
    message = f"no simulated GPU model {name!r}"
    raise UsageError(message, hint=f"choose one of {', '.join(MODELS)}")
