"""Networks: InfiniBand and RoCE ports, congestion, and collectives over TCP."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.host import HOST, began, common
from engine.simulate.scenarios.machine import Usage, server, tell
from engine.simulate.scenarios.machine_io import HDR, NDR, rdma
from engine.simulate.scenarios.nvidia_boards import A100_80, H100, TRAIN, WAIT, mix
from engine.simulate.scenarios.nvidia_nodes import fleet, node
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import show
from engine.simulate.scenarios.shapes import since

PORTS = 8
BAD = "mlx5_3"


def _node(rng: np.random.Generator) -> Recorder:
    return common(tell(server(rng, HOST), Usage()))


def _gpus(rng: np.random.Generator, waiting: float) -> list[RawSeries]:
    """Return the GPUs of the host: a share of the time (0 to 1) they wait in collectives."""
    built = node(rng, HOST, (H100, A100_80)[int(rng.integers(2))])
    built.load(rng, mix(TRAIN, WAIT, waiting))
    return show(rng, [built])


def _down(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A port that was ACTIVE goes down and polls; in the severe case its neighbour with it."""
    record = _node(rng)
    dead = {BAD, "mlx5_4"} if severity is Severity.SEVERE else {BAD}
    # Inside the window, or before it: siblings and its own counters say that it was in use.
    moment = AT - float(rng.uniform(330.0, 1500.0))
    for number in range(PORTS):
        device = f"mlx5_{number}"
        if device in dead:
            falls = np.where(np.abs(record.ts - moment) < 120.0, 1.0 / 60.0, 0.0)
            rdma(record, device, up=since(record.ts, moment, 1.0, 0.0),
                 counters={"link_downed_total": falls})  # fmt: skip
        else:
            rdma(record, device)
    return record.series + _gpus(rng, severity.pick(0.15, 0.3, 0.6))


def _slow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A port trained at half, a quarter or an eighth of its siblings' speed."""
    record = _node(rng)
    for number in range(PORTS):
        if f"mlx5_{number}" == BAD:
            rate = NDR * severity.pick(0.5, 0.25, 0.125)
            rdma(record, BAD, rate=rate, traffic=min(9e9, rate * 0.8))
        else:
            rdma(record, f"mlx5_{number}")
    return record.series + _gpus(rng, severity.pick(0.2, 0.4, 0.6))


