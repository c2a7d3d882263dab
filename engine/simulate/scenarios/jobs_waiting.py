"""Jobs whose GPUs wait for something else: input, CPU time, checkpoints, the network."""

from __future__ import annotations

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT, Scenario, Severity
from engine.simulate.scenarios.hosts import container, cpus
from engine.simulate.scenarios.nvidia_boards import A100_80, H100, IDLE, PARKED, TRAIN, WAIT, mix
from engine.simulate.scenarios.nvidia_names import style
from engine.simulate.scenarios.nvidia_nodes import fleet, settle
from engine.simulate.scenarios.shapes import counter, scrapes, series, since
from engine.simulate.scenarios.training import TARGET, Job, every, job, reports

_POD = "train-llama"


def _starve(rng: np.random.Generator, work: Job, share: float) -> None:
    """Let all ranks wait for input for a share of the time, in uneven stretches."""
    for item in work.nodes:
        # Ranks of a node wait together: they share its loaders, and each other's gradients.
        stall = np.clip(share + rng.normal(0.0, 0.22, item.ts.size), 0.0, 1.0)
        for gpu in item.gpus:
            gpu.run(rng, mix(TRAIN, PARKED.but(fb=TRAIN.fb), stall))
            settle(rng, gpu)


def _loader(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    work = job(rng, nodes=3, step_s=10.0)
    _starve(rng, work, severity.pick(0.4, 0.6, 0.8))
    return work.publish()


def _loader_io(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    work = job(rng, nodes=2, step_s=15.0)
    share = severity.pick(0.35, 0.55, 0.8)
    _starve(rng, work, share)
    out = work.publish()
    for item in work.nodes:
        out += cpus(rng, item.host, scrapes(rng, step_s=15.0), user=0.12, iowait=share * 0.5)
    return out


def _loader_cpu(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    work = job(rng, nodes=2, step_s=15.0)
    _starve(rng, work, severity.pick(0.35, 0.55, 0.8))
    out = work.publish()
    for item in work.nodes:
        busy = severity.pick(0.88, 0.93, 0.96)
        out += cpus(rng, item.host, scrapes(rng, step_s=15.0), user=busy, system=0.03)
    return out


def _quota(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    nodes = fleet(rng, ("node-1", "node-2"), (A100_80, H100), TRAIN, step_s=15.0, pods=_POD)
    work = Job(nodes, style(rng), nodes[0].board)
    _starve(rng, work, severity.pick(0.3, 0.5, 0.75))
    out, held = work.publish(), severity.pick(0.35, 0.6, 0.9)
    for k, item in enumerate(nodes):
        ts = scrapes(rng, step_s=15.0)
        labels = {"namespace": "ml", "pod": f"{_POD}-{k}", "container": "trainer",
                  "node": item.host, "instance": f"{item.host}:10250"}  # fmt: skip
        out += container(rng, labels, ts, quota_cpus=16.0, used=0.97, throttled=held)
        out += cpus(rng, item.host, ts, user=0.2, system=0.03)
    return out


def _checkpoints(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    work = job(rng, nodes=3, step_s=10.0)
    period, length = 300.0, severity.pick(60.0, 100.0, 160.0)
    phase = float(rng.uniform(0.0, period))
    for gpu in work.gpus:
        gpu.run(rng, mix(TRAIN, PARKED.but(fb=TRAIN.fb), every(gpu, period, length, phase)))
        settle(rng, gpu)
    out = work.publish()
    for item in work.nodes:
        ts = scrapes(rng, step_s=10.0)
        on = ((AT - ts + phase) % period < length).astype(np.float64)
        out += cpus(rng, item.host, ts, user=0.1, iowait=0.002 + 0.1 * on)
        where = {"instance": f"{item.host}:9100"}
        written = counter(rng, ts, 2e6 + 2.2e9 * on, start=1e12).round()
        out.append(series("node_disk_written_bytes_total", {**where, "device": "nvme0n1"}, ts,
                          written))  # fmt: skip
    return out


def _communication(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # All ranks alike spend much of a step in collectives; links are clean and busy.
    wait = severity.pick(0.4, 0.55, 0.72)
    talk = WAIT.but(link=0.45, power=0.3, sm=0.25, dram=0.12)
    work = job(rng, nodes=4, load=mix(TRAIN, talk, wait))
    ts = scrapes(rng, step_s=15.0)
    out = work.publish()
    out += reports(rng, ts, step_time_s=2.0 / (1.0 - wait), mfu=0.44 * (1.0 - wait),
                   allreduce_ms=2000.0 * wait / (1.0 - wait))  # fmt: skip
    for item in work.nodes:
        for port in range(4):
            labels = {"instance": f"{item.host}:9100", "device": f"mlx5_{port}", "port": "1"}
            # 400 Gb/s ports: 50 GB/s.
            for way in ("transmitted", "received"):
                moved = counter(rng, ts, 50e9 * min(0.6 + wait * 0.4, 0.92), start=1e15)
                out.append(series(f"node_infiniband_port_data_{way}_bytes_total", labels, ts,
                                  moved.round()))  # fmt: skip
            out.append(series("node_infiniband_rate_bytes_per_second", labels, ts, 50e9))
            out.append(series("node_infiniband_state_id", labels, ts, 4.0))
    return out


def _two_on_one(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # A wrong device map: GPU 0 of every node has two ranks, the last GPU (or more) has none.
    work = job(rng, nodes=2)
    doubled = int(severity.pick(1, 2, 4))
    for gpu in work.gpus:
        if gpu.index < doubled:
            gpu.run(rng, TRAIN.but(sm=0.93, gr=1.0, fb=0.94))
        elif gpu.index >= 8 - doubled:
            gpu.run(rng, IDLE)
        else:
            gpu.run(rng, mix(TRAIN.but(fb=0.47), WAIT.but(fb=0.47), 0.5))
        settle(rng, gpu)
    return work.publish()


def _slower(ts: Floats, before: float, after: float) -> Floats:
    return since(ts, AT - 1500.0, before, after)


def _regression(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Two hours of steady steps; then, since 25 minutes ago, slower ones, and nothing else changed.
    work = job(rng, nodes=2, step_s=30.0, span_s=9000.0)
    loss = severity.pick(0.12, 0.25, 0.45)
    for gpu in work.gpus:
        pace = _slower(gpu.ts, 1.0, 1.0 - loss)
        gpu.run(rng, TRAIN.but(sm=TRAIN.sm * pace, tensor=TRAIN.tensor * pace, gr=0.97,
                               dram=TRAIN.dram * pace, power=TRAIN.power * (0.3 + 0.7 * pace),
                               link=TRAIN.link * pace))  # fmt: skip
        settle(rng, gpu)
    ts = scrapes(rng, step_s=30.0, span_s=9000.0)
    return work.publish() + reports(
        rng, ts, step_time_s=_slower(ts, 2.4, 2.4 / (1.0 - loss)),
        mfu=_slower(ts, 0.42, 0.42 * (1.0 - loss)), allreduce_ms=210.0,
    )  # fmt: skip


SCENARIOS = (
    Scenario("data-loader-gpu-side", "A job waits for input; only the GPUs are exported", "job",
             TARGET, ("data_loader_stall",), _loader),
    Scenario("data-loader-io", "A job waits for input, its hosts for I/O", "job", TARGET,
             ("data_loader_stall",), _loader_io),
    Scenario("data-loader-cpu", "A job waits for input, its hosts' CPUs are busy making it", "job",
             TARGET, ("data_loader_stall", "cpu_starved"), _loader_cpu),
    Scenario("cpu-quota", "A training container is throttled by its CPU quota", "job",
             f"pod/ml/{_POD}-0", ("cpu_quota_throttled",), _quota),
    Scenario("checkpoint-stall", "All ranks pause while checkpoints are written", "job", TARGET,
             ("checkpoint_stall",), _checkpoints),
    Scenario("communication-bound", "Collectives take most of a step on sound links", "job",
             TARGET, ("communication_bound",), _communication),
    Scenario("launch-misconfigured", "Two ranks on one GPU, another GPU of the job idle", "job",
             TARGET, ("launch_misconfigured",), _two_on_one),
    Scenario("regression", "Steps are slower than the job's own past, nothing else changed",
             "job", TARGET, ("regression",), _regression, window_s=7200.0),
)  # fmt: skip
