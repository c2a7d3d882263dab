"""How the program uses the GPU, and what an exporter can hide."""

from __future__ import annotations

import numpy as np

from engine.simulate.environment import Environment
from engine.simulate.faults import Apply, Effect, Span
from engine.simulate.noise import Floats
from engine.simulate.workloads import phase

# One collection interval of most exporters: the odd value is read once.
_ODD_SAMPLE_S = 15.0


def _runs(name: str) -> Apply:
    """Return an effect that puts the GPU into a phase, mixed in by severity."""
    row = phase(name)

    def apply(env: Environment, span: Span) -> None:
        span.set(env.phase, row)
        span.set(env.blend, 0.5 + 0.5 * span.severity)

    return apply


def _idle(env: Environment, span: Span) -> None:
    span.set(env.phase, phase("idle"))
    span.set(env.blend, 1.0)


def _gpu_memory_full(env: Environment, span: Span) -> None:
    span.set(env.fb, 0.980 + 0.015 * span.severity)


def _gpu_contention(env: Environment, span: Span) -> None:
    span.set(env.phase, phase("shared"))
    span.set(env.blend, 0.5 + 0.5 * span.severity)
    span.set(env.pods, 3.0 if span.severity >= 0.75 else 2.0)


def _mig_slice(env: Environment, span: Span) -> None:
    span.set(env.mig, 1.0)


def _cpu_starved(env: Environment, span: Span) -> None:
    span.set(env.phase, phase("starved"))
    span.set(env.blend, 0.5 + 0.5 * span.severity)
    span.set(env.host_load, 0.8 + 2.0 * span.severity)


def _exporter_down(env: Environment, span: Span) -> None:
    span.set(env.down, 1.0)


def _metrics_missing(env: Environment, span: Span) -> None:
    span.set(env.stock_only, 1.0)


def _profiling_paused(env: Environment, span: Span) -> None:
    span.set(env.profiling_off, 1.0)


def _stale_data(env: Environment, span: Span) -> None:
    span.set(env.frozen_at, span.fault.since)


EFFECTS = {
    "tensor_cores_unused": Effect(_runs("fp32")),
    "fp64_fallback": Effect(_runs("fp64")),
    "memory_bound": Effect(_runs("memory_bound")),
    "compute_bound": Effect(_runs("compute_bound")),
    "low_occupancy": Effect(_runs("few_warps")),
    "launch_bound": Effect(_runs("tiny_kernels")),
    "gpu_memory_full": Effect(_gpu_memory_full),
    "gpu_contention": Effect(_gpu_contention),
    "mig_slice": Effect(_mig_slice),
    "idle": Effect(_idle),
    "cpu_starved": Effect(_cpu_starved, node=True),
    "exporter_down": Effect(_exporter_down, node=True),
    "metrics_missing": Effect(_metrics_missing, node=True),
    "profiling_paused": Effect(_profiling_paused, node=True),
    "stale_data": Effect(_stale_data),
}


def _nothing(env: Environment, span: Span) -> None:
    """An old Xid is told by the Xid reading alone; nothing else about the GPU differs."""
    del env, span


def _idle_power_cap(env: Environment, span: Span) -> None:
    span.set(env.mask_or, 4.0)


def _old_ecc(env: Environment, span: Span) -> None:
    del env, span


def _once(span: Span) -> Floats:
    return np.where(span.age < _ODD_SAMPLE_S, 1.0, 0.0)


def _warm_sample(env: Environment, span: Span) -> None:
    span.set(env.hot_sample, _once(span))


def _wild_sample(env: Environment, span: Span) -> None:
    span.set(env.wild_sample, _once(span))


HERRINGS = {
    # Xid 31 (or `value`) from long ago still in the sticky gauge.
    "old_xid": Effect(_nothing),
    # The power-cap bit shows although the GPU does nothing.
    "idle_power_cap": Effect(_idle_power_cap),
    # Lifetime ECC counters that stand still.
    "old_ecc": Effect(_old_ecc),
    # For one reading the die is just below its limit.
    "warm_sample": Effect(_warm_sample),
    # For one reading the utilisation is 4294967295.
    "wild_sample": Effect(_wild_sample),
    # PCIe drops to generation 1 because the GPU idles.
    "idle_pcie_gen": Effect(_idle),
}
