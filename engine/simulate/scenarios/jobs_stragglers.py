"""Jobs that one rank holds back: with a cause at the culprit, without one, asked at a victim."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import IDLE, TRAIN, WAIT, mix
from engine.simulate.scenarios.nvidia_gpu import (
    HW_SLOWDOWN,
    HW_THERMAL,
    POWER_BRAKE,
)
from engine.simulate.scenarios.nvidia_nodes import settle
from engine.simulate.scenarios.shapes import since
from engine.simulate.scenarios.training import CULPRIT, TARGET, Job, job

_HOST = CULPRIT.partition(":")[0]
_VICTIM = "node-1:2"
Hurt = Callable[[np.random.Generator, Job, float], None]


def _others_wait(rng: np.random.Generator, work: Job, pace: float, slow: set[str]) -> None:
    """Let all ranks but the slow ones wait in collectives for what the slow ones take longer."""
    waiting = mix(TRAIN.but(link=TRAIN.link * pace), WAIT, 1.0 - pace)
    work.run(rng, waiting, [gpu for gpu in work.gpus if gpu.name not in slow])


def _hot(rng: np.random.Generator, work: Job, pace: float) -> None:
    gpu = work.culprit
    gpu.run(rng, TRAIN.but(link=TRAIN.link * pace, dram=TRAIN.dram * pace),
            cap_mhz=gpu.board.sm_mhz * pace, bits=HW_SLOWDOWN | HW_THERMAL)  # fmt: skip
    settle(rng, gpu)
    heat = gpu.board.slowdown_c + rng.normal(0.6, 0.5, gpu.ts.size)
    gpu.hold("DEV_GPU_TEMP", np.round(heat))


def _limited(rng: np.random.Generator, work: Job, pace: float) -> None:
    gpu, idle = work.culprit, work.board.idle_w
    limit = idle + (work.board.tdp_w - idle) * float(TRAIN.power) * pace**1.8
    gpu.run(rng, TRAIN.but(link=TRAIN.link * pace), limit_w=round(limit))
    settle(rng, gpu)


def _locked(rng: np.random.Generator, work: Job, pace: float) -> None:
    gpu = work.culprit
    clock = round(gpu.board.sm_mhz * pace / 15.0) * 15.0
    gpu.run(rng, TRAIN.but(link=TRAIN.link * pace), cap_mhz=clock)
    settle(rng, gpu)


def _unexplained(rng: np.random.Generator, work: Job, pace: float) -> None:
    # Same clock, same power, more time: it never waits, and nothing of its own says why.
    work.run(rng, TRAIN.but(link=TRAIN.link * pace, dram=TRAIN.dram * 0.95), [work.culprit])


def _one_slow(hurt: Hurt, paces: tuple[float, float, float] = (0.7, 0.5, 0.3)) -> Make:
    """Return the maker of a job in which ``hurt`` slows the culprit to a pace, mild to severe."""

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        work = job(rng)
        pace = severity.pick(*paces)
        _others_wait(rng, work, pace, {CULPRIT})
        hurt(rng, work, pace)
        return work.publish()

    return make


def _braked_node(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    work = job(rng)
    pace = severity.pick(0.6, 0.5, 0.3)
    slow = {gpu.name for gpu in work.gpus if gpu.host == _HOST}
    _others_wait(rng, work, pace, slow)
    for gpu in work.gpus:
        if gpu.name in slow:
            gpu.run(rng, TRAIN.but(link=TRAIN.link * pace), cap_mhz=gpu.board.sm_mhz * pace,
                    bits=HW_SLOWDOWN | POWER_BRAKE)  # fmt: skip
            settle(rng, gpu)
    return work.publish()


def _hang(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # One rank's process is gone; all others spin in a collective that never ends.
    work = job(rng, stock=True)
    struck = AT - severity.pick(480.0, 780.0, 1500.0)
    for gpu in work.gpus:
        after = IDLE if gpu.name == CULPRIT else WAIT
        gpu.run(rng, mix(TRAIN, after, since(gpu.ts, struck, 0.0, 1.0)))
        settle(rng, gpu)
    return work.publish()


def _hang_alive(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Every rank spins: at least one is in another collective than the rest.
    work = job(rng)
    struck = AT - severity.pick(600.0, 900.0, 1500.0)
    for gpu in work.gpus:
        gpu.run(rng, mix(TRAIN, WAIT, since(gpu.ts, struck, 0.0, 1.0)))
        settle(rng, gpu)
    return work.publish()


SCENARIOS = (
    Scenario("job-straggler-thermal", "One hot GPU holds a job back", "job", TARGET,
             ("thermal_slowdown_hw",), _one_slow(_hot, (0.5, 0.4, 0.27)), culprit=CULPRIT),
    Scenario("job-straggler-power-limit", "One GPU with a lowered power limit holds a job back",
             "job", TARGET, ("power_limit_lowered",), _one_slow(_limited), culprit=CULPRIT),
    Scenario("job-straggler-clocks-locked", "One GPU with locked clocks holds a job back", "job",
             TARGET, ("clocks_locked",), _one_slow(_locked), culprit=CULPRIT),
    Scenario("job-straggler-power-brake", "One node's power brake holds a job back", "job",
             TARGET, ("power_brake",), _braked_node, culprit=_HOST),
    Scenario("job-straggler", "One GPU holds a job back, and nothing says why", "job", TARGET,
             ("straggler",), _one_slow(_unexplained), culprit=CULPRIT),
    Scenario("job-victim", "A GPU that waits for a slower peer, asked at the victim", "job",
             _VICTIM, ("waiting_on_straggler", "straggler"), _one_slow(_unexplained),
             culprit=CULPRIT),
    Scenario("job-victim-of-thermal", "A GPU that waits for a hot peer, asked at the victim",
             "job", _VICTIM, ("thermal_slowdown_hw", "waiting_on_straggler"),
             _one_slow(_hot, (0.5, 0.4, 0.27)), culprit=CULPRIT),
    Scenario("job-hang", "A rank is gone, the others wait for it", "job", TARGET,
             ("collective_hang",), _hang, culprit=CULPRIT),
    Scenario("job-hang-all-spin", "All ranks spin in collectives that do not match", "job",
             TARGET, ("collective_hang", "collective_mismatch"), _hang_alive),
)  # fmt: skip
