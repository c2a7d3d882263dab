"""Faults of AMD GPUs as ROCm's device-metrics-exporter shows them: power, heat, clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.amd_boards import (
    IDLE,
    MI250,
    MI300X,
    MI325X,
    TRAIN,
    Board,
    Gpu,
    Level,
)
from engine.simulate.scenarios.amd_gpu import Exporter
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.shapes import since

HOST, INDEX = "mi-node-2", 5
TARGET = f"{HOST}:{INDEX}"
Sick = Callable[[np.random.Generator, Severity, Floats, Gpu], Gpu]


def node(
    board: Board, sick: Sick, *, everywhere: bool = False, violations: bool = True,
    partitions: bool = False,
) -> Make:  # fmt: skip
    """Return the maker of a node under training load with one sick GPU, or with all of them sick.

    Args:
        board: what the node is built of.
        sick: turns a healthy `Gpu` into the sick one.
        everywhere: all GPUs are sick.
        violations: whether violation metrics are exported.
        partitions: the node may be in CPX mode, where partitions other than 0 show 0 W.
    """

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        mode = "cpx" if partitions and rng.random() < 0.4 else "spx"
        exporter = Exporter(rng, HOST, board, mode=mode, violations=violations)
        pod = "train-0" if rng.random() < 0.5 else None
        bound = _near_limit(rng)
        without_work = int(rng.integers(8)) if rng.random() < 0.2 and not everywhere else INDEX
        for index in range(8):
            gpu = Gpu(index, violation={"ppt": bound}, clock=float(rng.normal(0.93, 0.006)))
            if index == without_work != INDEX:
                gpu = replace(gpu, work=IDLE, violation={})
            if everywhere or index == INDEX:
                gpu = sick(rng, severity, exporter.ts, gpu)
            exporter.publish(gpu, pod=pod)
            for part in range(1, 8 if mode == "cpx" else 1):
                exporter.publish(replace(gpu, partition=part), pod=pod)
        return exporter.series

    return make


def _near_limit(rng: np.random.Generator) -> float:
    """Return how often (0 to 1) a healthy GPU in training touches its package power limit."""
    return float(rng.choice([0.0, 0.0, 0.03, 0.08]))


def _began(rng: np.random.Generator) -> float:
    """Return when it began (Unix s): before the readings do, or 15 to 20 minutes ago."""
    return AT - float(rng.choice([7200.0, rng.uniform(900.0, 1200.0)]))


def _capped(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """A power cap of 550, 450 or 320 W on a 750 W board: held there nearly all the time."""
    when = _began(rng)
    cap = severity.pick(550.0, 450.0, 320.0)
    share = since(ts, when, 0.05, severity.pick(0.82, 0.93, 0.98))
    clock = since(ts, when, 0.93, severity.pick(0.84, 0.7, 0.5))
    below: dict[str, Level] = {"power": since(ts, when, 0.0, severity.pick(0.8, 0.92, 0.97))}
    held = since(ts, when, 750.0, cap)
    return replace(gpu, cap_w=held, clock=clock, violation={"ppt": share}, below=below)


def _socket_hot(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    when = _began(rng)
    share = since(ts, when, 0.0, severity.pick(0.3, 0.6, 0.92))
    return replace(
        gpu,
        held_c=since(ts, when, 79.0, severity.pick(97.0, 100.0, 103.0)),
        clock=since(ts, when, 0.93, severity.pick(0.84, 0.7, 0.5)),
        violation={"socket_thermal": share},
        below={"thermal": share},
    )


def _prochot(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """Emergency throttling of a GPU that is far too hot."""
    when = _began(rng)
    share = since(ts, when, 0.0, severity.pick(0.35, 0.7, 0.97))
    return replace(
        gpu,
        held_c=since(ts, when, 82.0, severity.pick(104.0, 107.0, 110.0)),
        clock=since(ts, when, 0.93, severity.pick(0.62, 0.45, 0.25)),
        violation={"processor_hot": share, "socket_thermal": share},
        below={"thermal": share},
    )


def _braked(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """PROCHOT asserted from outside on all GPUs, which are cool: power supply or rack."""
    share = since(ts, AT - 1000.0, 0.0, severity.pick(0.5, 0.85, 0.99))
    clock = since(ts, AT - 1000.0, 0.93, severity.pick(0.55, 0.42, 0.25))
    return replace(
        gpu, clock=clock + rng.normal(0.0, 0.004, ts.size), violation={"processor_hot": share}
    )


def _hbm_hot(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    when = _began(rng)
    share = since(ts, when, 0.0, severity.pick(0.3, 0.6, 0.92))
    return replace(
        gpu,
        held_hbm_c=since(ts, when, 74.0, severity.pick(96.0, 100.0, 106.0)),
        clock=since(ts, when, 0.93, severity.pick(0.84, 0.7, 0.52)),
        violation={"hbm_thermal": share},
        below={"thermal": share},
    )


def _warm(_rng: np.random.Generator, severity: Severity, _ts: Floats, gpu: Gpu) -> Gpu:
    """Clearly hotter than its siblings at the same power; not yet slowed."""
    more = severity.pick(13.0, 17.0, 21.0)
    return replace(gpu, junction_c=more, memory_c=more - 2.0)


def _airflow(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    when = AT - 1100.0
    hot = severity.pick(96.0, 99.0, 103.0) + float(rng.normal(0.0, 1.0))
    share = since(ts, when, 0.0, severity.pick(0.25, 0.5, 0.9))
    return replace(
        gpu,
        held_c=since(ts, when, 78.0, hot),
        clock=since(ts, when, 0.93, severity.pick(0.86, 0.74, 0.55)),
        violation={"socket_thermal": share},
        below={"thermal": share},
    )


def _locked(_rng: np.random.Generator, severity: Severity, _ts: Floats, gpu: Gpu) -> Gpu:
    """A setting holds the clock; nothing violates anything."""
    return replace(gpu, clock=severity.pick(0.71, 0.57, 0.38), violation={})


def _mi250_hot(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """No violation metrics on MI200: the temperature and the clock have to tell it."""
    when = _began(rng)
    return replace(
        gpu,
        held_c=since(ts, when, 77.0, severity.pick(100.0, 102.0, 105.0)),
        clock=since(ts, when, 0.93, severity.pick(0.76, 0.62, 0.42)),
        violation={},
    )


def _job(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A job on two nodes: one GPU throttles, fifteen wait for it in collectives."""
    found = []
    for number in (2, 3):
        exporter = Exporter(rng, f"mi-node-{number}", MI300X, step_s=30.0)
        exporter.prefix = ""
        exporter.record.labels |= {"job_id": "88210", "job_user": "mia", "job_partition": "mi300"}
        for index in range(8):
            # Waiting in collectives: busy by activity, at a fraction of the power.
            wait = severity.pick(0.72, 0.62, 0.48)
            gpu = Gpu(index, replace(TRAIN, power=wait, umc=30.0))
            if (number, index) == (2, INDEX):
                gpu = _socket_hot(rng, severity, exporter.ts, Gpu(index))
            exporter.publish(gpu)
        found += exporter.series
    return found


