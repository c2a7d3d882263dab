"""Links: PCIe, NVLink and the fabric between GPUs."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import A100_80, B200, EMBED, H100, H200, L40S, TRAIN
from engine.simulate.scenarios.nvidia_nodes import settle
from engine.simulate.scenarios.nvidia_stage import HOST, TARGET, onset, stage
from engine.simulate.scenarios.shapes import counter, since

# Usable rate of a PCIe 4 lane (GB/s); every generation doubles it.
_LANE_GB = 1.6
# Feeding a GPU from the host: the PCIe link matters.
_FED = EMBED.but(rx=9.0, tx=2.0)


def _narrow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, L40S), _FED, smi=True)
    width = severity.pick(8.0, 4.0, 1.0)
    most = width * _LANE_GB * 2.0 ** (play.board.gen - 4) * 0.85
    slow = max(min(most / 9.0, 1.0), 0.15)
    play.gpu.run(rng, _FED.but(rx=min(9.0, most), gr=_FED.gr * slow, sm=_FED.sm * slow,
                               dram=_FED.dram * slow, power=_FED.power * slow))  # fmt: skip
    settle(rng, play.gpu)
    play.gpu.hold("DEV_PCIE_LINK_WIDTH", width)
    return play.publish()


def _slow_generation(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (H100, H200), _FED, smi=True)
    gen = severity.pick(3.0, 2.0, 1.0)
    most = 16.0 * _LANE_GB * 2.0 ** (gen - 4) * 0.85
    slow = min(most / 9.0, 1.0)
    play.gpu.run(rng, _FED.but(rx=min(9.0, most), gr=_FED.gr * slow, sm=_FED.sm * slow,
                               dram=_FED.dram * slow, power=_FED.power * slow))  # fmt: skip
    settle(rng, play.gpu)
    play.gpu.hold("DEV_PCIE_LINK_GEN", gen)
    return play.publish()


def _replays(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, L40S), TRAIN, stock=True)
    rate = since(play.ts, onset(rng), 0.0, severity.pick(1.0, 12.0, 150.0))
    play.gpu.hold("DEV_PCIE_REPLAY_COUNTER", counter(rng, play.ts, rate, start=80.0, whole=True))
    found = counter(rng, play.ts, rate * 1.3, start=100.0, whole=True)
    play.gpu.hold("DEV_PCIE_COUNT_CORRECTABLE_ERRORS", found)
    return play.publish()


def _nvlink_errors(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, H200), TRAIN)
    rate = severity.pick(130.0, 1500.0, 40000.0)
    play.gpu.hold("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
                  counter(rng, play.ts, rate, start=5000.0, whole=True))  # fmt: skip
    play.gpu.hold("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
                  counter(rng, play.ts, rate / 50.0, start=90.0, whole=True))  # fmt: skip
    return play.publish()


def _nvlink_recovery(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100), TRAIN)
    for name, rate in (("REPLAY", severity.pick(3.0, 20.0, 200.0)),
                       ("RECOVERY", severity.pick(0.05, 0.3, 2.0))):  # fmt: skip
        play.gpu.hold(f"DEV_NVLINK_{name}_ERROR_COUNT_TOTAL",
                      counter(rng, play.ts, rate, start=10.0, whole=True))  # fmt: skip
    return play.publish()


def _nvlink_down(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, H200, B200), TRAIN, stock=True)
    gpu, struck = play.gpu, AT - float(rng.uniform(150.0, 700.0))
    # Up to NVLink 4 there is one code; NVLink 5 has one for each unit.
    code = 74.0 if play.board is not B200 else float(rng.choice([145.0, 149.0]))
    load = TRAIN.but(link=since(gpu.ts, struck, 0.22, 0.22 * severity.pick(0.9, 0.5, 0.0)))
    gpu.run(rng, load)
    settle(rng, gpu)
    gpu.hold("DEV_XID_ERRORS", since(gpu.ts, struck, 0.0, code))
    return play.publish()


def _fabric_limited(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (H100, H200, B200), TRAIN)
    for item in play.nodes:
        for gpu in item.gpus:
            gpu.hold("DEV_FABRIC_MANAGER_STATUS", 3.0)
            gpu.hold("DEV_FABRIC_HEALTH_SUMMARY", 1.0)
    began = AT - severity.pick(1000.0, 1600.0, 7200.0)
    play.gpu.hold("DEV_FABRIC_HEALTH_SUMMARY", since(play.ts, began, 1.0, 3.0))
    return play.publish()


def _fabric_manager(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (H100, H200), TRAIN.but(link=0.0, gr=0.4, sm=0.1, tensor=0.02, power=0.2))
    failed, code = (severity.pick(1.0, 4.0, 4.0), severity.pick(0.0, 3.0, 3.0))
    for item in play.nodes:
        sick = item.host == HOST
        for gpu in item.gpus:
            gpu.hold("DEV_FABRIC_MANAGER_STATUS", failed if sick else 3.0)
            gpu.hold("DEV_FABRIC_MANAGER_ERROR_CODE", code if sick else 0.0)
            gpu.run(rng, TRAIN if not sick else TRAIN.but(link=0.0, gr=0.3, sm=0.1, tensor=0.02,
                                                          power=0.2))  # fmt: skip
            settle(rng, gpu)
    return play.publish()


def _slow_links(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Per-link traffic of an all-to-all: some of this GPU's links carry a fraction of the others'.
    play = stage(rng, (A100_80, H100), TRAIN)
    weak = int(severity.pick(2, 4, 8))
    for gpu in play.nodes[0].gpus:
        for link in range(gpu.board.links):
            rate = 0.22 * gpu.board.link_gb * 1e9 / gpu.board.links
            poor = gpu is play.gpu and link < weak
            share = severity.pick(0.4, 0.25, 0.1) if poor else 1.0
            noise = 1.0 + rng.normal(0.0, 0.03, gpu.ts.size)
            gpu.hold(f"PROF_NVLINK_L{link}_TX_BYTES", np.round(rate * share * noise))
            gpu.hold(f"PROF_NVLINK_L{link}_RX_BYTES", np.round(rate * share * noise * 0.99))
    return play.publish()


SCENARIOS = (
    Scenario("pcie-narrow", "A PCIe link with fewer lanes than its maximum", "links", TARGET,
             ("pcie_degraded",), _narrow),
    Scenario("pcie-slow", "A PCIe link at a lower generation under load", "links", TARGET,
             ("pcie_degraded",), _slow_generation),
    Scenario("pcie-errors", "PCIe replays rise", "links", TARGET, ("pcie_errors",), _replays),
    Scenario("nvlink-errors", "NVLink CRC errors rise", "links", TARGET, ("nvlink_errors",),
             _nvlink_errors),
    Scenario("nvlink-recoveries", "An NVLink replays and recovers again and again", "links",
             TARGET, ("nvlink_errors",), _nvlink_recovery),
    Scenario("nvlink-down", "An NVLink goes down, with its Xid", "links", TARGET,
             ("nvlink_down", "nvlink_errors"), _nvlink_down),
    Scenario("nvlink-slow-links", "Some links of one GPU carry far less than the others",
             "links", TARGET, ("nvlink_degraded", "nvlink_down"), _slow_links),
    Scenario("fabric-limited", "The fabric reports limited capacity for one GPU", "links", TARGET,
             ("nvlink_degraded", "nvlink_down", "nvswitch_fault"), _fabric_limited),
    Scenario("fabric-manager", "The fabric manager of a node is not healthy", "links", HOST,
             ("nvswitch_fault",), _fabric_manager, culprit=HOST),
)  # fmt: skip
