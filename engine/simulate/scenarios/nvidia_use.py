"""How programs use a GPU: the wrong pipes, too few warps, gaps between kernels, company."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import (
    A100_80,
    H100,
    H200,
    L40S,
    SXM,
    T4,
    TRAIN,
    Load,
)
from engine.simulate.scenarios.nvidia_gpu import HW_SLOWDOWN, HW_THERMAL, Gpu
from engine.simulate.scenarios.nvidia_names import style
from engine.simulate.scenarios.nvidia_nodes import node, publish, settle
from engine.simulate.scenarios.nvidia_stage import HOST, TARGET, stage

_MIG_OFF = {"DEV_GPU_UTIL": np.nan, "DEV_MEM_COPY_UTIL": np.nan}


def _redo(rng: np.random.Generator, gpu: Gpu, load: Load) -> None:
    gpu.run(rng, load)
    settle(rng, gpu)


def _no_tensor(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Matrix products in FP32 on the ordinary pipe: busy, warm, and a tenth of the speed.
    play = stage(rng, (A100_80, H100, H200), TRAIN)
    load = Load(0.98, 0.93, 0.4, severity.pick(0.025, 0.008, 0.0), 0.22,
                severity.pick(0.55, 0.68, 0.78), 0.7, link=0.04, rx=0.3, fb=0.8)  # fmt: skip
    for gpu in play.nodes[0].gpus:
        _redo(rng, gpu, load)
    return play.publish()


def _fp64(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100), TRAIN)
    share = severity.pick(0.18, 0.35, 0.65)
    load = Load(0.98, 0.9, 0.35, 0.03, 0.25, 0.1, 0.65, fp64=share, link=0.05, fb=0.7)
    for gpu in play.nodes[0].gpus:
        _redo(rng, gpu, load)
    return play.publish()


def _occupancy(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Large blocks that spill: few warps, nothing that hides latency, no pipe busy.
    play = stage(rng, (A100_80, H100, L40S), TRAIN)
    load = Load(0.97, 0.82, severity.pick(0.09, 0.06, 0.035), severity.pick(0.05, 0.03, 0.01),
                severity.pick(0.12, 0.09, 0.05), 0.08, 0.38, fb=0.6)  # fmt: skip
    for gpu in play.nodes[0].gpus:
        _redo(rng, gpu, load)
    return play.publish()


def _launch(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Thousands of tiny kernels a second: some kernel ran in every sample period, so that GPU_UTIL
    # is near 100, but the engine waits between them and only a few SMs have work.
    play = stage(rng, (A100_80, H100, L40S), TRAIN)
    load = Load(severity.pick(0.66, 0.5, 0.34), severity.pick(0.22, 0.14, 0.08),
                severity.pick(0.08, 0.05, 0.03), severity.pick(0.04, 0.025, 0.01),
                0.06, 0.03, severity.pick(0.24, 0.18, 0.12), rx=0.02, tx=0.02, fb=0.5)  # fmt: skip
    for gpu in play.nodes[0].gpus:
        _redo(rng, gpu, load)
        gpu.hold("DEV_GPU_UTIL", np.round(rng.uniform(93.0, 100.0, gpu.ts.size)))
    return play.publish()


def _memory_full(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, L40S), TRAIN, stock=True, smi=True)
    free = severity.pick(500.0, 200.0, 40.0) * rng.uniform(0.7, 1.3, play.ts.size)
    gpu, board = play.gpu, play.board
    if severity is not Severity.MILD:
        # The allocator frees its cache and asks again: throughput falls, too.
        retry = severity.pick(1.0, 0.85, 0.7)
        gpu.run(rng, TRAIN.but(gr=TRAIN.gr * retry, sm=TRAIN.sm * retry,
                               tensor=TRAIN.tensor * retry, power=TRAIN.power * retry))  # fmt: skip
        settle(rng, gpu)
    gpu.hold("DEV_FB_FREE", np.round(free))
    gpu.hold("DEV_FB_USED", np.round(board.fb_mib * 0.992 - free))
    return play.publish()


def _shared_pods(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Time slicing: the exporter repeats the GPU's readings for every pod that holds it.
    play = stage(rng, (A100_80, L40S, T4), TRAIN.but(link=0.0))
    pods = int(severity.pick(2, 3, 5))
    play.gpu.views = [
        ({"namespace": f"team-{k}", "pod": f"notebook-{k}-0", "container": "main"}, {})
        for k in range(pods)
    ]
    return play.publish()


def _shared_jobs(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Two batch jobs were given the same GPU: one series for each.
    play = stage(rng, (A100_80, H100), TRAIN)
    for item in play.nodes:
        item.label(hpc_job="51234")
    jobs = ("51234", "51290", "51302")[: int(severity.pick(2, 2, 3))]
    play.gpu.views = [({"hpc_job": job}, {}) for job in jobs]
    load = TRAIN.but(gr=0.99, sm=0.9, fb=severity.pick(0.9, 0.95, 0.97))
    _redo(rng, play.gpu, load)
    return play.publish()


def _mig_hot(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Slices share clocks, heat and power: what slows the board slows them all.
    board = (A100_80, H100)[int(rng.integers(2))]
    item = node(rng, HOST, board)
    item.load(rng, TRAIN.but(link=0.0, power=0.55))
    gpu = item.gpus[5]
    gpu.run(rng, TRAIN.but(link=0.0, power=0.55), bits=HW_SLOWDOWN | HW_THERMAL,
            cap_mhz=board.sm_mhz * severity.pick(0.5, 0.4, 0.27))  # fmt: skip
    settle(rng, gpu)
    heat = board.slowdown_c + rng.normal(0.6, 0.5, gpu.ts.size)
    gpu.hold("DEV_GPU_TEMP", np.round(heat))
    gpu.views = [
        (
            {"GPU_I_PROFILE": profile, "GPU_I_ID": str(k + 1)},
            {**_MIG_OFF, "PROF_GR_ENGINE_ACTIVE": rng.uniform(0.7, 0.95, gpu.ts.size)},
        )
        for k, profile in enumerate(("3g.40gb", "2g.20gb", "2g.20gb"))
    ]
    return publish([item], style(rng))


def _pause(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # cudaMalloc and cudaFree in every step: memory in use saws up and down, the stream stalls.
    play = stage(rng, SXM, TRAIN, step_s=10.0)
    gpu = play.gpu
    low = severity.pick(0.55, 0.4, 0.25)
    saw = 0.5 + 0.42 * (((AT - gpu.ts) % 40.0) / 40.0) * rng.uniform(0.9, 1.0, gpu.ts.size)
    ratio = low / 0.86
    gpu.run(rng, TRAIN.but(gr=low + 0.1, sm=low, tensor=TRAIN.tensor * ratio, fb=saw,
                           dram=TRAIN.dram * ratio, power=TRAIN.power * ratio))  # fmt: skip
    settle(rng, gpu)
    return play.publish()


SCENARIOS = (
    Scenario("tensor-cores-unused", "Training on the FP32 pipe, tensor cores idle", "use", TARGET,
             ("tensor_cores_unused",), _no_tensor),
    Scenario("fp64-fallback", "A training job computes in FP64", "use", TARGET,
             ("fp64_fallback", "tensor_cores_unused"), _fp64),
    Scenario("low-occupancy", "SMs active with few warps and nothing to show", "use", TARGET,
             ("low_occupancy",), _occupancy),
    Scenario("launch-bound", "Tiny kernels, and gaps between them", "use", TARGET,
             ("launch_bound",), _launch),
    Scenario("gpu-memory-full", "Device memory nearly exhausted in training", "use", TARGET,
             ("gpu_memory_full",), _memory_full),
    Scenario("gpu-shared-by-pods", "Several pods share one GPU by time slicing", "use", TARGET,
             ("gpu_contention",), _shared_pods),
    Scenario("gpu-shared-by-jobs", "Two batch jobs on one GPU", "use", TARGET,
             ("gpu_contention",), _shared_jobs),
    Scenario("mig-thermal", "A GPU in MIG slices at its thermal limit", "use", TARGET,
             ("thermal_slowdown_hw",), _mig_hot),
    Scenario("allocator-stall", "Memory allocated and freed in every step", "use", TARGET,
             ("allocator_stall", "launch_bound"), _pause),
)  # fmt: skip
