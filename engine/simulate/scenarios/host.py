"""Servers that hold their GPUs back: CPU, memory, NUMA, settings."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.machine import CPUS, disk, server, tell, turn
from engine.simulate.scenarios.machine_io import Level, filesystem, interface
from engine.simulate.scenarios.nvidia_boards import A100_80, H100, PARKED, TRAIN, mix
from engine.simulate.scenarios.nvidia_nodes import node
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import show

HOST = "node-12"


def began(rng: np.random.Generator) -> float:
    """Return when trouble began (Unix s): before the readings do, or 15 to 20 minutes ago."""
    return AT - float(rng.choice([7200.0, rng.uniform(900.0, 1200.0)]))


def common(
    record: Recorder, *, rate: Level = 4e6, speed: float = 1.25e10, retrans: Level = 0.0002,
) -> Recorder:  # fmt: skip
    """Add what every server has besides: a system disk, a root file system, an interface."""
    disk(record, "nvme0n1")
    filesystem(record, "/", "/dev/nvme0n1p2", "ext4", size=9.4e11, free=0.58)
    interface(record, rate=rate, speed=speed, retrans=retrans)
    if record.rng.random() < 0.3:
        # A second interface that was never cabled.
        record.gauge("node_network_up", 0.0, {"device": "eth1"})
        record.count("node_network_receive_bytes_total", 0.0, {"device": "eth1"})
        record.count("node_network_transmit_bytes_total", 0.0, {"device": "eth1"})
    if record.rng.random() < 0.3:
        filesystem(record, "/var/lib/containerd", "/dev/nvme0n1p3", "xfs", size=5e11, free=0.24)
    return record


def fed(rng: np.random.Generator, share: float, host: str = HOST) -> list[RawSeries]:
    """Return the GPUs of a host that have work for a share (0 to 1) of the time only."""
    board = (H100, A100_80)[int(rng.integers(2))]
    built = node(rng, host, board)
    built.load(rng, mix(PARKED, TRAIN, 1.0 - (1.0 - share) * float(rng.uniform(0.92, 1.0))))
    return show(rng, [built])


def _saturated(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Everything runs at once: user and system time fill all CPUs, tasks queue for them."""
    record = server(rng, HOST)
    usage = turn(
        record.ts, began(rng), user=severity.pick(0.76, 0.74, 0.68), system=severity.pick(
            0.19, 0.23, 0.3), softirq=0.015, load=severity.pick(1.7, 2.8, 6.0),
        cpu_some=severity.pick(0.42, 0.66, 0.93),
    )  # fmt: skip
    common(tell(record, usage))
    return record.series + fed(rng, severity.pick(0.66, 0.48, 0.25))