def _amd(ident: str, title: str, target: str, causes: tuple[str, ...], make: Make,
         culprit: str | None = None) -> Scenario:  # fmt: skip
    return Scenario(ident, title, "amd", target, causes, make, culprit)


_HOT = ("thermal_slowdown_sw", "thermal_slowdown_hw")

SCENARIOS = (
    _amd("amd-power-cap-lowered", "MI300X held at a lowered power cap", TARGET,
         ("power_limit_lowered",), node(MI300X, _capped)),
    _amd("amd-socket-thermal", "MI300X slowed by socket temperature", TARGET, _HOT,
         node(MI300X, _socket_hot)),
    _amd("amd-processor-hot", "MI325X in emergency throttling, far too hot", TARGET,
         ("thermal_slowdown_hw", "thermal_slowdown_sw"), node(MI325X, _prochot)),
    _amd("amd-prochot-cool", "PROCHOT on all GPUs of a node, none of them hot", HOST,
         ("power_brake", "platform_power_cap"), node(MI300X, _braked, everywhere=True), HOST),
    _amd("amd-hbm-thermal", "HBM too hot while the die is not", TARGET, ("memory_overheat",),
         node(MI300X, _hbm_hot)),
    _amd("amd-cooling-outlier", "One MI325X much hotter than its siblings", TARGET,
         ("cooling_outlier",), node(MI325X, _warm)),
    _amd("amd-node-airflow", "All GPUs of a node hot together", HOST,
         ("node_airflow", *_HOT), node(MI300X, _airflow, everywhere=True), HOST),
    _amd("amd-clocks-locked", "GFX clock pinned without any violation", TARGET,
         ("clocks_locked",), node(MI300X, _locked)),
    _amd("amd-mi250-hot", "MI250 hot and slow, with no violation metrics", TARGET,
         (*_HOT, "cooling_outlier"), node(MI250, _mi250_hot)),
    _amd("amd-job-hot-gpu", "One hot GPU holds a job on two nodes", "job/88210", _HOT, _job,
         TARGET),
)  # fmt: skip
