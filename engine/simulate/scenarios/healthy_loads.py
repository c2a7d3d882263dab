"""Healthy loads that look odd: idle, warming up, decoding, pausing, bound by power or memory."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import (
    A100_40,
    A100_80,
    ALL,
    B200,
    DECODE,
    EMBED,
    GEMM,
    H100,
    H200,
    HBM,
    IDLE,
    L40S,
    PARKED,
    PREFILL,
    SXM,
    T4,
    TRAIN,
    mix,
)
from engine.simulate.scenarios.nvidia_nodes import settle
from engine.simulate.scenarios.nvidia_stage import HOST, TARGET, stage
from engine.simulate.scenarios.shapes import since, wobble

# Severity says how far a healthy thing strays from the usual.


def _idle(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Memory may be held by a server that nobody asks; clocks and PCIe generation are down.
    play = stage(rng, ALL, TRAIN, stock=True)
    gpu = play.gpu
    gpu.run(rng, IDLE.but(fb=severity.pick(0.004, 0.3, 0.85)))
    settle(rng, gpu)
    gpu.hold("DEV_PCIE_LINK_GEN", 1.0)
    gpu.hold("DEV_PSTATE", severity.pick(0.0, 8.0, 8.0))
    return play.publish()


def _idle_node(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, ALL, IDLE, stock=True)
    play.nodes[1].load(rng, TRAIN.but(power=severity.pick(0.6, 0.8, 0.9)))
    return play.publish()


def _warm_up(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Idle, then the job starts: heat, power and memory climb together.
    play = stage(rng, SXM, IDLE)
    began = AT - severity.pick(900.0, 700.0, 420.0)
    for gpu in play.nodes[0].gpus:
        gpu.run(rng, mix(IDLE, TRAIN, since(gpu.ts, began, 0.0, 1.0)))
        settle(rng, gpu)
    return play.publish()


def _decode(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (*HBM, L40S), DECODE, stock=True, smi=True)
    play.gpu.run(rng, DECODE.but(dram=severity.pick(0.55, 0.66, 0.76), fb=0.93))
    settle(rng, play.gpu)
    return play.publish()


def _chat(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Prefills come and go between decodes, load swings with the requests.
    play = stage(rng, (A100_80, H100, H200), DECODE)
    swing = severity.pick(0.15, 0.25, 0.35)
    for gpu in play.nodes[0].gpus:
        share = np.clip(0.2 + rng.normal(0.0, swing, gpu.ts.size), 0.0, 1.0)
        gpu.run(rng, mix(DECODE, PREFILL, share))
        settle(rng, gpu)
    return play.publish()


def _checkpoint(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # One pause in an hour, short: the usual price of a checkpoint.
    play = stage(rng, SXM, TRAIN, step_s=15.0)
    began = AT - float(rng.uniform(200.0, 800.0))
    length = severity.pick(15.0, 25.0, 40.0)
    for item in play.nodes:
        for gpu in item.gpus:
            pause = ((gpu.ts >= began) & (gpu.ts < began + length)).astype(np.float64)
            gpu.run(rng, mix(TRAIN, PARKED, pause))
            settle(rng, gpu)
    return play.publish()


def _ragged(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Sequences of uneven length: activity swings from step to step, on all GPUs alike.
    play = stage(rng, SXM, TRAIN)
    for item in play.nodes:
        for gpu in item.gpus:
            scale = np.clip(
                1.0 + wobble(rng, gpu.ts.size, severity.pick(0.06, 0.1, 0.14)), 0.6, 1.1
            )
            gpu.run(rng, TRAIN.but(sm=0.84 * scale, tensor=0.42 * scale, power=0.78 * scale))
            settle(rng, gpu)
    return play.publish()


def _power_bound(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # At the default limit with the power cap on all the time: as designed.
    play = stage(rng, (A100_40, A100_80, H100, B200, L40S), GEMM)
    for gpu in play.nodes[0].gpus:
        gpu.run(rng, GEMM.but(power=severity.pick(1.05, 1.25, 1.4)))
        settle(rng, gpu)
    return play.publish()


def _loading(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A server loads a model: memory fills over PCIe, the engine has little to do yet.
    play = stage(rng, (H100, H200, A100_80), DECODE, step_s=15.0)
    began, length = AT - 700.0, severity.pick(150.0, 240.0, 330.0)
    gpu = play.gpu
    done = np.clip((gpu.ts - began) / length, 0.0, 1.0)
    busy = (done >= 1.0).astype(np.float64)
    filling = ((done > 0.0) & (done < 1.0)).astype(np.float64)
    load = mix(PARKED.but(gr=0.03 * filling, rx=6.0 * filling, fb=0.0), DECODE, busy)
    gpu.run(rng, load.but(fb=0.01 + 0.9 * done))
    settle(rng, gpu)
    return play.publish()


def _small_service(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Few requests: low use is what is asked for.
    play = stage(rng, (T4, L40S, A100_40), DECODE, stock=True, smi=True)
    share = severity.pick(0.35, 0.2, 0.1)
    for gpu in play.nodes[0].gpus:
        gpu.run(rng, mix(PARKED, DECODE.but(dram=0.3, power=0.35), share))
        settle(rng, gpu)
    return play.publish()


def _evaluation(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Forward passes only for some minutes: less tensor work, less power, no gradients to exchange.
    play = stage(rng, SXM, TRAIN)
    began = AT - severity.pick(200.0, 350.0, 500.0)
    forward = TRAIN.but(tensor=0.3, sm=0.7, power=0.62, link=0.03, gr=0.93)
    for item in play.nodes:
        for gpu in item.gpus:
            gpu.run(rng, mix(TRAIN, forward, since(gpu.ts, began, 0.0, 1.0)))
            settle(rng, gpu)
    return play.publish()


def _bursts(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Batch inference in waves of minutes: clocks rest between them, and are up when work is there.
    play = stage(rng, (A100_80, H100, L40S), DECODE)
    share = severity.pick(0.7, 0.5, 0.35)
    for gpu in play.nodes[0].gpus:
        on = (((AT - gpu.ts + 40.0 * gpu.index) % 300.0) < 300.0 * share).astype(np.float64)
        gpu.run(rng, mix(IDLE.but(fb=0.9), DECODE, on))
        settle(rng, gpu)
    return play.publish()


def _embedding(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, HBM, EMBED)
    play.gpu.run(rng, EMBED.but(dram=severity.pick(0.68, 0.75, 0.82), tensor=0.02))
    settle(rng, play.gpu)
    return play.publish()


def _compute_bound(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (H100, H200, B200), GEMM.but(power=0.9))
    play.gpu.run(rng, GEMM.but(power=0.9, tensor=severity.pick(0.6, 0.72, 0.85)))
    settle(rng, play.gpu)
    return play.publish()


SCENARIOS = tuple(
    Scenario(f"healthy-{name}", title, "healthy", target, (), make)
    for name, title, target, make in (
        ("idle", "An idle GPU among busy ones", TARGET, _idle),
        ("idle-node", "A node without work", HOST, _idle_node),
        ("warm-up", "A job that has just started", TARGET, _warm_up),
        ("decode", "LLM decode: bandwidth busy, tensor cores not", TARGET, _decode),
        ("chat", "Prefill and decode in turn", TARGET, _chat),
        ("checkpoint", "A short pause for a checkpoint", TARGET, _checkpoint),
        ("ragged-batches", "Uneven batches", TARGET, _ragged),
        ("power-bound", "Training at the default power limit", TARGET, _power_bound),
        ("power-bound-node", "A node that trains at the default power limit", HOST, _power_bound),
        ("model-loading", "A server loads its model", TARGET, _loading),
        ("small-service", "A service with few requests", TARGET, _small_service),
        ("evaluation", "An evaluation phase between training steps", TARGET, _evaluation),
        ("bursts", "Batch work in waves", TARGET, _bursts),
        ("embedding", "Memory-bound embedding lookups", TARGET, _embedding),
        ("compute-bound", "Matrix products at the board's peak", TARGET, _compute_bound),
    )
)
