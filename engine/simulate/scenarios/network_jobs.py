"""Jobs over several hosts that one bad host, one leaf switch or one bad port holds back.

Collectives are synchronous: whatever one link lacks, every rank waits for, and every port of the
job moves the same bytes a second as before times the pace that is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.herrings import strew
from engine.simulate.scenarios.host import began, common
from engine.simulate.scenarios.machine import Usage, server, tell
from engine.simulate.scenarios.machine_io import HDR, NDR, Level, rdma
from engine.simulate.scenarios.nvidia_boards import (
    A100_80,
    B200,
    H100,
    H200,
    IDLE,
    TRAIN,
    WAIT,
    Board,
    mix,
)
from engine.simulate.scenarios.nvidia_names import style
from engine.simulate.scenarios.nvidia_nodes import Node, fleet, node, publish, settle
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.shapes import since, wobble
from engine.simulate.scenarios.training import JOB, TARGET, Job

# 800 Gb/s as node_infiniband_rate_bytes_per_second gives it (bytes a second).
XDR = 1e11
# What the rate file says while a port looks for a partner: 10 Gb/s (4X SDR).
POLLING = 1.25e9
SPEEDS: Mapping[Board, float] = {A100_80: HDR, H100: NDR, H200: NDR, B200: XDR}

PORTS = 4
# What a port of a healthy job moves each way, as a share of its rate: steps take longer than
# their collectives.
USUAL = 0.27

_BAD_HOST = "node-3"
_VICTIM = "node-1:2"
_STEP_S = 15.0


def train(
    rng: np.random.Generator, count: int, boards: Sequence[Board], *, first: int = 1,
    name: str = JOB,
) -> Job:  # fmt: skip
    """Build a job on ``count`` hosts, 8 GPUs each, numbered from ``first``."""
    hosts = [f"node-{k}" for k in range(first, first + count)]
    nodes = fleet(rng, hosts, boards, TRAIN, step_s=_STEP_S, job=name)
    return Job(nodes, style(rng), nodes[0].board)


def machine(rng: np.random.Generator, host: str) -> Recorder:
    """Return a server's node_exporter without RDMA ports; one in five resends a little."""
    resent = 0.0009 if rng.random() < 0.2 else 0.0002
    return common(tell(server(rng, host, step_s=_STEP_S), Usage()), retrans=resent)


def port(
    record: Recorder, device: str, *, rate: Level, traffic: Level,
    counters: Mapping[str, Level] | None = None, up: Level = 1.0,
) -> None:  # fmt: skip
    """Add a port whose traffic breathes by some per cent."""
    breath = 1.0 + wobble(record.rng, record.ts.size, 0.03)
    moved = np.minimum(record.wide(traffic) * breath, record.wide(rate) * 0.97)
    rdma(record, device, rate=rate, traffic=moved, counters=counters, up=up)


def bump(record: Recorder, device: str, counter: str, moment: float, by: float = 1.0) -> None:
    """Let a counter of a port grow by ``by`` at one moment (Unix s)."""
    name = f"node_infiniband_{counter}"
    for one in record.series:
        if one.name == name and one.labels["device"] == device:
            one.values[:] += since(one.ts, moment, 0.0, by)


def _spare_host(rng: np.random.Generator, work: Job) -> tuple[list[Node], list[RawSeries]]:
    """Return, half of the time, a host beside the job without work; its ports are still."""
    if rng.random() < 0.5:
        return [], []
    other = node(rng, "node-20", work.board, step_s=_STEP_S)
    other.load(rng, IDLE)
    record = machine(rng, other.host)
    for number in range(PORTS):
        port(record, f"mlx5_{number}", rate=SPEEDS[work.board], traffic=2e3)
    return [other], record.series


