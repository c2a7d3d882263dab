"""What node_exporter and cAdvisor show of a server and of a container."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.shapes import counter, noisy, scrapes, series, wobble

CPUS = 16


def cpus(
    rng: np.random.Generator, host: str, ts: Floats, *, user: Floats | float = 0.15,
    system: Floats | float = 0.03, iowait: Floats | float = 0.003,
) -> list[RawSeries]:  # fmt: skip
    """Return node_exporter's CPU time, load and task counts of a host.

    Args:
        rng: where chance comes from.
        host: name of the host.
        ts: times (Unix s).
        user: share of all CPUs' time in user mode (0 to 1), constant or over time.
        system: in the kernel.
        iowait: idle with I/O outstanding.
    """
    where = {"instance": f"{host}:9100", "nodename": host}
    instance = {"instance": where["instance"]}
    idle = np.clip(1.0 - np.asarray(user) - np.asarray(system) - np.asarray(iowait), 0.0, 1.0)
    shares = {"user": user, "system": system, "iowait": iowait, "idle": idle}
    out = [series("node_uname_info", where, ts, 1.0)]
    for cpu in range(CPUS):
        for mode, share in shares.items():
            rate = noisy(rng, share, ts.size, 0.01, hi=1.0)
            seconds = counter(rng, ts, rate, start=float(rng.integers(10**5, 10**6)))
            labels = {**instance, "cpu": str(cpu), "mode": mode}
            out.append(series("node_cpu_seconds_total", labels, ts, seconds.round(2)))
    busy = np.asarray(user) + np.asarray(system)
    waiting = np.asarray(iowait) * CPUS
    load = np.maximum(busy * CPUS + waiting + wobble(rng, ts.size, 0.3), 0.0)
    pressure = counter(rng, ts, np.asarray(iowait) * 0.9, start=2e3)
    out += [
        series("node_load1", instance, ts, load.round(2)),
        series("node_procs_running", instance, ts, np.round(busy * CPUS + 1.0)),
        series("node_procs_blocked", instance, ts, np.round(waiting)),
        series("node_memory_MemTotal_bytes", instance, ts, 2.16e12),
        series("node_memory_MemAvailable_bytes", instance, ts, 1.5e12 + wobble(rng, ts.size, 1e9)),
        series("node_boot_time_seconds", instance, ts, float(np.round(ts[0] - 30 * 86400.0))),
        series("node_pressure_io_waiting_seconds_total", instance, ts, pressure),
        series("node_pressure_io_stalled_seconds_total", instance, ts, pressure * 0.8),
    ]
    return out


def container(
    rng: np.random.Generator, labels: Mapping[str, str], ts: Floats, *, quota_cpus: float,
    used: Floats | float, throttled: Floats | float,
) -> list[RawSeries]:  # fmt: skip
    """Return cAdvisor's CPU figures of a container.

    Args:
        rng: where chance comes from.
        labels: ``namespace``, ``pod``, ``container``, ``node`` …
        ts: times (Unix s).
        quota_cpus: CPU limit (CPUs).
        used: share of the limit in use (0 to 1).
        throttled: share of the 100 ms periods in which the container was stopped (0 to 1).
    """
    held = np.asarray(throttled)
    figures = {
        "container_cpu_cfs_periods_total": counter(rng, ts, 10.0, start=1e5).round(),
        "container_cpu_cfs_throttled_periods_total": counter(rng, ts, 10.0 * held).round(),
        "container_cpu_cfs_throttled_seconds_total": counter(rng, ts, held * quota_cpus * 0.4),
        "container_cpu_usage_seconds_total": counter(
            rng, ts, quota_cpus * np.asarray(used), start=1e4
        ),
        "container_spec_cpu_quota": np.full(ts.shape, quota_cpus * 1e5),
        "container_spec_cpu_period": np.full(ts.shape, 1e5),
    }
    return [series(name, labels, ts, values) for name, values in figures.items()]


def host_times(rng: np.random.Generator, step_s: float = 15.0) -> Floats:
    """Return the times at which a host's own exporter was scraped (Unix s)."""
    return scrapes(rng, step_s=step_s)
