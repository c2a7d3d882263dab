"""Metrics of node_exporter: what a scrape shows of the host under GPUs.

Names: prometheus/node_exporter 1.12 collectors meminfo, filesystem, infiniband, systemd, loadavg,
pressure, nfs. Counters run since boot: of one scrape they are only mentioned; of two, rates are
taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.node_devices import disks, nfs, ports, services
from engine.readers.node_host import Host, finding
from engine.readers.series import Collected, tidy
from engine.signals.labels import host_of_instance
from engine.units import number

# Share of memory below which it is nearly gone.
_MEMORY_LOW = 0.03
_SWAPPED = 0.2
# Runnable and blocked tasks per CPU from which the host is overloaded.
_LOAD = 2.0
_FEWEST_CPUS = 4
# Share of time in which all tasks stand still for memory or disk (pressure stall information).
_STALLED = 0.1


def node_series(collected: Collected) -> Iterator[Finding]:
    """Yield what node_exporter's metrics show, host by host."""
    hosts: dict[str, Host] = {}
    for series in collected.series.values():
        if series.name.startswith("node_") and series.last is not None:
            key = series.place.host or host_of_instance(series.labels.get("instance")) or ""
            host = hosts.setdefault(key, Host(key))
            host.series.setdefault(series.name, []).append(series)
    for host in hosts.values():
        names = host.series.get("node_uname_info")
        if not host.name and names:
            host.name = tidy(names[0].labels.get("nodename", ""))
        yield from _memory(host)
        yield from _stalls(host)
        yield from disks(host)
        yield from ports(host)
        yield from _load(host)
        yield from services(host)
        yield from nfs(host)


def _memory(host: Host) -> Iterator[Finding]:
    total, free = host.one("node_memory_MemTotal_bytes"), host.one("node_memory_MemAvailable_bytes")
    swap, left = host.one("node_memory_SwapTotal_bytes"), host.one("node_memory_SwapFree_bytes")
    used = 1 - left / swap if swap and left is not None else 0.0
    if total and free is not None:
        share = free / total
        if share < _MEMORY_LOW or (share < 2 * _MEMORY_LOW and used > _SWAPPED):
            swapped = f", and {number(round(100 * used))} % of swap is used" if used else ""
            yield finding(
                host,
                "node_memory",
                Severity.HIGH,
                f"Only {number(round(free / 2**30, 1))} of {number(round(total / 2**30))} GiB "
                f"({100 * share:.2g} %) of host memory are available on {host.called}{swapped}: "
                "data loading and pinned copies stall, and the OOM killer is near.",
                "ps aux --sort=-rss | head; look for data-loader workers, page cache limits of the "
                "container, leaks; dmesg | grep -i oom.",
                host.line("node_memory_MemAvailable_bytes"),
                {"available_percent": round(100 * share, 2), "swap_percent": round(100 * used, 1)},
                "host_memory_pressure",
            )
    kills = host.one("node_vmstat_oom_kill")
    if kills:
        grown = host.series["node_vmstat_oom_kill"][0].increase
        yield finding(
            host,
            "node_oom_kill",
            Severity.MEDIUM if grown else Severity.INFO,
            f"The kernel killed {number(kills)} process{'' if kills == 1 else 'es'} for lack of "
            f"memory on {host.called} since it booted"
            + (
                f", {number(grown)} of them between the scrapes."
                if grown
                else "; when, one scrape cannot say."
            ),
            "dmesg | grep -i 'killed process' shows which and when.",
            host.line("node_vmstat_oom_kill"),
            {"oom_kills": int(kills)},
            "host_memory_pressure" if grown else None,
        )


def _stalls(host: Host) -> Iterator[Finding]:
    """Pressure stall information: rates need two scrapes with times."""
    for what, cause in (("memory", "host_memory_pressure"), ("io", "storage_slow")):
        name = f"node_pressure_{what}_stalled_seconds_total"
        share = _rate(host, name)
        if share is None or share < _STALLED:
            continue
        yield finding(
            host,
            f"node_pressure_{what}",
            Severity.MEDIUM,
            f"For {100 * share:.3g} % of the time all tasks of {host.called} stood still for "
            f"{'memory' if what == 'memory' else 'disk or network storage'} (PSI, full).",
            "cat /proc/pressure/" + what + "; find the tasks in state D: ps -eo state,pid,comm "
            "| grep ^D.",
            host.line(name),
            {"stalled_percent": round(100 * share, 2)},
            cause,
        )


def _rate(host: Host, name: str) -> float | None:
    found = host.series.get(name)
    if not found or len(found) != 1:
        return None
    one = found[0]
    if one.start is None or one.end is None or one.end <= one.start:
        return None
    return one.increase / (one.end - one.start)


def _load(host: Host) -> Iterator[Finding]:
    load = host.one("node_load1")
    cpus = {s.labels.get("cpu") for s in host.series.get("node_cpu_seconds_total", ())}
    # An excerpt may hold some CPUs only.
    whole = len(cpus) >= _FEWEST_CPUS and cpus == set(map(str, range(len(cpus))))
    if load is None or not whole or load < _LOAD * len(cpus):
        return
    blocked = host.one("node_procs_blocked") or 0.0
    disk = blocked > load / 2
    yield finding(
        host,
        "node_load",
        Severity.LOW,
        f"{number(round(load))} tasks run or wait on {host.called} for {len(cpus)} CPUs"
        + (f", {number(blocked)} of them blocked on storage." if blocked else ".")
        + (" That is storage, not CPU." if disk else " The GPUs' host threads have to share."),
        "top, and pidstat -u 5: who uses the CPUs; fewer data-loader workers than cores per GPU.",
        host.line("node_load1"),
        {"load1": load, "cpus": len(cpus), "blocked": int(blocked)},
        "storage_slow" if disk else "cpu_starved",
    )
