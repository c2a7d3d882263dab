"""What node_exporter shows of a host's disks, mounts, ports and services."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.node_host import Host, finding
from engine.readers.series import Series, tidy
from engine.units import number

# Share of a file system below which it is nearly full, unless much is left of a large one, and
# what is only worth a note.
_DISK_LOW, _DISK_NOTE = 0.03, 0.1
_PLENTY = 2.0**40
_RETRANSMITTED = 0.01
_NO_DISK = frozenset(
    (
        *("tmpfs", "devtmpfs", "ramfs", "overlay", "squashfs", "iso9660", "erofs"),
        *("nsfs", "proc", "sysfs", "cgroup", "cgroup2"),
    )
)
_SMALL = 2.0**30  # boot partitions and the like
_ACTIVE = 4  # port state as InfiniBand numbers it
_SHARED = frozenset(("lustre", "gpfs", "ceph", "beegfs", "wekafs"))
_UNITS = {
    "nvidia-fabricmanager.service": ("nvswitch_fault", "The fabric manager"),
    "nvidia-persistenced.service": ("host_misconfigured", "The persistence daemon"),
    "nvidia-dcgm.service": ("exporter_down", "The DCGM host engine"),
    "nvidia-imex.service": (None, "The IMEX daemon"),
}


def disks(host: Host) -> Iterator[Finding]:
    """Yield file systems that are nearly full, and network mounts that do not answer."""
    seen: set[tuple[str, str]] = set()
    for name, totals, what in (
        ("node_filesystem_avail_bytes", "node_filesystem_size_bytes", "space"),
        ("node_filesystem_files_free", "node_filesystem_files", "inodes"),
    ):
        sizes = {s.labels.get("mountpoint"): s.last or 0.0 for s in host.series.get(totals, ())}
        for series in host.series.get(name, ()):
            total = sizes.get(series.labels.get("mountpoint"), 0.0)
            key = (series.labels.get("device", ""), what)
            if series.labels.get("fstype") in _NO_DISK or key in seen:
                continue
            left = series.last or 0.0
            if total < (_SMALL if what == "space" else 1) or left >= _DISK_NOTE * total:
                continue
            seen.add(key)
            full = left < _DISK_LOW * total and (what == "inodes" or left < _PLENTY)
            yield _full(host, series, what, left / total, full=full)
    yield from _silent(host)


def _full(host: Host, series: Series, what: str, share: float, *, full: bool) -> Finding:
    mount = tidy(series.labels.get("mountpoint", ""))
    return finding(
        host,
        "node_disk",
        Severity.MEDIUM if full else Severity.INFO,
        f"{mount} on {host.called} has {100 * share:.2g} % of its {what} left"
        + (": checkpoints and logs will fail to be written." if full else ": getting short."),
        f"{'df -h' if what == 'space' else 'df -i'} {mount}; delete old checkpoints and caches.",
        series.line,
        {"mount": mount, f"free_{what}_percent": round(100 * share, 2)},
        "storage_full" if full else None,
    )


def _silent(host: Host) -> Iterator[Finding]:
    for series in host.series.get("node_filesystem_device_error", ()):
        kind = series.labels.get("fstype", "")
        if series.last == 1 and (kind.startswith("nfs") or kind in _SHARED):
            mount = tidy(series.labels.get("mountpoint", ""))
            yield finding(
                host,
                "node_mount_silent",
                Severity.MEDIUM,
                f"{mount} ({tidy(kind)}) on {host.called} does not answer statfs: the mount hangs "
                "or its server is gone.",
                f"timeout 5 stat {mount}; look at the server and in dmesg for 'not responding'.",
                series.line,
                {"mount": mount, "fstype": tidy(kind)},
                "storage_slow",
            )


def ports(host: Host) -> Iterator[Finding]:
    """Yield ports that are down or slower than the others."""
    states = host.series.get("node_infiniband_state_id", ())
    active = [s for s in states if s.last == _ACTIVE]
    down = [s for s in states if s.last != _ACTIVE]
    if active and down and len(down) < len(states) / 2:
        ports = [_port(s) for s in down]
        yield finding(
            host,
            "node_ib_down",
            Severity.MEDIUM,
            f"InfiniBand or RoCE port {', '.join(ports[:8])} of {host.called} is not ACTIVE while "
            f"{len(active)} others are: jobs lose that rail, or fall back to a slower path.",
            "ibstat shows state and physical state; check cable, transceiver and switch port. "
            "A port that is not cabled on purpose is no fault.",
            down[0].line,
            {"ports": ports[:64], "active_ports": len(active)},
            "ib_link_down",
        )
    rates = host.series.get("node_infiniband_rate_bytes_per_second", ())
    up = {_port(s) for s in active}
    measured = [s for s in rates if s.last and (not up or _port(s) in up)]
    most = max((s.last or 0.0 for s in measured), default=0.0)
    slow = [s for s in measured if (s.last or 0.0) < most]
    if most and slow and len(slow) < len(measured) / 2:
        yield finding(
            host,
            "node_ib_slow",
            Severity.LOW,
            f"Port {', '.join(_port(s) for s in slow[:8])} of {host.called} runs at "
            f"{number(round(8 * (slow[0].last or 0.0) / 1e9))} Gb/s, the others at "
            f"{number(round(8 * most / 1e9))} Gb/s.",
            "ibstat and mlxlink -d DEVICE show width and speed: a bad cable trains down. Ports for "
            "storage or management may be slower on purpose.",
            slow[0].line,
            {"ports": [_port(s) for s in slow][:64]},
            "ib_link_degraded",
        )


def _port(series: Series) -> str:
    device, port = series.labels.get("device", "?"), series.labels.get("port", "")
    return tidy(f"{device}:{port}" if port else device)


def services(host: Host) -> Iterator[Finding]:
    """Yield services of GPU nodes that have failed."""
    for series in host.series.get("node_systemd_unit_state", ()):
        unit = series.labels.get("name", "")
        if series.last != 1 or series.labels.get("state") != "failed" or unit not in _UNITS:
            continue
        cause, title = _UNITS[unit]
        yield finding(
            host,
            "node_unit_failed",
            Severity.HIGH if cause == "nvswitch_fault" else Severity.MEDIUM,
            f"{title} of {host.called} has failed ({unit}).",
            f"systemctl status {unit}; journalctl -u {unit}; its version has to be that of the "
            "driver.",
            series.line,
            {"unit": unit},
            cause,
        )


def nfs(host: Host) -> Iterator[Finding]:
    """Yield NFS calls that had to be sent again."""
    again = host.series.get("node_nfs_rpc_retransmissions_total")
    calls = host.series.get("node_nfs_rpcs_total")
    if not again or not calls:
        return
    repeated = again[0].count > 1 and calls[0].increase > 0
    part = again[0].increase if repeated else again[0].last or 0.0
    whole = calls[0].increase if repeated else calls[0].last or 0.0
    if not whole or part < _RETRANSMITTED * whole:
        return
    yield finding(
        host,
        "node_nfs_retransmissions",
        Severity.MEDIUM if repeated else Severity.INFO,
        f"{100 * part / whole:.2g} % of the NFS calls of {host.called} were sent again "
        + ("between the scrapes" if repeated else "since boot (when, one scrape cannot say)")
        + ": the server or the network to it is too slow.",
        "nfsiostat 5 and nfsstat -rc twice; look at the server, the MTU and drops on the way.",
        again[0].line,
        {"retransmitted_percent": round(100 * part / whole, 3)},
        "storage_slow" if repeated else None,
    )