def _stolen(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """A virtual machine whose host gives its CPUs to others."""
    record = server(rng, HOST)
    steal = severity.pick(0.22, 0.38, 0.6)
    usage = turn(record.ts, began(rng), steal=steal, user=0.7 * (1.0 - steal), system=0.05,
                 load=severity.pick(1.4, 2.2, 4.0),
                 cpu_some=severity.pick(0.35, 0.6, 0.9))  # fmt: skip
    common(tell(record, usage))
    return record.series + fed(rng, severity.pick(0.7, 0.5, 0.3))


def _swapping(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    record = server(rng, HOST)
    usage = turn(
        record.ts, began(rng), available=severity.pick(0.022, 0.012, 0.006), cached=0.004,
        swap_used=severity.pick(0.45, 0.8, 0.99), swap=severity.pick(900.0, 6_000.0, 40_000.0),
        faults=severity.pick(500.0, 3_000.0, 15_000.0), system=0.12, iowait=0.06,
        memory_some=severity.pick(0.14, 0.35, 0.8), memory_full=severity.pick(0.07, 0.22, 0.6),
        blocked=severity.pick(3.0, 8.0, 20.0), load=0.6,
    )  # fmt: skip
    common(tell(record, usage))
    return record.series + fed(rng, severity.pick(0.7, 0.5, 0.25))


def _killed(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """No swap: memory runs out, the kernel reclaims without end and kills; Kubernetes says so."""
    record = server(rng, HOST)
    usage = turn(
        record.ts, began(rng), available=severity.pick(0.014, 0.008, 0.004), cached=0.003,
        faults=severity.pick(2_500.0, 9_000.0, 30_000.0), system=0.15, memory_some=severity.pick(
            0.2, 0.4, 0.85), memory_full=severity.pick(0.1, 0.25, 0.6), load=0.5,
        oom=severity.pick(0.004, 0.01, 0.04),
    )  # fmt: skip
    common(tell(record, usage))
    if rng.random() < 0.5:
        state = Recorder(rng, record.ts, {"job": "kube-state-metrics", "node": HOST})
        for status in ("true", "false"):
            labels = {"condition": "MemoryPressure", "status": status}
            state.gauge("kube_node_status_condition", float(status == "true"), labels)
        record.series += state.series
    return record.series + fed(rng, severity.pick(0.72, 0.5, 0.3))


def _remote(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Memory of the job's processes lies on the other socket (collector ``meminfo_numa``)."""
    record = server(rng, HOST)
    common(tell(record, turn(record.ts, began(rng), user=0.2, load=0.3)))
    away = severity.pick(0.55, 0.75, 0.95)
    for number in range(2):
        labels = {"node": str(number)}
        total = 60_000.0
        # Allocations meant for this node that went elsewhere, and the other way round.
        record.count("node_memory_numa_numa_hit_total", total * (1.0 - away), labels)
        record.count("node_memory_numa_numa_miss_total", total * away, labels)
        record.count("node_memory_numa_numa_foreign_total", total * away, labels)
        record.count("node_memory_numa_local_node_total", total * (1.0 - away), labels)
        record.count("node_memory_numa_other_node_total", total * away, labels)
    return record.series + fed(rng, severity.pick(0.78, 0.66, 0.5))


def _governor(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """The powersave governor holds busy CPUs at a fraction of their clock."""
    record = server(rng, HOST)
    common(tell(record, turn(record.ts, began(rng), user=0.42, load=0.55)))
    share = severity.pick(0.55, 0.4, 0.25)
    for cpu in range(CPUS):
        labels = {"cpu": str(cpu)}
        record.shaky("node_cpu_scaling_frequency_hertz", 3.7e9 * share, labels, spread=0.02)
        record.gauge("node_cpu_scaling_frequency_max_hertz", 3.7e9, labels)
        record.gauge("node_cpu_scaling_frequency_min_hertz", 8e8, labels)
        for governor in ("performance", "powersave"):
            record.gauge("node_cpu_scaling_governor", float(governor == "powersave"),
                         {**labels, "governor": governor})  # fmt: skip
    return record.series + fed(rng, severity.pick(0.8, 0.66, 0.5))


def _balancing(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """Automatic NUMA balancing unmaps pages to see who touches them; vmstat fields switched on."""
    record = server(rng, HOST)
    common(tell(record, turn(record.ts, began(rng), user=0.2, system=0.1, load=0.35)))
    hints = severity.pick(20_000.0, 90_000.0, 400_000.0)
    record.count("node_vmstat_numa_pte_updates", hints * 1.6)
    record.count("node_vmstat_numa_hint_faults", hints)
    record.count("node_vmstat_numa_hint_faults_local", hints * 0.55)
    record.count("node_vmstat_numa_pages_migrated", hints * 0.3)
    return record.series + fed(rng, severity.pick(0.84, 0.74, 0.6))


def _host(ident: str, title: str, causes: tuple[str, ...], make: Make) -> Scenario:
    return Scenario(ident, title, "host", HOST, causes, make)


SCENARIOS = (
    _host("host-cpu-saturated", "All CPUs of a server busy, GPUs wait", ("cpu_starved",),
          _saturated),
    _host("host-cpu-stolen", "A virtual machine's CPUs are given to others", ("cpu_starved",),
          _stolen),
    _host("host-swapping", "A server swaps", ("host_memory_pressure",), _swapping),
    _host("host-out-of-memory", "A server without swap kills for lack of memory",
          ("host_memory_pressure",), _killed),
    _host("host-numa-remote", "Processes use the other socket's memory", ("numa_misplaced",),
          _remote),
    _host("host-governor-powersave", "CPUs held slow by the powersave governor",
          ("host_misconfigured",), _governor),
    _host("host-numa-balancing", "Automatic NUMA balancing at work",
          ("host_misconfigured", "numa_misplaced"), _balancing),
)  # fmt: skip
