"""What the programs on the GPUs do: phases, and which phase a GPU is in at a moment.

A phase is one row of activity ratios as the profiling counters would report them at full clocks.
A workload strings phases together in time. The rows keep the counters consistent with each other:
tensor and other pipes never exceed SM activity, SM activity never exceeds engine activity, DRAM
activity stays under its practical peak of about 0.8 to 0.85.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.errors import UsageError
from engine.simulate import noise
from engine.simulate.noise import Floats, Ints, Words

# Columns of a phase. pcie_* and nvlink are fractions of one direction of the link, fb is the
# used part of the framebuffer; all others are ratios of time or cycles.
COLUMNS: Final = (
    "gr", "sm", "occupancy", "tensor", "dram", "fp64", "fp32", "fp16",
    "pcie_tx", "pcie_rx", "nvlink", "fb",
)  # fmt: skip
GR, SM, OCC, TENSOR, DRAM, FP64, FP32, FP16, PCIE_TX, PCIE_RX, NVLINK, FB = range(len(COLUMNS))

_PHASES: Final[dict[str, tuple[float, ...]]] = {
    #                 gr   sm   occ  tens  dram  fp64 fp32  fp16 ptx   prx   nvl   fb
    "idle":         (0.00, 0.00, 0.00, 0.000, 0.00, 0.0, 0.00, 0.00, 0.000, 0.000, 0.00, 0.007),
    "train":        (0.98, 0.88, 0.38, 0.550, 0.42, 0.0, 0.13, 0.03, 0.040, 0.060, 0.32, 0.860),
    "checkpoint":   (0.14, 0.05, 0.02, 0.000, 0.03, 0.0, 0.01, 0.00, 0.280, 0.010, 0.00, 0.860),
    "warm_up":      (0.35, 0.17, 0.07, 0.040, 0.10, 0.0, 0.04, 0.00, 0.010, 0.220, 0.01, 0.300),
    "ragged":       (0.78, 0.66, 0.28, 0.380, 0.30, 0.0, 0.10, 0.02, 0.030, 0.120, 0.20, 0.740),
    "decode":       (0.97, 0.74, 0.22, 0.110, 0.58, 0.0, 0.09, 0.05, 0.010, 0.012, 0.12, 0.910),
    "fp32":         (0.98, 0.91, 0.46, 0.003, 0.34, 0.0, 0.62, 0.00, 0.030, 0.050, 0.16, 0.800),
    "fp64":         (0.98, 0.90, 0.42, 0.004, 0.28, 0.5, 0.09, 0.00, 0.030, 0.050, 0.10, 0.700),
    "memory_bound": (0.99, 0.86, 0.46, 0.050, 0.81, 0.0, 0.14, 0.05, 0.010, 0.012, 0.06, 0.880),
    "compute_bound": (0.99, 0.95, 0.30, 0.820, 0.34, 0.0, 0.08, 0.02, 0.02, 0.030, 0.24, 0.850),
    "power_bound":  (0.99, 0.97, 0.36, 0.870, 0.66, 0.0, 0.12, 0.03, 0.020, 0.030, 0.30, 0.880),
    "few_warps":    (0.97, 0.83, 0.05, 0.040, 0.14, 0.0, 0.13, 0.02, 0.020, 0.030, 0.04, 0.600),
    "tiny_kernels": (0.93, 0.22, 0.06, 0.020, 0.06, 0.0, 0.06, 0.01, 0.010, 0.015, 0.01, 0.350),
    "shared":       (0.99, 0.93, 0.45, 0.300, 0.52, 0.0, 0.16, 0.05, 0.060, 0.070, 0.08, 0.940),
    "burst":        (0.86, 0.60, 0.20, 0.200, 0.40, 0.0, 0.10, 0.03, 0.010, 0.020, 0.05, 0.800),
    "starved":      (0.34, 0.26, 0.11, 0.140, 0.12, 0.0, 0.05, 0.01, 0.010, 0.030, 0.06, 0.780),
}  # fmt: skip

PHASES: Final = tuple(_PHASES)
TABLE: Final = np.array(list(_PHASES.values()))

WORKLOADS: Final = ("training", "decode", "ragged", "warm_up", "compute", "idle")
WARM_UP_S: Final = 240.0
_CHECKPOINT_S: Final = 35.0

# Upper ends: engines can be busy all the time, DRAM has a practical peak below 1, and occupancy
# of real kernels stays well below full.
_CEILING: Final = np.array([1.0, 1.0, 0.95, 0.97, 0.85, 0.97, 0.97, 0.97, 0.9, 0.9, 0.85, 0.995])


def phase(name: str) -> int:
    """Return the row of a phase in `TABLE`."""
    return PHASES.index(name)


def check_workload(name: str) -> str:
    """Return the name if it is a workload.

    Raises:
        UsageError: no such workload.
    """
    if name not in WORKLOADS:
        message = f"no simulated workload {name!r}"
        raise UsageError(message, hint=f"choose one of {', '.join(WORKLOADS)}")
    return name


class Workloads:
    """Activity asked for by the programs of a fleet, before any limit of the hardware.

    Attributes:
        kinds: name of the workload on each GPU.
        gpus, jobs: entity numbers of the GPUs and of the job each one belongs to (its node):
            GPUs of one job change phase together.
    """

    def __init__(
        self,
        seed: int,
        kinds: Sequence[str],
        *,
        gpus: Words,
        jobs: Words,
        start: float,
        step_s: float,
    ) -> None:
        self.kinds = tuple(kinds)
        self._seed, self._gpus, self._jobs = seed, gpus, jobs
        self._start, self._step_s = start, step_s
        self._is = {kind: np.array([k == kind for k in kinds]) for kind in WORKLOADS}

    def main_phase(self) -> Ints:
        """Return the phase each GPU is in most of the time, int64[G]."""
        usual = {"training": "train", "warm_up": "train", "compute": "compute_bound"}
        return np.array([phase(usual.get(kind, kind)) for kind in self.kinds], dtype=np.int64)

    def phases(self, steps: Ints) -> Ints:
        """Return the phase of every GPU at every step, int64[S, G]."""
        rows = np.broadcast_to(self.main_phase(), (len(steps), len(self._gpus))).copy()
        t = steps[:, None] * self._step_s
        period = 1500.0 + 600.0 * noise.constant(self._seed, "checkpoint period", self._jobs)
        shift = period * noise.constant(self._seed, "checkpoint shift", self._jobs)
        writing = np.mod(t + shift, period) > period - _CHECKPOINT_S
        trains = self._is["training"] | self._is["warm_up"] | self._is["compute"]
        rows[writing & trains] = phase("checkpoint")
        rows[self._is["warm_up"] & (t < self._start + WARM_UP_S)] = phase("warm_up")
        return rows

    def activity(self, rows: Floats, steps: Ints) -> Floats:
        """Add what makes real readings restless to phase rows, float64[S, G, columns].

        Ragged batches and changing request rates move all columns of a GPU together over about a
        minute; each column then has a little noise of its own. The order engine >= SM >= pipe,
        which the counters keep by definition, is restored at the end.
        """
        load = noise.smooth(self._seed, "load", self._gpus, steps, period=12)
        swing = np.where(self._is["ragged"], 0.20, np.where(self._is["decode"], 0.12, 0.05))
        scale = 1.0 + swing * load
        out = rows * scale[:, :, None]
        out[:, :, GR] = rows[:, :, GR] * (1.0 + 0.3 * np.minimum(scale - 1.0, 0.0))
        out[:, :, FB] = rows[:, :, FB]
        for column, name in enumerate(COLUMNS):
            spread = 0.002 if column in {GR, FB} else 0.025
            wobble = noise.normal(self._seed, name, self._gpus, steps)
            out[:, :, column] *= 1.0 + spread * wobble
        np.clip(out, 0.0, _CEILING, out=out)
        out[:, :, SM] = np.minimum(out[:, :, SM], out[:, :, GR])
        for column in (OCC, TENSOR, FP64, FP32, FP16):
            out[:, :, column] = np.minimum(out[:, :, column], out[:, :, SM])
        return out
