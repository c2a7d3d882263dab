"""A server as node_exporter shows it: CPU, memory, pressure and disks (names of 1.9 and later)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.samples import Floats
from engine.simulate.scenarios import shapes
from engine.simulate.scenarios.recorder import Recorder

Level = Floats | float

CPUS = 24
MEMORY = 1.08e12
# Bytes of a page.
PAGE = 4096.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What goes on in a server; shares are 0 to 1 of all CPUs, of memory or of time.

    ``load`` is the load average over the number of CPUs; ``swap`` pages a second in and out,
    ``faults`` major page faults a second; ``cpu_some``, ``memory_some``, ``memory_full``,
    ``io_some`` and ``io_full`` are pressure (PSI); ``blocked`` tasks wait for I/O.
    """

    user: Level = 0.12
    system: Level = 0.03
    iowait: Level = 0.002
    steal: Level = 0.0
    softirq: Level = 0.004
    load: Level = 0.2
    available: Level = 0.62
    cached: Level = 0.25
    swap_used: Level = 0.0
    swap: Level = 0.0
    faults: Level = 0.3
    oom: Level = 0.0
    cpu_some: Level = 0.004
    memory_some: Level = 0.0
    memory_full: Level = 0.0
    io_some: Level = 0.004
    io_full: Level = 0.002
    blocked: Level = 0.0


def server(rng: np.random.Generator, host: str, *, step_s: float | None = None) -> Recorder:
    """Return an empty scrape of a server's node_exporter."""
    labels = {"job": "node-exporter", "instance": f"{host}:9100"}
    step = step_s if step_s is not None else float(rng.choice([15.0, 15.0, 30.0, 60.0]))
    record = Recorder(rng, shapes.scrapes(rng, step_s=step), labels)
    about = {"nodename": host, "sysname": "Linux", "release": "6.8.0-60-generic"}
    record.gauge("node_uname_info", 1.0, about)
    record.gauge("node_boot_time_seconds", float(np.round(record.ts[0] - 41 * 86400.0)))
    return record


def tell(record: Recorder, usage: Usage) -> Recorder:
    """Add what node_exporter shows of CPU, memory and pressure by default."""
    _cpu(record, usage)
    _memory(record, usage)
    return record


def turn(ts: Floats, moment: float, **figures: float) -> Usage:
    """Return a usual server's usage in which some figures change at a moment (Unix s)."""
    usual = Usage()
    levels: dict[str, Level] = {
        name: shapes.since(ts, moment, float(np.mean(getattr(usual, name))), after)
        for name, after in figures.items()
    }
    return Usage(**levels)


def _cpu(record: Recorder, usage: Usage) -> None:
    shares = {name: record.wide(getattr(usage, name))
              for name in ("user", "system", "iowait", "steal", "softirq")}  # fmt: skip
    shares["idle"] = np.clip(1.0 - np.sum(list(shares.values()), axis=0), 0.0, 1.0)
    for cpu in range(CPUS):
        for mode, share in shares.items():
            base = np.clip(share * (1.0 + record.rng.normal(0.0, 0.03)), 0.0, 1.0)
            record.count("node_cpu_seconds_total", base, {"cpu": str(cpu), "mode": mode},
                         whole=False)  # fmt: skip
    load = record.wide(usage.load) * CPUS
    record.shaky("node_load1", load, spread=0.04)
    record.shaky("node_load5", load, spread=0.02)
    running = np.maximum(load, 1.0)
    record.shaky("node_procs_running", running, whole=True)
    record.shaky("node_procs_blocked", usage.blocked, whole=True)
    record.count("node_context_switches_total", 9_000.0 * CPUS * record.wide(usage.user))
    for name, stalled in (
        ("node_pressure_cpu_waiting_seconds_total", usage.cpu_some),
        ("node_pressure_memory_waiting_seconds_total", usage.memory_some),
        ("node_pressure_memory_stalled_seconds_total", usage.memory_full),
        ("node_pressure_io_waiting_seconds_total", usage.io_some),
        ("node_pressure_io_stalled_seconds_total", usage.io_full),
    ):
        record.count(name, stalled, whole=False)


def _memory(record: Recorder, usage: Usage) -> None:
    available = np.clip(record.wide(usage.available), 0.0, 1.0) * MEMORY
    cached = np.minimum(record.wide(usage.cached) * MEMORY, available)
    record.gauge("node_memory_MemTotal_bytes", MEMORY)
    noise = 1.0 + 0.004 * record.rng.standard_normal(record.ts.size)
    record.gauge("node_memory_MemAvailable_bytes", np.round(available * noise / PAGE) * PAGE)
    record.gauge("node_memory_MemFree_bytes", np.round((available - 0.97 * cached) / PAGE) * PAGE)
    record.gauge("node_memory_Cached_bytes", np.round(cached / PAGE) * PAGE)
    record.gauge("node_memory_Buffers_bytes", 2.1e9)
    total = 6.4e10
    record.gauge("node_memory_SwapTotal_bytes", total)
    free = total * (1.0 - record.wide(usage.swap_used))
    record.gauge("node_memory_SwapFree_bytes", np.round(free / PAGE) * PAGE)
    record.count("node_vmstat_pswpin", usage.swap)
    record.count("node_vmstat_pswpout", record.wide(usage.swap) * 1.2)
    record.count("node_vmstat_pgmajfault", usage.faults)
    record.count("node_vmstat_oom_kill", usage.oom, start=0.0)


def disk(
    record: Recorder, device: str, *, reads: Level = 40.0, read_s: Level = 0.0002,
    writes: Level = 60.0, write_s: Level = 0.0003, busy: Level = 0.02, kb: float = 128.0,
) -> None:  # fmt: skip
    """Add a block device: operations a second, mean time of each (s), share of time busy."""
    labels = {"device": device}
    read, written = record.wide(reads), record.wide(writes)
    record.count("node_disk_reads_completed_total", read, labels)
    record.count("node_disk_writes_completed_total", written, labels)
    record.count("node_disk_read_bytes_total", read * kb * 1024, labels, whole=False)
    record.count("node_disk_written_bytes_total", written * kb * 1024, labels, whole=False)
    record.count("node_disk_read_time_seconds_total", read * read_s, labels, whole=False)
    record.count("node_disk_write_time_seconds_total", written * write_s, labels, whole=False)
    record.count("node_disk_io_time_seconds_total", busy, labels, whole=False)
    queue = read * read_s + written * write_s
    record.count("node_disk_io_time_weighted_seconds_total", queue, labels, whole=False)
    record.shaky("node_disk_io_now", queue, labels, whole=True)
