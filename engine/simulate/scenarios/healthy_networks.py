"""Healthy fabrics that look odd: two kinds of adapters, old flaps of a rail, storage ports."""

from __future__ import annotations

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.herrings import strew
from engine.simulate.scenarios.machine_io import HDR, rdma
from engine.simulate.scenarios.network_jobs import PORTS, SPEEDS, USUAL, bump, machine, port, train
from engine.simulate.scenarios.nvidia_boards import A100_80, B200, H100, H200
from engine.simulate.scenarios.nvidia_nodes import publish
from engine.simulate.scenarios.training import TARGET

# 100 Gb/s as node_infiniband_rate_bytes_per_second gives it (bytes a second).
_EDR = 1.25e10

# Severity says how far a healthy thing strays from the usual.


def _two_adapters(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Bought two years apart: each kind of host has the adapters of its time and a job of its own.
    old = int(severity.pick(4, 3, 2))
    works = (
        train(rng, old, (A100_80,)),
        train(rng, 8 - old, (H100, H200), first=1 + old, name="51240"),
    )
    nodes = [item for work in works for item in work.nodes]
    strew(rng, nodes, idle=False)
    found: list[RawSeries] = []
    for work in works:
        rate = SPEEDS[work.board]
        # As much as each job asks for, the older ports nearer to their rate.
        flow = rate * (severity.pick(0.3, 0.45, 0.6) if rate == HDR else USUAL)
        for item in work.nodes:
            record = machine(rng, item.host)
            for number in range(PORTS):
                port(record, f"mlx5_{number}", rate=rate, traffic=flow,
                     counters={"port_transmit_wait_total": rate / 4.0 * 0.01})  # fmt: skip
            found += record.series
    return publish(nodes, works[0].how) + found


def _switch_rebooted(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A leaf switch got its firmware this morning: its rail flapped everywhere, and is back.
    work = train(rng, int(rng.choice([4, 5, 6])), (A100_80, H100, H200, B200))
    strew(rng, work.nodes, idle=False)
    rate, rail = SPEEDS[work.board], f"mlx5_{rng.integers(PORTS)}"
    when = AT - 3600.0 * severity.pick(9.0, 5.0, 2.5)
    flaps = severity.pick(1.0, 2.0, 4.0)
    found: list[RawSeries] = []
    for item in work.nodes:
        record = machine(rng, item.host)
        for number in range(PORTS):
            port(record, f"mlx5_{number}", rate=rate, traffic=rate * USUAL)
        bump(record, rail, "link_downed_total", when, flaps)
        bump(record, rail, "link_error_recovery_total", when, float(rng.integers(0, 3)))
        # Light fades while a port goes down: some symbols are lost.
        bump(record, rail, "symbol_error_total", when, float(rng.integers(0, 200)))
        bump(record, rail, "port_errors_received_total", when, float(rng.integers(0, 20)))
        found += record.series
    return work.publish() + found


def _bursts(rng: np.random.Generator, ts: Floats, severity: Severity) -> Floats:
    """Return what a storage port moves (bytes a second): reads now and then, or next to none."""
    phase, length = float(rng.uniform(0.0, 300.0)), severity.pick(60.0, 35.0, 0.0)
    on = ((AT - ts + phase) % 300.0 < length).astype(np.float64)
    return 4e4 + severity.pick(2.5e9, 8e9, 0.0) * on


def _storage_port(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # One port more on every host, at half or a quarter of the others' rate: file systems use it.
    work = train(rng, int(rng.choice([4, 5, 6])), (H100, H200))
    strew(rng, work.nodes, idle=False)
    rate, slower = SPEEDS[work.board], severity.pick(HDR, _EDR, _EDR)
    first = rng.random() < 0.3
    found: list[RawSeries] = []
    for item in work.nodes:
        record = machine(rng, item.host)
        for number in range(PORTS + 1):
            # By bus address it comes last, or before all others.
            if number == (0 if first else PORTS):
                rdma(record, f"mlx5_{number}", rate=slower,
                     traffic=_bursts(rng, record.ts, severity))  # fmt: skip
            else:
                port(record, f"mlx5_{number}", rate=rate, traffic=rate * USUAL)
        found += record.series
    return work.publish() + found


SCENARIOS = (
    Scenario("healthy-two-adapters", "Two kinds of hosts with adapters of two generations",
             "healthy", TARGET, (), _two_adapters),
    Scenario("healthy-switch-rebooted", "A rail flapped when its switch rebooted hours ago",
             "healthy", TARGET, (), _switch_rebooted),
    Scenario("healthy-storage-port", "A slower port for storage on every host", "healthy",
             "node-2", (), _storage_port),
)  # fmt: skip
