"""Healthy and noisy, second half: services, AMD nodes, networks, storage and hosts at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios import shapes
from engine.simulate.scenarios.amd import HOST as AMD_HOST
from engine.simulate.scenarios.amd import TARGET as AMD_TARGET
from engine.simulate.scenarios.amd_boards import DECODE as AMD_DECODE
from engine.simulate.scenarios.amd_boards import IDLE as AMD_IDLE
from engine.simulate.scenarios.amd_boards import MI300X, MI325X, Gpu, Work
from engine.simulate.scenarios.amd_boards import TRAIN as AMD_TRAIN
from engine.simulate.scenarios.amd_gpu import Exporter
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.host import HOST, common, fed
from engine.simulate.scenarios.machine import Usage, disk, server, tell
from engine.simulate.scenarios.machine_io import HDR, NDR, filesystem, nfs, rdma
from engine.simulate.scenarios.nvidia_boards import DECODE
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import LoadOf, replica, single
from engine.simulate.scenarios.serving import LARGE, SMALL, Load, settle
from engine.simulate.scenarios.serving_vllm import vllm

_70B = "meta-llama/Llama-3.1-70B-Instruct"
_8B = "meta-llama/Llama-3.1-8B-Instruct"


def _steady(load: Load) -> LoadOf:
    return lambda _rng, _severity, _ts: load


def _burst(rng: np.random.Generator, _severity: Severity, ts: Floats) -> Load:
    """Two minutes of more than fits into the batch, ten minutes ago; it drained by itself."""
    start = AT - rng.uniform(560.0, 780.0)
    burst = (ts >= start) & (ts < start + 90.0)
    return Load(users=np.where(burst, 290.0, 60.0), prompt=500.0, output=150.0, hit=0.3)


def _one_abort(record: Recorder, _state: object, _severity: Severity) -> None:
    """One client closed its connection; nobody else did."""
    for one in record.series:
        if one.labels.get("finished_reason") == "abort":
            one.values[:] = np.where(one.ts < AT - 400.0, 3.0, 4.0)


def _warm_start(rng: np.random.Generator, _severity: Severity) -> list[RawSeries]:
    """A server that started 20 minutes ago: counters begin near zero, first requests were slow."""
    record = replica(rng, "llama-8b")
    record.ts = record.ts[record.ts > AT - 1200.0]
    n = record.ts.size
    young = record.ts < AT - 1020.0
    load = Load(users=np.where(young, 2.0, 18.0), slow=np.where(young, 3.0, 1.0), prompt=700.0)
    state = settle(SMALL, load, n)
    vllm(record, state, _8B, version="v1")
    for one in record.series:
        if one.name.endswith(("_total", "_bucket", "_sum", "_count")):
            one.values -= one.values[0]
    record.gauge("process_start_time_seconds", AT - 1290.0)
    return record.series


def _amd(work: Work, *, clock: float = 0.93, bound: float = 0.0, mode: str = "spx") -> Make:
    """Return the maker of a healthy AMD node on which all GPUs do the same."""

    def make(rng: np.random.Generator, _severity: Severity) -> list[RawSeries]:
        exporter = Exporter(rng, AMD_HOST, (MI300X, MI325X)[int(rng.integers(2))], mode=mode)
        for index in range(8):
            own = clock * float(rng.normal(1.0, 0.004))
            gpu = Gpu(index, work, clock=own, violation={"ppt": bound},
                      below={"power": bound * 0.6})  # fmt: skip
            exporter.publish(gpu)
            for part in range(1, 8 if mode == "cpx" else 1):
                exporter.publish(replace(gpu, partition=part))
        return exporter.series

    return make


def _server(extra: Callable[[Recorder], None], usage: Usage | None = None, *,
            rate: float = 4e6, retrans: float = 0.0002) -> Make:  # fmt: skip
    """Return the maker of a healthy server with fed GPUs and something worth a second look."""

    def make(rng: np.random.Generator, _severity: Severity) -> list[RawSeries]:
        record = tell(server(rng, HOST), usage or Usage())
        common(record, rate=rate, retrans=retrans)
        extra(record)
        return record.series + fed(rng, 0.99)

    return make


def _unused_port(record: Recorder) -> None:
    """Every second port was never cabled: down as far back as there are readings, no traffic."""
    for number in range(8):
        spare = number % 2 == 1
        rdma(record, f"mlx5_{number}", rate=HDR if spare else NDR, up=0.0 if spare else 1.0,
             traffic=0.0 if spare else 9e9)  # fmt: skip


def _busy_ports(record: Recorder) -> None:
    """Ports near their rate; a few symbol errors in a day, waits for credits of a few per cent."""
    for number in range(8):
        old = float(record.rng.integers(0, 30))
        rdma(record, f"mlx5_{number}", traffic=3.6e10,
             counters={"port_transmit_wait_total": NDR / 4.0 * 0.02})  # fmt: skip
        last = [s for s in record.series if s.name == "node_infiniband_symbol_error_total"][-1]
        last.values += old


def _nothing(_record: Recorder) -> None:
    """Nothing besides what a server always has."""


def _heavy_nfs(record: Recorder) -> None:
    nfs(record, "10.20.0.9:/export/data", reads=2_600.0, read_rtt_s=0.0026, writes=160.0,
        write_rtt_s=0.004, queue_s=0.0003)  # fmt: skip
    filesystem(record, "/mnt/data", "10.20.0.9:/export/data", "nfs4", size=2e14, free=0.41)


def _busy_drive(record: Recorder) -> None:
    """A drive that is asked for much and answers at once: busy is not slow."""
    disk(record, "nvme1n1", reads=21_000.0, read_s=0.00022, writes=900.0, busy=0.9)
    filesystem(record, "/scratch", "/dev/nvme1n1", "xfs", size=7.6e12, free=0.3)


def _mount(free: float) -> Callable[[Recorder], None]:
    def extra(record: Recorder) -> None:
        filesystem(record, "/mnt/ckpt", "10.20.0.11:/ckpt", "nfs4", size=8e13,
                   free=free + 0.01 * shapes.wobble(record.rng, record.ts.size, 0.2))  # fmt: skip

    return extra


def _well(ident: str, title: str, target: str, make: Make) -> Scenario:
    return Scenario(ident, title, "healthy", target, (), make)


_CHAT = Load(users=14.0, prompt=900.0, output=220.0, hit=0.35)
# 60 per cent of a KV cache of 900,000 tokens: 86 requests of some 6,300.
_BUSY = Load(users=86.0, prompt=6000.0, output=600.0, hit=0.62)

SCENARIOS = (
    _well("healthy-vllm-light", "A service with little to do", f"svc/{_8B}",
          single(_8B, SMALL, _steady(replace(_CHAT, users=1.3)),
                 under=DECODE.but(gr=0.3, sm=0.2, dram=0.2, power=0.15))),
    _well("healthy-vllm-busy", "A busy service, KV cache at 60 %", f"svc/{_70B}",
          single(_70B, LARGE, _steady(_BUSY), under=DECODE)),
    _well("healthy-vllm-no-prefix-cache", "Prefix caching switched off by design", f"svc/{_8B}",
          single(_8B, SMALL, _steady(replace(_CHAT, hit=0.0)), under=DECODE)),
    _well("healthy-vllm-burst", "A burst that drained", f"svc/{_8B}",
          single(_8B, SMALL, _burst, under=DECODE)),
    _well("healthy-vllm-one-abort", "One request aborted", f"svc/{_8B}",
          single(_8B, SMALL, _steady(_CHAT), under=DECODE, extra=_one_abort)),
    _well("healthy-vllm-warm-start", "A server started 20 minutes ago", f"svc/{_8B}", _warm_start),
    _well("healthy-amd-idle", "AMD GPU without work", AMD_TARGET, _amd(AMD_IDLE)),
    _well("healthy-amd-decode", "AMD GPU that decodes", AMD_TARGET, _amd(AMD_DECODE)),
    _well("healthy-amd-power-bound", "AMD GPUs at their own power limit at times", AMD_TARGET,
          _amd(replace(AMD_TRAIN, power=0.99), clock=0.9, bound=0.25)),
    _well("healthy-amd-partitions", "Partitions of an AMD node read 0 W", AMD_HOST,
          _amd(replace(AMD_DECODE, vram=0.8), mode="cpx")),
    _well("healthy-ib-unused-ports", "Ports that were never in use", HOST, _server(_unused_port)),
    _well("healthy-ib-busy", "Ports near their rate, old symbol errors", HOST,
          _server(_busy_ports)),
    _well("healthy-few-retransmits", "TCP sends one segment in a thousand again", HOST,
          _server(_nothing, rate=9e8, retrans=0.0008)),
    _well("healthy-nfs-heavy", "NFS with a lot to do, answering in milliseconds", "fs/mnt/data",
          _server(_heavy_nfs, Usage(iowait=0.02, io_some=0.05, io_full=0.02))),
    _well("healthy-drive-busy", "A local drive busy and fast", "fs/scratch",
          _server(_busy_drive, Usage(iowait=0.03, io_some=0.06, io_full=0.02))),
    _well("healthy-filesystem-70", "A file system at 70 %", "fs/mnt/ckpt", _server(_mount(0.3))),
    _well("healthy-cpu-60", "CPUs at 60 %, GPUs busy", HOST,
          _server(_nothing, Usage(user=0.52, system=0.08, load=0.66, cpu_some=0.06))),
    _well("healthy-page-cache", "Memory mostly page cache", HOST,
          _server(_nothing, Usage(available=0.71, cached=0.68, faults=4.0))),
)  # fmt: skip
