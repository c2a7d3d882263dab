"""File systems: slow ones, full ones, and the jobs that wait for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.host import HOST, began, common
from engine.simulate.scenarios.machine import Usage, disk, server, tell, turn
from engine.simulate.scenarios.machine_io import filesystem, nfs
from engine.simulate.scenarios.nvidia_boards import A100_80, H100, PARKED, TRAIN, WAIT, mix
from engine.simulate.scenarios.nvidia_nodes import fleet
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import show
from engine.simulate.scenarios.shapes import scrapes, since

DATA, SCRATCH, CHECKPOINTS, LUSTRE = "/mnt/data", "/scratch", "/mnt/ckpt", "/mnt/lustre"
EXPORT = "10.20.0.9:/export/data"
_TB = 1e12


def _waits(
    rng: np.random.Generator, severity: Severity, host: str = HOST, *, step_s: float | None = None,
) -> tuple[Recorder, float]:  # fmt: skip
    """Return a server whose tasks wait for I/O from a moment on, and that moment (Unix s)."""
    record = server(rng, host, step_s=step_s)
    moment = began(rng)
    usage = turn(
        record.ts, moment, user=0.08, iowait=severity.pick(0.1, 0.2, 0.4),
        io_some=severity.pick(0.3, 0.5, 0.9), io_full=severity.pick(0.2, 0.4, 0.8),
        blocked=severity.pick(4.0, 9.0, 22.0), load=severity.pick(0.35, 0.55, 1.0), available=0.5,
    )  # fmt: skip
    return common(tell(record, usage)), moment


def _nfs_slow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """The server answers READ in tens to hundreds of milliseconds; throughput falls with it."""
    record, moment = _waits(rng, severity)
    _slow_mount(record, moment, severity)
    return record.series


def _slow_mount(record: Recorder, moment: float, severity: Severity) -> None:
    rtt = since(record.ts, moment, 0.0012, severity.pick(0.035, 0.11, 0.45))
    # A client with a fixed number of requests in flight: rate is that number over the time of one.
    reads = np.minimum(900.0, 8.0 / rtt)
    nfs(record, EXPORT, reads=reads, read_rtt_s=rtt, write_rtt_s=rtt * 1.3,
        queue_s=since(record.ts, moment, 5e-5, severity.pick(0.004, 0.03, 0.2)))  # fmt: skip
    filesystem(record, DATA, EXPORT, "nfs4", size=200 * _TB, free=0.41)


def _nfs_timeouts(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Requests are lost or never answered: sent again, and some run into the major time-out."""
    record, moment = _waits(rng, severity)
    resent = since(record.ts, moment, 0.0, severity.pick(0.03, 0.08, 0.25))
    rtt = since(record.ts, moment, 0.0014, severity.pick(0.06, 0.2, 1.5))
    timeouts = since(record.ts, moment, 0.0, severity.pick(0.02, 0.05, 0.3))
    nfs(record, EXPORT, reads=np.minimum(700.0, 8.0 / rtt), read_rtt_s=rtt, write_rtt_s=rtt,
        resent=resent, timeouts=timeouts)  # fmt: skip
    filesystem(record, DATA, EXPORT, "nfs4", size=200 * _TB, free=0.41)
    return record.series


def _nvme_slow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A local NVMe drive needs tens of milliseconds an operation and is always busy."""
    record, moment = _waits(rng, severity)
    slow = since(record.ts, moment, 0.00018, severity.pick(0.014, 0.04, 0.18))
    reads = np.minimum(6_000.0, 16.0 / slow)
    busy = since(record.ts, moment, 0.22, severity.pick(0.97, 0.99, 1.0))
    disk(record, "nvme1n1", reads=reads, read_s=slow, writes=reads * 0.1, write_s=slow * 1.2,
         busy=busy)  # fmt: skip
    filesystem(record, SCRATCH, "/dev/nvme1n1", "xfs", size=7.6 * _TB, free=0.55)
    return record.series


def _filling(figures: tuple[float, float, float], *, inodes: bool = False) -> Make:
    """Return the maker of a file system of which a share (0 to 1) is left, still shrinking."""

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        record = common(tell(server(rng, HOST), Usage()))
        left = severity.pick(*figures)
        # An hour ago there was half as much again.
        share = left * (1.0 + 0.5 * (AT - record.ts) / 3600.0)
        filesystem(record, CHECKPOINTS, "10.20.0.11:/ckpt", "nfs4", size=80 * _TB,
                   free=0.36 if inodes else share, files=6e8,
                   files_free=share if inodes else 0.72)  # fmt: skip
        filesystem(record, DATA, EXPORT, "nfs4", size=200 * _TB, free=0.41)
        return record.series

    return make


def _servers(rng: np.random.Generator, ts: Floats) -> Recorder:
    return Recorder(rng, ts, {"job": "lustrefs-exporter", "instance": "oss-1:32221"})


def _capacity(record: Recorder, free: Callable[[int], float], *, osts: int = 8) -> None:
    """Add capacity and inodes of OSTs as whamcloud's lustrefs-exporter shows them."""
    size = 1.1e11
    for number in range(osts):
        labels = {"component": "ost", "target": f"lustre-OST{number:04x}"}
        left = round(size * free(number))
        record.gauge("lustre_capacity_kilobytes", size, labels)
        record.gauge("lustre_free_kilobytes", round(left * 1.02), labels)
        record.gauge("lustre_available_kilobytes", left, labels)
        record.gauge("lustre_inodes_maximum", 1.2e9, labels)
        record.gauge("lustre_inodes_free", 1.0e9, labels)
    record.gauge("lustre_health_healthy", 1.0)


