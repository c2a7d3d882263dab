"""Power and clocks: limits, brakes, caps and settings that hold the SM clock."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import (
    A100_80,
    DECODE,
    GEMM,
    H100,
    H200,
    HBM,
    IDLE,
    L40S,
    SXM,
    TRAIN,
    Board,
    mix,
)
from engine.simulate.scenarios.nvidia_gpu import (
    HW_SLOWDOWN,
    POWER_BRAKE,
    SETTING,
    SW_THERMAL,
    SYNC_BOOST,
)
from engine.simulate.scenarios.nvidia_names import style
from engine.simulate.scenarios.nvidia_nodes import fleet, publish, settle
from engine.simulate.scenarios.nvidia_stage import HOST, TARGET, onset, stage

# A desktop box whose supply negotiates too little: figures as owners reported them.
GB10 = Board("NVIDIA GB10", 100, 3003, 208, 0, 122570, 95, 98, 101, None, 4, 0, 0, 8)


def _limit_lowered(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, HBM, GEMM)
    limit = round(play.board.tdp_w * severity.pick(0.78, 0.62, 0.45))
    play.gpu.run(rng, GEMM, limit_w=limit)
    settle(rng, play.gpu)
    return play.publish()


def _limit_lowered_smi(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, L40S, H100), TRAIN.but(power=1.0), smi=True)
    limit = round(play.board.tdp_w * severity.pick(0.75, 0.6, 0.4))
    for gpu in play.nodes[0].gpus:
        gpu.run(rng, TRAIN.but(power=1.0), limit_w=limit)
        settle(rng, gpu)
    return play.publish()


def _brake(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, HBM, TRAIN)
    share = severity.pick(0.35, 0.7, 1.0)
    # The supply pulls the line for minutes at a time, for the whole node at once.
    braked = (np.floor((AT - play.ts) / 60.0) % 10) < 10 * share
    for gpu in play.nodes[0].gpus:
        cap = np.where(braked, gpu.board.sm_mhz * 0.5, gpu.board.sm_mhz)
        gpu.run(rng, TRAIN, cap_mhz=cap, bits=np.where(braked, HW_SLOWDOWN | POWER_BRAKE, 0))
        settle(rng, gpu)
    return play.publish()


def _locked(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, HBM, TRAIN)
    clock = round(play.board.sm_mhz * severity.pick(0.82, 0.65, 0.42) / 15.0) * 15.0
    # Locked by `nvidia-smi -lgc`: newer drivers set no bit, older ones may.
    bits = SETTING if rng.random() < 0.3 else 0
    play.gpu.run(rng, TRAIN, cap_mhz=clock, bits=bits)
    settle(rng, play.gpu)
    return play.publish()


def _locked_node(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, SXM, TRAIN, smi=True)
    clock = round(play.board.sm_mhz * severity.pick(0.78, 0.6, 0.4) / 15.0) * 15.0
    for gpu in play.nodes[0].gpus:
        gpu.run(rng, TRAIN, cap_mhz=clock)
        settle(rng, gpu)
    return play.publish()


def _ramp(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Requests come in bursts; between them the clock falls, and it is late when one comes.
    nodes = fleet(rng, (HOST,), (H100, A100_80), IDLE, count=4, step_s=10.0)
    how = style(rng)
    for gpu in nodes[0].gpus:
        n = gpu.ts.size
        burst = rng.random(n) < 0.35
        late = rng.random(n) < severity.pick(0.5, 0.7, 0.9)
        board = gpu.board
        start = rng.uniform(0.2, 0.45, n) * board.sm_mhz
        cap = np.where(burst & late, start, np.where(burst, board.sm_mhz, board.idle_mhz))
        gpu.run(rng, mix(IDLE.but(fb=0.8), DECODE, np.where(burst, 0.6, 0.0)), cap_mhz=cap)
        settle(rng, gpu)
    return publish(nodes, how)


def _pstate(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, L40S, H100), TRAIN, smi=True)
    level = severity.pick(2.0, 5.0, 8.0)
    share = severity.pick(0.6, 0.35, 0.2)
    play.gpu.run(rng, TRAIN, cap_mhz=play.board.sm_mhz * share)
    settle(rng, play.gpu)
    play.gpu.hold("DEV_PSTATE", level)
    play.gpu.hold("DEV_MEM_CLOCK", round(play.board.mem_mhz * share))
    return play.publish()


def _platform(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    nodes = fleet(rng, ("spark-1",), (GB10,), DECODE, count=1)
    gpu, began = nodes[0].gpus[0], onset(rng)
    held = gpu.ts >= began
    cap = np.where(held, severity.pick(1100.0, 850.0, 640.0), GB10.sm_mhz)
    asked = np.where(held, 0.9, DECODE.power)
    gpu.run(rng, DECODE.but(power=asked), cap_mhz=cap + rng.normal(0, 20, gpu.ts.size))
    settle(rng, gpu)
    return publish(nodes, style(rng))


def _platform_node(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The management controller brakes boards that its power budget does not know; the neighbour,
    # same product and load, runs freely. Power is far below the limit, nothing is hot.
    play = stage(rng, (H100, H200), TRAIN)
    share = severity.pick(0.6, 0.45, 0.3)
    for gpu in play.nodes[0].gpus:
        wander = rng.normal(0.0, 0.02, gpu.ts.size)
        gpu.run(rng, TRAIN, cap_mhz=gpu.board.sm_mhz * (share + wander), bits=POWER_BRAKE)
        settle(rng, gpu)
    return play.publish()


def _sync_boost(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80,), TRAIN, alone=True)
    clock = play.board.sm_mhz * severity.pick(0.85, 0.7, 0.55)
    group = play.nodes[0].gpus
    for gpu in group:
        slowest = gpu.index == 2
        gpu.run(rng, TRAIN, cap_mhz=clock, bits=SW_THERMAL if slowest else SYNC_BOOST)
        settle(rng, gpu)
    limit = play.board.max_op_c
    group[2].hold("DEV_GPU_TEMP", np.round(limit + rng.normal(0.5, 0.6, play.ts.size)))
    return play.publish()


_LOWERED = ("power_limit_lowered",)
SCENARIOS = (
    Scenario("power-limit-lowered", "One GPU has a lower power limit than its board's default",
             "power", TARGET, _LOWERED, _limit_lowered),
    Scenario("power-limit-lowered-node", "All GPUs of a node were left at a lowered power limit",
             "power", TARGET, _LOWERED, _limit_lowered_smi),
    Scenario("power-brake-gpu", "A GPU of a node whose supply brakes it", "power", TARGET,
             ("power_brake",), _brake, culprit=HOST),
    Scenario("power-brake-node", "A node whose supply brakes all GPUs at once", "power", HOST,
             ("power_brake",), _brake, culprit=HOST),
    Scenario("clocks-locked", "One GPU's SM clock is locked below its maximum", "power", TARGET,
             ("clocks_locked",), _locked),
    Scenario("clocks-locked-node", "A clock lock forgotten on a whole node", "power", HOST,
             ("clocks_locked",), _locked_node),
    Scenario("clock-ramp", "Bursts of requests meet clocks that have fallen", "power",
             f"{HOST}:1", ("clock_ramp",), _ramp),
    Scenario("pstate-stuck", "A loaded GPU stays in a low performance state", "power", TARGET,
             ("pstate_stuck",), _pstate),
    Scenario("platform-power-cap", "A desktop box gets too little power, and no bit says so",
             "power", "spark-1:0", ("platform_power_cap",), _platform),
    Scenario("platform-power-brake", "A server's power policy brakes boards it does not budget for",
             "power", HOST, ("platform_power_cap", "power_brake"), _platform_node, culprit=HOST),
    Scenario("sync-boost-held", "Clocks held to the slowest member of a sync-boost group", "power",
             TARGET, ("sync_boost_held", "thermal_slowdown_sw"), _sync_boost,
             culprit=f"{HOST}:2"),
)  # fmt: skip
