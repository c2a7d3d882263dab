"""Red herrings: what is odd in a fleet and explains nothing, strewn by chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from engine.simulate.scenarios.nvidia_boards import IDLE
from engine.simulate.scenarios.nvidia_gpu import Gpu
from engine.simulate.scenarios.nvidia_nodes import Node, settle


def strew(
    rng: np.random.Generator, nodes: Sequence[Node], *, spare: Collection[str] = (),
    idle: bool = True,
) -> None:  # fmt: skip
    """Change some GPUs in ways that an expert looks past.

    Args:
        rng: where chance comes from.
        nodes: the fleet, loads already running.
        spare: GPUs (HOST:INDEX) to leave alone: those that the story is about.
        idle: whether a neighbour may be without work; not among the ranks of a job.
    """
    others = [gpu for item in nodes for gpu in item.gpus if gpu.name not in spare]
    if not others:
        return

    def someone() -> Gpu:
        return others[int(rng.integers(len(others)))]

    if rng.random() < 0.4:
        # Days old: the gauge keeps its last code until the driver is loaded again.
        someone().hold("DEV_XID_ERRORS", float(rng.choice([13.0, 31.0, 43.0])))
    if rng.random() < 0.3:
        gpu = someone()
        for name in ("DEV_GPU_TEMP", "DEV_MEMORY_TEMP"):
            if name in gpu.fields:
                gpu.hold(name, gpu.fields[name] + float(rng.integers(2, 5)))
    if rng.random() < 0.3:
        # Repaired long ago, nothing new since.
        gpu = someone()
        if gpu.board.ecc_rows:
            gpu.hold("DEV_CORRECTABLE_REMAPPED_ROWS", float(rng.integers(1, 4)))
        gpu.hold("DEV_ECC_SBE_AGG_TOTAL", float(rng.integers(20, 300)))
    if rng.random() < 0.3:
        someone().hold("DEV_PCIE_REPLAY_COUNTER", float(rng.integers(500, 5000)))
    if idle and rng.random() < 0.3:
        gpu = someone()
        gpu.run(rng, IDLE)
        settle(rng, gpu)
