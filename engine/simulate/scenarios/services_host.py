"""Services slow or failing around the model: CPU, errors, clients, and sick GPUs underneath."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import Severity
from engine.simulate.scenarios.nvidia_boards import DECODE
from engine.simulate.scenarios.nvidia_boards import Load as Kernels
from engine.simulate.scenarios.nvidia_gpu import HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE, SW_THERMAL
from engine.simulate.scenarios.nvidia_nodes import settle as settle_gpu
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.services_base import (
    gpus,
    host_of,
    onset,
    replica,
    service,
    show,
    single,
    ups_and_downs,
)
from engine.simulate.scenarios.serving import LARGE, MEDIUM, SMALL, Engine, Load, State, settle
from engine.simulate.scenarios.serving_peers import triton
from engine.simulate.scenarios.serving_vllm import frontend, vllm

_70B = "meta-llama/Llama-3.1-70B-Instruct"
_8B = "meta-llama/Llama-3.1-8B-Instruct"
_32B = "Qwen/Qwen2.5-32B-Instruct"


def _share(kernels: Kernels, busy: float) -> Kernels:
    """Return a GPU load that runs for a share of the time and waits for its CPU otherwise."""
    return kernels.but(gr=kernels.gr * busy, sm=kernels.sm * busy, dram=kernels.dram * busy,
                       tensor=kernels.tensor * busy, occ=kernels.occ * busy,
                       power=kernels.power * busy)  # fmt: skip


def _container(record: Recorder, cores: Floats | float) -> None:
    """Add what cAdvisor knows of the pod; without Kubernetes, the process alone is known."""
    if "pod" in record.labels:
        record.count("container_cpu_usage_seconds_total", cores, {"cpu": "total"}, whole=False)
        record.shaky("container_memory_working_set_bytes", 6.1e10, spread=0.01)


def _engine_cpu(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """The scheduler's thread needs longer than the GPU: steps are slow, kernels are not."""
    record = replica(rng, "llama-8b")
    n = record.ts.size
    host_s = onset(rng, record.ts, 0.0006, severity.pick(0.024, 0.045, 0.09))
    load = Load(users=ups_and_downs(rng, 24.0, n), prompt=500.0, output=300.0, host_s=host_s)
    state = settle(SMALL, load, n)
    vllm(record, state, _8B)
    frontend(record, state, cpu=0.3)
    # One thread at its core's limit, and the API server's share.
    _container(record, np.where(host_s > 0.001, 1.35, 0.9))
    busy = float(state.busy[-1])
    return record.series + show(rng, [gpus(rng, record, SMALL, _share(DECODE, busy))])


