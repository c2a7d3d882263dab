"""NVIDIA boards as datasheets and ``nvidia-smi -q`` describe them, and what loads ask of them.

Power limits, memory and link figures are the vendor's; temperatures are those that drivers print
(maximum operating, slowdown, shutdown); clocks are the boards' maxima.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from engine.samples import Floats


@dataclass(frozen=True, slots=True)
class Board:
    """One product. Clocks in MHz, power in W, memory in MiB, temperatures in degrees Celsius.

    ``mem_max_op_c`` is None where the memory has no sensor; ``links`` counts NVLinks and
    ``link_gb`` is the theoretical rate of all of them in one direction (GB/s); ``gen`` is the PCIe
    generation.
    """

    product: str
    tdp_w: float
    sm_mhz: float
    idle_mhz: float
    mem_mhz: float
    fb_mib: float
    max_op_c: float
    slowdown_c: float
    shutdown_c: float
    mem_max_op_c: float | None
    gen: int
    links: int
    link_gb: float
    idle_w: float

    @property
    def ecc_rows(self) -> bool:
        """Whether faulty rows are remapped (Ampere with HBM and newer), not pages retired."""
        return self.mem_max_op_c is not None or self.product == "NVIDIA L40S"


A100_40 = Board(
    "NVIDIA A100-SXM4-40GB", 400, 1410, 210, 1215, 40960, 85, 89, 92, 95, 4, 12, 300, 52
)
A100_80 = Board(
    "NVIDIA A100-SXM4-80GB", 400, 1410, 210, 1593, 81920, 85, 89, 92, 95, 4, 12, 300, 60
)
H100 = Board("NVIDIA H100 80GB HBM3", 700, 1980, 345, 2619, 81559, 87, 89, 92, 95, 5, 18, 450, 72)
H100_PCIE = Board("NVIDIA H100 PCIe", 350, 1755, 345, 1593, 81559, 87, 89, 92, 95, 5, 0, 0, 48)
H200 = Board("NVIDIA H200", 700, 1980, 345, 3201, 143771, 87, 89, 92, 95, 5, 18, 450, 76)
B200 = Board("NVIDIA B200", 1000, 1965, 120, 3996, 183359, 88, 91, 93, 95, 5, 18, 900, 140)
L40S = Board("NVIDIA L40S", 350, 2520, 210, 9001, 46068, 88, 91, 94, None, 4, 0, 0, 35)
T4 = Board("Tesla T4", 70, 1590, 300, 5001, 15360, 85, 93, 96, None, 3, 0, 0, 10)

SXM = (A100_40, A100_80, H100, H200, B200)
HBM = (*SXM, H100_PCIE)
ALL = (*HBM, L40S, T4)


@dataclass(frozen=True, slots=True)
class Load:
    """What a program does to a GPU, on average over a second.

    Shares of time or of the peak, 0 to 1: ``gr`` (engine busy), ``sm``, ``occ``, ``tensor``,
    ``dram``, ``fp32``, ``fp16``, ``fp64``; ``power`` is the power asked for at full clock, as a
    share of the range from idle to the default limit (over 1: the limit will hold it); ``tx`` and
    ``rx`` are PCIe traffic from and to the GPU (GB/s), ``link`` NVLink traffic as a share of the
    peak of one direction, ``fb`` the share of memory in use.
    """

    gr: Floats | float
    sm: Floats | float
    occ: Floats | float
    tensor: Floats | float
    dram: Floats | float
    fp32: Floats | float
    power: Floats | float
    fp16: Floats | float = 0.01
    fp64: Floats | float = 0.0
    tx: Floats | float = 0.2
    rx: Floats | float = 0.4
    link: Floats | float = 0.0
    fb: Floats | float = 0.8

    def but(self, **changes: Floats | float) -> Load:
        """Return the same load with some figures changed."""
        return replace(self, **changes)


def mix(first: Load, second: Load, share: Floats | float) -> Load:
    """Return what sensors see of two loads in turn, the second for ``share`` (0 to 1) of it."""
    kept = {
        f.name: np.asarray(getattr(first, f.name)) * (1.0 - share)
        + np.asarray(getattr(second, f.name)) * share
        for f in fields(Load)
    }
    return Load(**kept)


IDLE = Load(0, 0, 0, 0, 0, 0, 0, fp16=0, tx=0, rx=0, fb=0.004)
# A process holds memory but launches nothing.
PARKED = IDLE.but(fb=0.7, power=0.03)
TRAIN = Load(0.98, 0.86, 0.33, 0.44, 0.42, 0.08, 0.82, link=0.22, tx=1.2, rx=1.6, fb=0.84)
GEMM = Load(1.0, 0.96, 0.26, 0.74, 0.36, 0.03, 1.22, link=0.05, fb=0.6)
DECODE = Load(0.97, 0.72, 0.24, 0.09, 0.66, 0.09, 0.56, tx=0.3, rx=0.2, link=0.03, fb=0.91)
PREFILL = Load(0.98, 0.9, 0.24, 0.62, 0.4, 0.05, 0.97, tx=0.3, rx=0.3, fb=0.91)
EMBED = Load(0.96, 0.84, 0.55, 0.03, 0.74, 0.14, 0.58, rx=3.0, fb=0.7)
# NCCL kernels spin on a few SMs: the engine counts as busy, nearly nothing is computed.
WAIT = Load(1.0, 0.17, 0.02, 0.0, 0.01, 0.01, 0.2, fp16=0, tx=0.02, rx=0.02, link=0.0, fb=0.84)
