"""Heat: dies, memory and nodes that are too hot."""

from __future__ import annotations

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import (
    A100_40,
    A100_80,
    ALL,
    EMBED,
    H100,
    H100_PCIE,
    H200,
    HBM,
    SXM,
    TRAIN,
)
from engine.simulate.scenarios.nvidia_gpu import (
    HW_SLOWDOWN,
    HW_THERMAL,
    SW_THERMAL,
)
from engine.simulate.scenarios.nvidia_nodes import settle
from engine.simulate.scenarios.nvidia_stage import HOST, INDEX, TARGET, Stage, onset, stage
from engine.simulate.scenarios.shapes import since


def _slowed(rng: np.random.Generator, play: Stage, *, to: float, bits: int, heat_c: float) -> None:
    """Slow the stage's GPU to a share of its clock, at a temperature, from some moment on."""
    gpu, began = play.gpu, onset(rng)
    hot = gpu.ts >= began
    share = since(gpu.ts, began, 1.0, to) + np.where(hot, rng.normal(0, 0.015, gpu.ts.size), 0)
    gpu.run(rng, TRAIN, cap_mhz=gpu.board.sm_mhz * share, bits=np.where(hot, bits, 0))
    settle(rng, gpu)
    before = heat_c - 9.0
    heat = since(gpu.ts, began, before, heat_c) + rng.normal(0.0, 0.5, gpu.ts.size)
    gpu.hold("DEV_GPU_TEMP", np.round(heat))
    if play.board.mem_max_op_c is not None:
        memory: Floats = np.minimum(heat + 4.0, play.board.mem_max_op_c - 2.0)
        gpu.hold("DEV_MEMORY_TEMP", np.round(memory))


def _sw(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, ALL, TRAIN)
    _slowed(rng, play, to=severity.pick(0.9, 0.76, 0.6), bits=SW_THERMAL,
            heat_c=play.board.max_op_c + 0.6)  # fmt: skip
    return play.publish()


def _hw(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, HBM, TRAIN, smi=True)
    _slowed(rng, play, to=severity.pick(0.5, 0.42, 0.27), bits=HW_SLOWDOWN | HW_THERMAL,
            heat_c=play.board.slowdown_c + 0.6)  # fmt: skip
    return play.publish()


def _stock(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Without clock event reasons: as hot as the slowdown temperature, and slow.
    play = stage(rng, (H100, H100_PCIE, A100_80), TRAIN, stock=True)
    _slowed(rng, play, to=severity.pick(0.6, 0.45, 0.28), bits=SW_THERMAL,
            heat_c=play.board.slowdown_c - 0.5)  # fmt: skip
    return play.publish()


def _memory(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, SXM, EMBED)
    gpu = play.gpu
    gpu.run(rng, EMBED, cap_mhz=gpu.board.sm_mhz * severity.pick(0.9, 0.78, 0.6), bits=SW_THERMAL)
    settle(rng, gpu)
    heat = severity.pick(96.0, 98.0, 102.0) + rng.normal(0.0, 0.6, gpu.ts.size)
    gpu.hold("DEV_MEMORY_TEMP", np.round(heat))
    return play.publish()


def _outlier(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_40, A100_80, H200), TRAIN.but(power=0.62), stock=True)
    more = severity.pick(13.0, 17.0, 21.0)
    gpu = play.gpu
    for name in ("DEV_GPU_TEMP", "DEV_MEMORY_TEMP"):
        gpu.hold(name, np.minimum(np.asarray(gpu.fields[name]) + more, 83.0))
    return play.publish()


def _airflow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100), TRAIN)
    top = play.board.max_op_c + severity.pick(-1.5, 0.3, 1.2)
    to = severity.pick(1.0, 0.85, 0.65)
    for gpu in play.nodes[0].gpus:
        n = gpu.ts.size
        bits = 0 if severity is Severity.MILD else SW_THERMAL
        cap = gpu.board.sm_mhz * (to + (rng.normal(0, 0.02, n) if to < 1.0 else 0.0))
        gpu.run(rng, TRAIN, cap_mhz=cap, bits=bits)
        settle(rng, gpu)
        heat = top + rng.normal(0, 0.4) + rng.normal(0, 0.5, n)
        gpu.hold("DEV_GPU_TEMP", np.round(heat))
        gpu.hold("DEV_MEMORY_TEMP", np.round(heat + 4.0))
    return play.publish()


SCENARIOS = (
    Scenario("thermal-slowdown-sw", "One GPU at its maximum operating temperature", "heat", TARGET,
             ("thermal_slowdown_sw",), _sw),
    Scenario("thermal-slowdown-hw", "One GPU at the hardware's thermal limit", "heat", TARGET,
             ("thermal_slowdown_hw",), _hw),
    Scenario("thermal-without-reasons", "Hot and slow, and the exporter has no event reasons",
             "heat", TARGET, ("thermal_slowdown_sw", "thermal_slowdown_hw"), _stock),
    Scenario("memory-overheat", "Memory above its limit, the die is not", "heat", TARGET,
             ("memory_overheat",), _memory),
    Scenario("cooling-outlier", "One GPU far hotter than its siblings at the same power", "heat",
             TARGET, ("cooling_outlier",), _outlier),
    Scenario("node-airflow", "All GPUs of a node are hot together", "heat", HOST,
             ("node_airflow",), _airflow, culprit=HOST),
    Scenario("node-airflow-asked-at-gpu", "One GPU of a node that is hot as a whole", "heat",
             f"{HOST}:{INDEX - 1}", ("node_airflow", "thermal_slowdown_sw"), _airflow,
             culprit=HOST),
)  # fmt: skip
