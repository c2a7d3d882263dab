"""Healthy GPUs whose readings look odd: reboots, restarts, slices, old codes, gaps, warmth."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.hosts import cpus
from engine.simulate.scenarios.nvidia_boards import (
    A100_40,
    A100_80,
    H100,
    H200,
    IDLE,
    L40S,
    T4,
    TRAIN,
    mix,
)
from engine.simulate.scenarios.nvidia_names import style
from engine.simulate.scenarios.nvidia_nodes import node, publish, settle
from engine.simulate.scenarios.nvidia_stage import HOST, TARGET, stage
from engine.simulate.scenarios.shapes import counter, scrapes, since

# Severity says how far a healthy thing strays from the usual.


def _rebooted(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Maintenance: no readings for some minutes, counters begin again, the job is resumed.
    play = stage(rng, (A100_80, H100, H200), TRAIN, step_s=15.0)
    back = AT - severity.pick(780.0, 660.0, 540.0)
    gone = back - 400.0
    item = play.nodes[0]
    for gpu in item.gpus:
        gpu.run(rng, mix(IDLE, TRAIN, since(gpu.ts, back + 90.0, 0.0, 1.0)))
        settle(rng, gpu)
        energy = counter(rng, gpu.ts, np.asarray(gpu.fields["DEV_POWER_USAGE"]) * 1e3,
                         start=8e11, reset_at=back)  # fmt: skip
        away = (gpu.ts >= gone) & (gpu.ts < back)
        for name, value in {**gpu.fields, "DEV_TOTAL_ENERGY_CONSUMPTION": energy.round()}.items():
            gpu.hold(name, np.where(away, np.nan, value))
    return play.publish()


def _slices(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Seven slices, some of them empty. Utilisation is not defined under MIG.
    item = node(rng, HOST, (A100_40, A100_80, H100)[int(rng.integers(3))])
    busy = int(severity.pick(6, 4, 2))
    item.load(rng, TRAIN.but(gr=0.9 * busy / 7, sm=0.6 * busy / 7, tensor=0.2 * busy / 7,
                             power=0.7 * busy / 7, dram=0.3 * busy / 7, link=0.0))  # fmt: skip
    for gpu in item.gpus:
        n = gpu.ts.size
        gpu.views = [
            (
                {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": str(7 + k)},
                {
                    "DEV_GPU_UTIL": np.nan,
                    "DEV_MEM_COPY_UTIL": np.nan,
                    "PROF_GR_ENGINE_ACTIVE": rng.uniform(0.8, 0.97, n) if k < busy else 0.0,
                    "PROF_SM_ACTIVE": rng.uniform(0.5, 0.75, n) if k < busy else 0.0,
                    "PROF_DRAM_ACTIVE": rng.uniform(0.2, 0.4, n) if k < busy else 0.0,
                    "PROF_PIPE_TENSOR_ACTIVE": rng.uniform(0.1, 0.25, n) if k < busy else 0.0,
                },
            )
            for k in range(7)
        ]
    return publish([item], style(rng))


def _old_xid(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The gauge keeps the last code; nothing has happened for days.
    play = stage(rng, (A100_80, H100, L40S), TRAIN, stock=True)
    play.gpu.hold("DEV_XID_ERRORS", severity.pick(13.0, 43.0, 94.0))
    return play.publish()


def _restarted(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The exporter was restarted: its totals begin at nought and climb as before.
    play = stage(rng, (A100_80, H100), TRAIN)
    when = AT - severity.pick(800.0, 500.0, 250.0)
    for gpu in play.nodes[0].gpus:
        for name, start in (("DEV_PCIE_REPLAY_COUNTER", 900.0),
                            ("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 4000.0),
                            ("DEV_ECC_SBE_VOL_TOTAL", 3.0)):  # fmt: skip
            gpu.hold(name, since(gpu.ts, when, start, 0.0))
        power = np.asarray(gpu.fields["DEV_POWER_USAGE"])
        gpu.hold("DEV_TOTAL_ENERGY_CONSUMPTION",
                 counter(rng, gpu.ts, power * 1e3, start=9e11, reset_at=when).round())  # fmt: skip
    return play.publish()


def _mixed(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A workstation node: two sorts of boards, each as hot and fast as its kind.
    item = node(rng, HOST, A100_40)
    for gpu in item.gpus[4:]:
        gpu.board = T4 if severity is Severity.SEVERE else L40S
    for gpu in item.gpus:
        gpu.run(rng, TRAIN.but(power=0.9 if gpu.index >= 4 else 0.7, link=0.0))
        settle(rng, gpu)
    return publish([item], style(rng))


def _hot(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A hot aisle: everything warm, all below the limits, no clock held.
    play = stage(rng, (A100_80, H100), TRAIN)
    for item in play.nodes:
        for gpu in item.gpus:
            inlet = gpu.board.max_op_c - 37.0 * 0.85 - severity.pick(16.0, 12.0, 9.0)
            gpu.run(rng, TRAIN, inlet_c=inlet, memory_cooling=0.7)
            settle(rng, gpu)
    return play.publish()


def _busy_loader(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Loaders on every hyper-thread, and the GPUs are fed all the same.
    play = stage(rng, (A100_80, H100), TRAIN, step_s=15.0)
    out = play.publish()
    for item in play.nodes:
        user = severity.pick(0.55, 0.68, 0.78)
        out += cpus(rng, item.host, scrapes(rng, step_s=15.0), user=user, system=0.04)
    return out


def _gaps(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A monitoring network that loses scrapes; every reading that came is sound.
    item = node(rng, HOST, H100, step_s=15.0, missing=severity.pick(0.1, 0.2, 0.35))
    item.load(rng, TRAIN)
    return publish([item], style(rng, stock=True))


SCENARIOS = tuple(
    Scenario(f"healthy-{name}", title, "healthy", target, (), make)
    for name, title, target, make in (
        ("rebooted", "A node back from maintenance", HOST, _rebooted),
        ("mig-slices", "MIG slices, some of them empty", TARGET, _slices),
        ("old-xid", "An Xid from days ago still in the gauge", TARGET, _old_xid),
        ("exporter-restarted", "An exporter restarted, counters began again", TARGET, _restarted),
        ("mixed-boards", "Two kinds of boards in one node", TARGET, _mixed),
        ("mixed-boards-node", "A node of two kinds of boards", HOST, _mixed),
        ("hot-aisle", "Warm everywhere, within limits", HOST, _hot),
        ("busy-loader", "Data loaders fill the CPUs, GPUs are fed", TARGET, _busy_loader),
        ("lost-scrapes", "Scrapes lost on the way", TARGET, _gaps),
    )
)
