"""Readings for tests of the diagnosis: series of one GPU from a few words, or of a simulated fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO
from typing import Any
from zlib import crc32

import numpy as np

from engine.diagnosis import Engine, ruletest
from engine.model import Sweep, Why
from engine.samples import RawSeries
from engine.simulate import Fleet
from engine.sources import FileSource
from tests.support.packaged import catalogue

# The moment up to which readings go (Unix s).
AT = ruletest.AT
H100 = "NVIDIA H100 80GB HBM3"
# A healthy, busy H100 as an unchanged dcgm-exporter shows it (etc/default-counters.csv): no
# throttle mask, no SM_ACTIVE, no ECC.
STOCK: Mapping[str, Any] = {
    "DCGM_FI_DEV_GPU_UTIL": 98,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.95,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.35,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.45,
    "DCGM_FI_DEV_SM_CLOCK": [1965, 1980, 1950, 1980],
    "DCGM_FI_DEV_GPU_TEMP": 60,
    "DCGM_FI_DEV_MEMORY_TEMP": 70,
    "DCGM_FI_DEV_POWER_USAGE": 520,
    "DCGM_FI_DEV_XID_ERRORS": 0,
    "DCGM_FI_DEV_FB_USED": 60_000,
    "DCGM_FI_DEV_FB_FREE": 20_000,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 3,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
}
# The same with the fields that a careful site adds.
FULL: Mapping[str, Any] = {
    **STOCK,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0,
    "DCGM_FI_PROF_SM_ACTIVE": 0.88,
    "DCGM_FI_PROF_SM_OCCUPANCY": 0.4,
    "DCGM_FI_DEV_MAX_SM_CLOCK": 1980,
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": 700,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF": 700,
    "DCGM_FI_DEV_PSTATE": 0,
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 0,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
    "DCGM_FI_DEV_PCIE_LINK_GEN": 5,
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": 5,
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": 16,
}
IDLE: Mapping[str, Any] = {
    **FULL,
    "DCGM_FI_DEV_GPU_UTIL": 0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0,
    "DCGM_FI_PROF_SM_ACTIVE": 0,
    "DCGM_FI_PROF_SM_OCCUPANCY": 0,
    "DCGM_FI_DEV_SM_CLOCK": 345,
    "DCGM_FI_DEV_POWER_USAGE": 72,
    "DCGM_FI_DEV_GPU_TEMP": 32,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 1,
}


@cache
def engine() -> Engine:
    """Return an engine over the shipped rules; it keeps nothing between questions."""
    return Engine(catalogue())


def uuid_of(host: str, gpu: int) -> str:
    """Return the UUID that `gpu` gives by default."""
    return f"GPU-{crc32(host.encode()):08x}-0000-4000-8000-{gpu:012x}"


def series(name: str, value: Any, labels: Mapping[str, str], *, shift_s: float = 0.0) -> RawSeries:
    """Return one series up to `AT`; ``value`` as in rule tests (a number, a list, ``{was: …}``)."""
    ts, values = ruletest.readings(value)
    return RawSeries(name, dict(labels), ts + shift_s, values)


def gpu(
    values: Mapping[str, Any],
    *,
    host: str = "node-1",
    index: int = 0,
    uuid: str | None = None,
    model: str = H100,
    shift_s: float = 0.0,
    **labels: str,
) -> list[RawSeries]:
    """Return the series of one GPU, labelled as dcgm-exporter and Prometheus do."""
    own = {
        "gpu": str(index),
        "UUID": uuid or uuid_of(host, index),
        "pci_bus_id": f"00000000:{16 + index:02X}:00.0",
        "device": f"nvidia{index}",
        "modelName": model,
        "Hostname": host,
        "instance": f"{host}:9400",
        "job": "dcgm-exporter",
        **labels,
    }
    return [series(name, value, own, shift_s=shift_s) for name, value in values.items()]


def node(values: Mapping[str, Any], *, host: str = "node-1", gpus: int = 8) -> list[RawSeries]:
    """Return the series of a node of equal GPUs."""
    return [s for index in range(gpus) for s in gpu(values, host=host, index=index)]


def up(value: Any, *, host: str = "node-1") -> RawSeries:
    """Return the series by which Prometheus says whether the exporter of a host answers."""
    return series("up", value, {"instance": f"{host}:9400", "job": "dcgm-exporter"})


def of_fleet(fleet: Fleet, start: float, end: float, step_s: float = 15.0) -> list[RawSeries]:
    """Return what a Prometheus would hold of a simulated fleet (times in Unix s)."""
    times, found = fleet.series(start, end, step_s)
    out = []
    for name, one in found:
        there = one.ok & ~np.isnan(one.values)
        if there.any():
            out.append(RawSeries(name, dict(one.labels), times[there], one.values[there]))
    return out


def causes(answer: Why) -> list[str]:
    """Return the causes that an answer names, first one first."""
    return [d.cause for d in answer.diagnoses]


def notes(answer: Why) -> list[str]:
    """Return the benign findings of an answer."""
    return [n.cause for n in answer.notes]


def incidents(answer: Sweep) -> dict[tuple[str, str], list[str]]:
    """Return (cause, entity) of every incident with the names of its members."""
    return {
        (i.diagnosis.cause, i.diagnosis.entity.name): [m.name for m in i.members]
        for i in answer.incidents
    }


def needs(answer: Why | Sweep) -> Iterable[str]:
    """Return the readings that an answer says it lacks."""
    return [u.needs for u in answer.unknown]


def judge(exposition: bytes) -> Sequence[Why]:
    """Answer for every entity in a text of metrics, as readers of text ask for it."""

    async def each() -> Sequence[Why]:
        source = FileSource(["-"], stdin=BytesIO(exposition))
        try:
            return await engine().each(source)
        finally:
            await source.aclose()

    return asyncio.run(each())
