"""A server's mounts, interfaces and RDMA ports as node_exporter shows them.

Names are those of node_exporter 1.9 and later; ``mountstats`` is a collector that a site has to
switch on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.samples import Floats
from engine.simulate.scenarios.recorder import Recorder

Level = Floats | float

# 400 and 200 Gb/s as node_infiniband_rate_bytes_per_second gives them (bytes a second).
NDR, HDR = 5e10, 2.5e10


def filesystem(
    record: Recorder, mount: str, device: str, kind: str, *, size: float, free: Level,
    files: float = 5e8, files_free: Level = 0.8,
) -> None:  # fmt: skip
    """Add a mount: size (bytes), share free (0 to 1), inodes and their share free."""
    labels = {"mountpoint": mount, "device": device, "fstype": kind}
    left = np.round(record.wide(free) * size)
    record.gauge("node_filesystem_size_bytes", size, labels)
    record.gauge("node_filesystem_avail_bytes", left, labels)
    record.gauge("node_filesystem_free_bytes", np.minimum(left * 1.01, size), labels)
    record.gauge("node_filesystem_files", files, labels)
    record.gauge("node_filesystem_files_free", np.round(record.wide(files_free) * files), labels)
    record.gauge("node_filesystem_readonly", 0.0, labels)
    record.gauge("node_filesystem_device_error", 0.0, labels)


def interface(
    record: Recorder, device: str = "eth0", *, rate: Level = 4e6, speed: float = 1.25e10,
    retrans: Level = 0.0002,
) -> None:  # fmt: skip
    """Add the host's Ethernet interface and TCP.

    Args:
        record: where series go.
        device: name of the interface.
        rate: bytes a second each way.
        speed: of the link (bytes a second).
        retrans: share of TCP segments sent again, 0 to 1.
    """
    labels = {"device": device}
    moved = record.wide(rate)
    for way in ("receive", "transmit"):
        record.count(f"node_network_{way}_bytes_total", moved, labels, whole=False)
        record.count(f"node_network_{way}_packets_total", moved / 4000.0, labels, whole=False)
        record.count(f"node_network_{way}_errs_total", 0.0, labels)
        record.count(f"node_network_{way}_drop_total", 0.0, labels)
    record.gauge("node_network_up", 1.0, labels)
    record.gauge("node_network_speed_bytes", speed, labels)
    segments = moved / 1400.0 + 200.0
    record.count("node_netstat_Tcp_OutSegs", segments, whole=False)
    record.count("node_netstat_Tcp_InSegs", segments, whole=False)
    record.count("node_netstat_Tcp_RetransSegs", segments * retrans)


def rdma(
    record: Recorder, device: str, *, rate: Level = NDR, up: Level = 1.0, traffic: Level = 9e9,
    counters: Mapping[str, Level] | None = None,
) -> None:  # fmt: skip
    """Add an InfiniBand or RoCE port.

    Args:
        record: where series go.
        device: for example ``mlx5_0``.
        rate: speed of the link (bytes a second).
        up: 1 while ACTIVE and LinkUp, 0 while down and polling.
        traffic: bytes a second each way.
        counters: events a second by name after ``node_infiniband_``.
    """
    labels = {"device": device, "port": "1"}
    state = record.wide(up)
    record.gauge("node_infiniband_state_id", np.where(state > 0, 4.0, 1.0), labels)
    record.gauge("node_infiniband_physical_state_id", np.where(state > 0, 5.0, 2.0), labels)
    record.gauge("node_infiniband_rate_bytes_per_second", rate, labels)
    moved = record.wide(traffic) * state
    for way in ("received", "transmitted"):
        record.count(f"node_infiniband_port_data_{way}_bytes_total", moved, labels, whole=False)
        record.count(f"node_infiniband_port_packets_{way}_total", moved / 4096.0, labels,
                     whole=False)  # fmt: skip
    given = dict(counters or {})
    for name in _PORT_COUNTERS:
        # Now and then a counter stands at what happened long ago.
        old = float(record.rng.integers(1, 60)) if record.rng.random() < 0.1 else 0.0
        record.count(f"node_infiniband_{name}", given.pop(name, 0.0), labels, start=old)
    for name, events in given.items():
        record.count(f"node_infiniband_{name}", events, labels)


_PORT_COUNTERS = (
    "link_downed_total", "link_error_recovery_total", "local_link_integrity_errors_total",
    "port_errors_received_total", "port_discards_transmitted_total", "port_transmit_wait_total",
    "symbol_error_total",
)  # fmt: skip


def nfs(
    record: Recorder, export: str, *, reads: Level = 300.0, read_rtt_s: Level = 0.0012,
    writes: Level = 30.0, write_rtt_s: Level = 0.002, queue_s: Level = 0.00005, kb: float = 512.0,
    timeouts: Level = 0.0, resent: Level = 0.0,
) -> None:  # fmt: skip
    """Add an NFS mount as ``mountstats`` and ``nfs`` show it.

    Args:
        record: where series go.
        export: ``server:/path``, the label ``export``.
        reads: READ operations a second.
        read_rtt_s: their mean time at the server and on the network (s).
        writes: WRITE operations a second.
        write_rtt_s: their mean time at the server and on the network (s).
        queue_s: mean time in the client's own queue (s).
        kb: mean size of an operation (KiB).
        timeouts: major timeouts a second.
        resent: share of requests sent again, 0 to 1.
    """
    where = {"export": export, "mountaddr": "10.20.0.9", "protocol": "tcp"}
    every = record.wide(0.0)
    queue = record.wide(queue_s)
    for name, rate, rtt in (("READ", reads, read_rtt_s), ("WRITE", writes, write_rtt_s),
                            ("GETATTR", 40.0, np.minimum(read_rtt_s, 0.05))):  # fmt: skip
        ops, wait = record.wide(rate), record.wide(rtt)
        every += ops
        labels = {**where, "operation": name}
        figures = {
            "requests": ops, "transmissions": ops * (1.0 + record.wide(resent)),
            "queue_time_seconds": ops * queue, "response_time_seconds": ops * wait,
            "request_time_seconds": ops * (queue + wait + 0.00002),
            "major_timeouts": record.wide(timeouts) if name == "READ" else record.wide(0.0),
        }  # fmt: skip
        for figure, per_s in figures.items():
            counted = figure == "major_timeouts"
            record.count(f"node_mountstats_nfs_operations_{figure}_total", per_s, labels,
                         whole=counted, start=0.0 if counted else None)  # fmt: skip
    size = kb * 1024.0
    for name, rate in (("read", reads), ("write", writes)):
        record.count(f"node_mountstats_nfs_total_{name}_bytes_total", record.wide(rate) * size,
                     where, whole=False)  # fmt: skip
    record.count("node_nfs_rpcs_total", every, whole=False)
    record.count("node_nfs_rpc_retransmissions_total", every * resent)
