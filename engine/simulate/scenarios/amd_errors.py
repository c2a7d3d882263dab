"""Faults of AMD GPUs that are counted: ECC by block, XGMI, PCIe; and memory, and a GPU gone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.amd import HOST, INDEX, TARGET, node
from engine.simulate.scenarios.amd_boards import MI300X, MI325X, TRAIN, Gpu, Work
from engine.simulate.scenarios.amd_gpu import Exporter
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.shapes import since


def _uncorrected(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """HBM errors that could not be corrected, within the window; deferred ones come with them."""
    moment = AT - rng.uniform(200.0, 700.0)
    # A burst: at least a few errors whatever the seed.
    width = 120.0
    burst = np.where((ts >= moment) & (ts < moment + width), severity.pick(8.0, 20.0, 80.0), 0.0)
    return replace(gpu, ecc={"uncorrect_umc": burst / width, "deferred_umc": burst / width})


def _storm(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    rate = severity.pick(0.4, 4.0, 60.0)
    started = AT - rng.uniform(900.0, 1500.0)
    return replace(gpu, ecc={"correct_umc": since(ts, started, 0.0, rate)})


def _xgmi(_rng: np.random.Generator, severity: Severity, _ts: Floats, gpu: Gpu) -> Gpu:
    """Errors of the inter-GPU links, mostly corrected; less gets through."""
    rate = severity.pick(0.1, 1.5, 20.0)
    slow = severity.pick(3.2e6, 2.2e6, 9e5)
    return replace(
        gpu,
        ecc={"correct_xgmi_wafl": rate, "uncorrect_xgmi_wafl": severity.pick(0.0, 0.01, 0.2)},
        work=Work(97.0, 38.0, severity.pick(0.78, 0.72, 0.6), xgmi_kb=slow),
    )


def _replays(_rng: np.random.Generator, severity: Severity, _ts: Floats, gpu: Gpu) -> Gpu:
    rate = severity.pick(0.3, 3.0, 40.0)
    return replace(
        gpu,
        pcie={
            "pcie_replay_count": rate,
            "pcie_nack_sent_count": rate * 0.4,
            "pcie_nack_received_count": rate * 0.7,
            "pcie_recovery_count": rate * 0.02,
        },
    )


def _slow_link(_rng: np.random.Generator, severity: Severity, _ts: Floats, gpu: Gpu) -> Gpu:
    """Trained at Gen4, Gen3 or Gen1 where Gen5 is possible, under load."""
    speed = severity.pick(16.0, 8.0, 2.5)
    return replace(
        gpu, pcie_speed=speed, work=Work(90.0, 38.0, 0.74, pcie_mb=9_000.0 * speed / 32.0)
    )


def _full(rng: np.random.Generator, severity: Severity, ts: Floats, gpu: Gpu) -> Gpu:
    """Nothing is left of the memory but some hundred MB."""
    used = severity.pick(0.988, 0.993, 0.998)
    return replace(gpu, work=Work(95.0, 45.0, 0.78, vram=since(ts, AT - rng.uniform(900.0, 1500.0),
                                                      0.9, used)))  # fmt: skip


def _gone(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    """One GPU vanishes from its exporter, which goes on with the other seven."""
    exporter = Exporter(rng, HOST, MI300X)
    left = AT - severity.pick(400.0, 600.0, 840.0)
    for index in range(8):
        before = len(exporter.series)
        exporter.publish(Gpu(index, TRAIN))
        if index == INDEX:
            for one in exporter.series[before:]:
                keep = one.ts < left
                one.ts, one.values = one.ts[keep], one.values[keep]
    count = since(exporter.ts, left, 8.0, 7.0)
    exporter.record.gauge(f"{exporter.prefix}gpu_nodes_total", count)
    return exporter.series


def _amd(ident: str, title: str, causes: tuple[str, ...], make: Make) -> Scenario:
    return Scenario(ident, title, "amd", TARGET, causes, make)


SCENARIOS = (
    _amd("amd-ecc-uncorrectable", "Uncorrectable errors in HBM", ("ecc_uncorrectable",),
         node(MI300X, _uncorrected, partitions=True)),
    _amd("amd-ecc-correctable-storm", "Correctable errors in HBM far above the siblings'",
         ("ecc_correctable_storm",), node(MI325X, _storm, partitions=True)),
    _amd("amd-xgmi-errors", "Errors on XGMI links", ("xgmi_errors",), node(MI300X, _xgmi)),
    _amd("amd-pcie-replays", "PCIe replays and NAKs rising", ("pcie_errors",),
         node(MI300X, _replays, violations=False)),
    _amd("amd-pcie-slow-link", "PCIe link below its maximum under load", ("pcie_degraded",),
         node(MI300X, _slow_link)),
    _amd("amd-memory-full", "Memory nearly exhausted", ("gpu_memory_full",),
         node(MI325X, _full)),
    _amd("amd-gpu-gone", "A GPU vanished from its exporter", ("gpu_off_bus",), _gone),
)  # fmt: skip