def _one_ost(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Df shows a third free, one OST has next to nothing."""
    record = common(tell(server(rng, HOST), Usage()))
    filesystem(record, LUSTRE, "10.20.0.5@o2ib:/lustre", "lustre", size=880 * _TB, free=0.34)
    servers = _servers(rng, record.ts)
    last = severity.pick(0.025, 0.01, 0.001)
    _capacity(servers, lambda k: last if k == 5 else float(rng.uniform(0.34, 0.44)))
    return record.series + servers.series


def _lustre_slow(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Reads fall to a fraction of what the OSTs gave before, while clients' tasks are blocked."""
    record, moment = _waits(rng, severity, step_s=15.0)
    filesystem(record, LUSTRE, "10.20.0.5@o2ib:/lustre", "lustre", size=880 * _TB, free=0.5)
    servers = _servers(rng, scrapes(rng, step_s=30.0))
    fallen = AT - float(rng.uniform(420.0, 780.0)) if moment < AT - 1800.0 else moment
    _capacity(servers, lambda k: 0.5 + 0.01 * k)
    for number in range(8):
        labels = {"component": "ost", "target": f"lustre-OST{number:04x}"}
        share = severity.pick(0.25, 0.12, 0.03)
        for operation, rate in (("read", 1.4e9), ("write", 2.0e8)):
            now = since(servers.ts, fallen, rate, rate * share)
            servers.count(f"lustre_{operation}_bytes_total", now,
                          {**labels, "operation": operation}, whole=False)  # fmt: skip
            servers.count(f"lustre_{operation}_samples_total", now / 1e6,
                          {**labels, "operation": operation}, whole=False)  # fmt: skip
    return record.series + servers.series


def _job(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """All ranks read through one slow NFS server: GPUs starve on every node."""
    hosts = ("node-31", "node-32")
    share = severity.pick(0.62, 0.42, 0.2)
    found = show(rng, fleet(rng, hosts, (H100, A100_80), mix(PARKED, TRAIN, share), job="71355"))
    for host in hosts:
        record, moment = _waits(rng, severity, host, step_s=15.0)
        _slow_mount(record, moment, severity)
        found += record.series
    return found


def _one_reader(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """One node of a job reads from a slow local drive; the other's GPUs wait in collectives."""
    hosts = ("node-41", "node-42")
    share = severity.pick(0.62, 0.42, 0.2)
    nodes = fleet(rng, hosts, (H100,), mix(WAIT, TRAIN, share), job="71940")
    nodes[0].load(rng, mix(PARKED, TRAIN, share))
    found = show(rng, nodes)
    record, moment = _waits(rng, severity, hosts[0], step_s=15.0)
    slow = since(record.ts, moment, 0.0002, severity.pick(0.016, 0.05, 0.2))
    disk(record, "nvme1n1", reads=np.minimum(6_000.0, 16.0 / slow), read_s=slow,
         busy=since(record.ts, moment, 0.25, 0.99))  # fmt: skip
    filesystem(record, SCRATCH, "/dev/nvme1n1", "xfs", size=7.6 * _TB, free=0.55)
    fine = common(tell(server(rng, hosts[1], step_s=15.0), Usage()))
    disk(fine, "nvme1n1", reads=5_500.0, busy=0.24)
    filesystem(fine, SCRATCH, "/dev/nvme1n1", "xfs", size=7.6 * _TB, free=0.57)
    return found + record.series + fine.series


def _fs(ident: str, title: str, target: str, causes: tuple[str, ...], make: Make,
        culprit: str | None = None) -> Scenario:  # fmt: skip
    return Scenario(ident, title, "storage", target, causes, make, culprit)


_WAITING = ("storage_slow", "data_loader_stall")

SCENARIOS = (
    _fs("nfs-slow", "An NFS server answers slowly", f"fs{DATA}", ("storage_slow",), _nfs_slow),
    _fs("nfs-timeouts", "NFS requests are sent again and time out", f"fs{DATA}",
        ("storage_slow",), _nfs_timeouts),
    _fs("nvme-slow", "A local drive is always busy and slow", f"fs{SCRATCH}", ("storage_slow",),
        _nvme_slow),
    _fs("filesystem-full", "A file system has next to no space", f"fs{CHECKPOINTS}",
        ("storage_full",), _filling((0.03, 0.012, 0.001))),
    _fs("inodes-exhausted", "A file system has next to no inodes", f"fs{CHECKPOINTS}",
        ("storage_full",), _filling((0.03, 0.012, 0.001), inodes=True)),
    _fs("one-ost-full", "One OST is full, the file system is not", f"fs{LUSTRE}",
        ("storage_full",), _one_ost),
    _fs("lustre-slow", "Lustre gives a fraction of what it gave", f"fs{LUSTRE}",
        ("storage_slow",), _lustre_slow),
    _fs("job-waits-for-nfs", "A job's GPUs starve behind a slow NFS server", "job/71355",
        _WAITING, _job),
    _fs("job-waits-for-one-drive", "One node of a job reads from a slow drive", "job/71940",
        (*_WAITING, "straggler"), _one_reader, "node-41"),
)  # fmt: skip