def _front_end(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """One API server tokenises for everybody at 100 % of its core; the engine is starved."""
    record = replica(rng, "llama-8b")
    n = record.ts.size
    front = onset(rng, record.ts, 0.02, severity.pick(1.2, 3.5, 9.0))
    users = np.where(front > 0.1, severity.pick(7.0, 5.0, 3.0), 20.0)
    load = Load(users=ups_and_downs(rng, users, n), prompt=1800.0, output=60.0, front_s=front)
    state = settle(SMALL, load, n)
    vllm(record, state, _8B)
    frontend(record, state, cpu=severity.pick(0.97, 0.985, 0.995))
    _container(record, 1.6)
    return record.series + show(rng, [gpus(rng, record, SMALL, _share(DECODE, 0.3))])


def _errors(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    failed = onset(rng, ts, 0.0, severity.pick(0.04, 0.12, 0.45))
    return Load(users=30.0, prompt=900.0, output=250.0, failed=failed)


def _triton_errors(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    record = replica(rng, "triton-llama", server="triton")
    load = _errors(rng, severity, record.ts)
    load = replace(load, users=ups_and_downs(rng, load.users, record.ts.size))
    return triton(record, settle(LARGE, load, record.ts.size), "ensemble")


def _give_up(rng: np.random.Generator, severity: Severity, ts: Floats) -> Load:
    """Clients close their connections early; the server itself answers as it should."""
    aborted = onset(rng, ts, 0.004, severity.pick(0.16, 0.34, 0.6))
    return Load(users=30.0, prompt=900.0, output=250.0, aborted=aborted)


def _sick(
    rng: np.random.Generator, record: Recorder, engine: Engine, model: str, *,
    share: float, slow: float,
) -> State:  # fmt: skip
    """Serve on GPUs of which the slowest runs at a share of its clock; all wait for it."""
    n = record.ts.size
    factor = onset(rng, record.ts, 1.0, 1.0 / (slow + (1.0 - slow) * share))
    load = Load(users=ups_and_downs(rng, 40.0, n), prompt=900.0, output=300.0, slow=factor)
    state = settle(engine, load, n)
    vllm(record, state, model)
    frontend(record, state)
    return state


def _hot_gpu(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """One of four tensor-parallel GPUs is above its limits; the service is as slow as that one."""
    record = replica(rng, "llama-70b")
    share = severity.pick(0.6, 0.42, 0.28)
    _sick(rng, record, LARGE, _70B, share=share, slow=0.25)
    below = gpus(rng, record, LARGE, DECODE, spare=4)
    hot = below.gpus[2]
    hard = severity is not Severity.MILD
    bits = HW_SLOWDOWN | HW_THERMAL if hard else SW_THERMAL
    hot.run(rng, DECODE, cap_mhz=hot.board.sm_mhz * share, bits=bits)
    settle_gpu(rng, hot)
    heat = (hot.board.slowdown_c if hard else hot.board.max_op_c) + 0.6
    hot.hold("DEV_GPU_TEMP", np.round(heat + rng.normal(0.0, 0.5, hot.ts.size)))
    hot.hold("DEV_MEMORY_TEMP", np.round(92.0 + rng.normal(0.0, 0.5, hot.ts.size)))
    return record.series + show(rng, [below])


def _braked(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """The node of one of two replicas is under a power brake; that replica is slow."""
    found: list[RawSeries] = []
    nodes = []
    share = severity.pick(0.5, 0.4, 0.25)
    for index in range(2):
        record = replica(rng, "qwen2-5-32b", index, step_s=15.0)
        braked = index == 1
        _sick(rng, record, MEDIUM, _32B, share=share if braked else 1.0, slow=0.25)
        found += record.series
        below = gpus(rng, record, MEDIUM, DECODE, index, spare=1)
        if braked:
            for gpu, kernels in zip(
                below.gpus, (DECODE, Kernels(0, 0, 0, 0, 0, 0, 0)), strict=True
            ):
                gpu.run(rng, kernels, cap_mhz=gpu.board.sm_mhz * share,
                        bits=HW_SLOWDOWN | POWER_BRAKE)  # fmt: skip
                settle_gpu(rng, gpu)
        nodes.append(below)
    return found + show(rng, nodes)


SCENARIOS = (
    service("engine-cpu-bound", "The scheduler's thread, not the GPU, sets the step time", _8B,
            ("engine_cpu_bound",), _engine_cpu),
    service("api-server-cpu-bound", "The API server's process is at 100 % of a core", _8B,
            ("api_server_cpu_bound",), _front_end),
    service("serving-errors-vllm", "Requests fail in the server", _70B, ("serving_errors",),
            single(_70B, LARGE, _errors, versions=("v1",), under=DECODE)),
    service("serving-errors-triton", "Triton's backend fails requests", "ensemble",
            ("serving_errors",), _triton_errors),
    service("client-aborts", "Clients give up while the server answers", _70B, ("client_aborts",),
            single(_70B, LARGE, _give_up, under=DECODE)),
    service("service-on-hot-gpu", "A service is slow because one of its GPUs is too hot", _70B,
            ("thermal_slowdown_hw", "thermal_slowdown_sw"), _hot_gpu, f"{host_of()}:2"),
    service("service-on-braked-node", "A replica is slow because its node is under a power brake",
            _32B, ("power_brake",), _braked, host_of(1)),
)  # fmt: skip