def _errors(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Symbol errors, packets received with errors and recoveries on one port of eight."""
    record = _node(rng)
    moment = began(rng)
    rate = severity.pick(0.2, 3.0, 50.0)
    for number in range(PORTS):
        counters = {}
        if f"mlx5_{number}" == BAD:
            counters = {name: since(record.ts, moment, 0.0, share * rate) for name, share in (
                ("symbol_error_total", 1.0), ("port_errors_received_total", 0.4),
                ("link_error_recovery_total", 0.03), ("local_link_integrity_errors_total", 0.05),
            )}  # fmt: skip
        rdma(record, f"mlx5_{number}", counters=counters, traffic=8.6e9 if counters else 9e9)
    return record.series + _gpus(rng, severity.pick(0.12, 0.25, 0.5))


def _roce(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """RoCE under congestion: marks, notifications, pause frames; links themselves are sound."""
    record = _node(rng)
    moment = began(rng)
    marks = severity.pick(3_000.0, 30_000.0, 200_000.0)
    for number in range(PORTS):
        strength = float(rng.uniform(0.7, 1.3))
        counters = {
            name: since(record.ts, moment, 0.5, share * marks * strength)
            for name, share in (
                ("np_ecn_marked_roce_packets_received_total", 1.0),
                ("np_cnp_packets_sent_total", 0.4),
                ("rp_cnp_packets_handled_total", 0.4),
                ("out_of_sequence_packets_received_total", severity.pick(1e-4, 4e-4, 1e-3)),
                ("packet_sequence_errors_total", severity.pick(1e-4, 4e-4, 1e-3)),
            )
        }
        rdma(record, f"mlx5_{number}", rate=NDR, traffic=severity.pick(6e9, 4e9, 1.5e9),
             counters=counters)  # fmt: skip
        wire = {"device": f"ens{number}f0np0"}
        pauses = severity.pick(150.0, 1_500.0, 12_000.0) * strength
        paused_us = severity.pick(40_000.0, 150_000.0, 500_000.0) * strength
        record.count("node_ethtool_received_prio3_pause",
                     since(record.ts, moment, 0.2, pauses), wire)  # fmt: skip
        record.count("node_ethtool_received_prio3_pause_duration",
                     since(record.ts, moment, 20.0, paused_us), wire)  # fmt: skip
        record.count("node_ethtool_transmitted_prio3_pause", 0.3, wire)
        record.count("node_ethtool_received_discards_phy", 0.0, wire)
        record.count("node_ethtool_received_crc_errors_phy", 0.0, wire)
    return record.series + _gpus(rng, severity.pick(0.25, 0.45, 0.7))


def _credits(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """InfiniBand ports have data to send and no credits for much of the time; no errors.

    A tick of ``port_transmit_wait`` is taken as one flit of four bytes at the link's speed.
    Adapters differ in that, so it begins inside the usual window: the rise and the fall of traffic
    tell it.
    """
    record = _node(rng)
    moment = AT - float(rng.uniform(420.0, 720.0))
    ticks = HDR / 4.0 * severity.pick(0.3, 0.5, 0.8)
    for number in range(PORTS):
        waits = since(record.ts, moment, HDR / 4.0 * 0.01, ticks * float(rng.uniform(0.8, 1.1)))
        rdma(record, f"mlx5_{number}", rate=HDR,
             traffic=since(record.ts, moment, 1.1e10, severity.pick(7e9, 4.5e9, 2e9)),
             counters={"port_transmit_wait_total": waits})  # fmt: skip
    return record.series + _gpus(rng, severity.pick(0.25, 0.45, 0.7))


def _resent(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """TCP sends a few per cent again: the path drops, the interface counts no errors."""
    record = tell(server(rng, HOST), Usage(softirq=0.02))
    lost = since(record.ts, began(rng), 0.0003, severity.pick(0.025, 0.06, 0.15))
    rate = severity.pick(1.1e9, 6e8, 2e8)
    common(record, rate=rate, retrans=lost)
    return record.series + _gpus(rng, severity.pick(0.3, 0.5, 0.75))


def _sockets(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Collectives of a job on several nodes go over eth0; the RDMA ports, all up, are still."""
    hosts = [f"node-{k}" for k in range(21, 21 + int(severity.pick(2, 2, 4)))]
    waiting = severity.pick(0.45, 0.65, 0.82)
    job = "60417"
    found = show(rng, fleet(rng, hosts, (H100,), mix(TRAIN, WAIT, waiting), job=job))
    # 100 Gb/s Ethernet near its rate, or 25 Gb/s: what TCP makes of it.
    speed = severity.pick(1.25e10, 1.25e10, 3.1e9)
    rate = speed * severity.pick(0.45, 0.7, 0.85)
    for host in hosts:
        record = tell(server(rng, host, step_s=15.0), Usage(system=0.09, softirq=0.05, load=0.35))
        common(record, rate=rate, speed=speed)
        for number in range(PORTS):
            rdma(record, f"mlx5_{number}", traffic=0.0)
        found += record.series
    return found


def _network(ident: str, title: str, causes: tuple[str, ...], make: Make,
             target: str = HOST) -> Scenario:  # fmt: skip
    return Scenario(ident, title, "network", target, causes, make)


SCENARIOS = (
    _network("ib-link-down", "An InfiniBand port went down", ("ib_link_down",), _down),
    _network("ib-link-slow", "An InfiniBand port runs below its siblings' speed",
             ("ib_link_degraded",), _slow),
    _network("ib-link-errors", "Errors rise on one InfiniBand port", ("ib_link_degraded",),
             _errors),
    _network("roce-congestion", "RoCE: congestion marks and pause frames", ("network_congestion",),
             _roce),
    _network("ib-congestion", "InfiniBand ports wait for credits", ("network_congestion",),
             _credits),
    _network("tcp-retransmits", "TCP sends much again", ("network_congestion",), _resent),
    _network("nccl-socket-fallback", "Collectives over Ethernet while RDMA is still",
             ("nccl_socket_fallback",), _sockets, "job/60417"),
)  # fmt: skip