def _slow_host(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """All ports of a host trained low when it was last booted: nothing changes any more."""
    work = train(rng, int(rng.choice([4, 5, 6])), (A100_80, H100, H200))
    pace = severity.pick(0.84, 0.67, 0.38)
    work.run(rng, mix(TRAIN, WAIT, 1.0 - pace), work.gpus)
    strew(rng, work.nodes, idle=False)
    rate = SPEEDS[work.board]
    # The host before it in the rings has data to send and no credits, where adapters count that.
    held = severity.pick(0.1, 0.2, 0.35) if rng.random() < 0.5 else 0.01
    others, found = _spare_host(rng, work)
    for k, item in enumerate(work.nodes):
        record = machine(rng, item.host)
        own = rate * severity.pick(0.5, 0.25, 0.125) if item.host == _BAD_HOST else rate
        before = work.nodes[(k + 1) % len(work.nodes)].host == _BAD_HOST
        waits = rate / 4.0 * (held if before else 0.01)
        for number in range(PORTS):
            port(record, f"mlx5_{number}", rate=own, traffic=rate * USUAL * pace,
                 counters={"port_transmit_wait_total": waits})  # fmt: skip
        found += record.series
    return publish([*work.nodes, *others], work.how) + found


def _phases(ts: Floats, moment: float) -> tuple[Floats, Floats]:
    """Return what a job does about ports lost at a moment: 1.0 while it waits, while it is down.

    NCCL tries again for some 30 s (timeout 20, 7 retries), then the collective ends in an error
    and the launcher starts the ranks again, on the ports that are left.
    """
    hung = ((ts >= moment) & (ts < moment + 35.0)).astype(np.float64)
    gone = ((ts >= moment + 35.0) & (ts < moment + 110.0)).astype(np.float64)
    return hung, gone


def _leaf(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A leaf switch, or a line card of it, dies: the same port of many hosts polls."""
    count = int(rng.choice([6, 8]))
    work = train(rng, count, (H100, H200, B200))
    rate, rail = SPEEDS[work.board], int(rng.integers(PORTS))
    lost = int(severity.pick(3, count / 2, count))
    dead = set(rng.permutation([item.host for item in work.nodes])[:lost].tolist())
    moment = AT - float(rng.uniform(420.0, 780.0))
    pace = severity.pick(0.8, 0.75, 0.68)
    for gpu in work.gpus:
        hung, gone = _phases(gpu.ts, moment)
        waits = np.maximum(since(gpu.ts, moment, 0.0, 1.0 - pace), hung)
        gpu.run(rng, mix(mix(TRAIN, WAIT, waits), IDLE, gone))
        settle(rng, gpu)
    strew(rng, work.nodes, idle=False)
    never_cabled = rng.random() < 0.4
    found: list[RawSeries] = []
    for item in work.nodes:
        record = machine(rng, item.host)
        hung, gone = _phases(record.ts, moment)
        flow = (1.0 - hung) * (1.0 - gone) * rate * USUAL
        for number in range(PORTS):
            device = f"mlx5_{number}"
            if number != rail:
                # What went over four ports goes over three.
                after = pace * PORTS / (PORTS - 1)
                port(record, device, rate=rate, traffic=flow * since(record.ts, moment, 1, after))
            elif item.host in dead:
                fell = moment + float(rng.uniform(0.0, 8.0))
                port(record, device, rate=since(record.ts, fell, rate, POLLING), traffic=flow,
                     up=since(record.ts, fell, 1.0, 0.0))  # fmt: skip
                bump(record, device, "link_downed_total", fell)
            else:
                # Still up, and hardly a peer left on its rail.
                port(record, device, rate=rate, traffic=flow * since(record.ts, moment, 1.0, 0.3))
        if never_cabled:
            rdma(record, f"mlx5_{PORTS}", rate=POLLING, up=0.0, traffic=0.0)
        found += record.series
    return work.publish() + found


def _elsewhere(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """One port of one host is bad; every rank of the job waits, and one far away is asked about."""
    work = train(rng, int(rng.choice([4, 5, 6])), (A100_80, H100, H200))
    rate, bad, moment = SPEEDS[work.board], f"mlx5_{rng.integers(PORTS)}", began(rng)
    pace = severity.pick(0.82, 0.65, 0.42)
    for gpu in work.gpus:
        gpu.run(rng, mix(TRAIN, WAIT, since(gpu.ts, moment, 0.0, 1.0 - pace)))
        settle(rng, gpu)
    strew(rng, work.nodes, spare=(_VICTIM,), idle=False)
    trained_low = rng.random() < 0.5
    errors = severity.pick(0.2, 3.0, 50.0)
    others, found = _spare_host(rng, work)
    for item in work.nodes:
        record = machine(rng, item.host)
        flow = rate * USUAL * since(record.ts, moment, 1.0, pace)
        for number in range(PORTS):
            device = f"mlx5_{number}"
            if item.host != _BAD_HOST or device != bad:
                port(record, device, rate=rate, traffic=flow)
            elif trained_low:
                low = severity.pick(0.5, 0.25, 0.125)
                port(record, device, rate=rate * since(record.ts, moment, 1.0, low), traffic=flow)
                bump(record, device, "link_downed_total", moment)
            else:
                port(record, device, rate=rate, traffic=flow, counters={
                    name: since(record.ts, moment, 0.0, share * errors) for name, share in (
                        ("symbol_error_total", 1.0), ("port_errors_received_total", 0.4),
                        ("link_error_recovery_total", 0.03),
                        ("local_link_integrity_errors_total", 0.05),
                    )
                })  # fmt: skip
        found += record.series
    return publish([*work.nodes, *others], work.how) + found


SCENARIOS = (
    Scenario("ib-slow-host", "All InfiniBand ports of one host trained low, its job waits",
             "network", TARGET, ("ib_link_degraded",), _slow_host, culprit=_BAD_HOST),
    Scenario("ib-leaf-switch", "The same InfiniBand port of many hosts went down at once",
             "network", TARGET, ("ib_link_down",), _leaf),
    Scenario("ib-leaf-switch-fleet", "A rail of many hosts went down, asked about the fleet",
             "network", "fleet", ("ib_link_down",), _leaf),
    Scenario("ib-waits-elsewhere", "A GPU waits since a port of another host is bad",
             "network", _VICTIM, ("ib_link_degraded",), _elsewhere, culprit=_BAD_HOST),
)  # fmt: skip
