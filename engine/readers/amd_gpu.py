"""Boards of AMD as device-metrics-exporter shows them: names of metrics, readings by board.

Names, units and semantics: ROCm/device-metrics-exporter 1.5.2 metricslist.md (see
``knowledge/amd``). Names come with or without a prefix, usually ``amd_``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite

from engine.model import Entity, Finding, Severity
from engine.readers.series import Series
from engine.signals.labels import gpu_entity

SOURCE = "ROCm/device-metrics-exporter 1.5.2 metricslist.md"
VIOLATIONS = "ROCm/rocm-systems projects/amdsmi docs/conceptual/gpu-violations.md"
# All ones in 64, 32 and 16 bits: not supported.
ALL_ONES = frozenset((18446744073709551615.0, 4294967295.0, 65535.0))
_NAMES = (
    "gpu_gfx_activity",
    "gpu_umc_activity",
    "gpu_package_power",
    "gpu_average_package_power",
    "gpu_power_usage",
    "gpu_power_cap",
    "gpu_junction_temperature",
    "gpu_edge_temperature",
    "gpu_memory_temperature",
    "gpu_used_vram",
    "gpu_total_vram",
    "gpu_health",
    "gpu_afid_errors",
    "gpu_energy_consumed",
    "pcie_speed",
    "pcie_max_speed",
    "pcie_replay_count",
)
_PREFIXES = ("gpu_ecc_", "gpu_violation_", "gpu_clock", "gpu_xgmi_", "gpu_prof_")
BUSY, IDLE = 80.0, 5.0
_MAX_GPUS = 1024


@dataclass(slots=True)
class AmdGpu:
    """The readings of one board, by name without prefix; a partition's are its own."""

    entity: Entity
    line: int
    now: dict[str, float] = field(default_factory=dict)
    clocks: list[float] = field(default_factory=list)
    afids: dict[str, float] = field(default_factory=dict)


def amd_name(name: str) -> str | None:
    """Return a metric's name without prefix, None if it is not of AMD's exporter."""
    at = name.find("gpu_")
    bare = name[at:] if 0 <= at <= 24 and not name.startswith(("dcgm", "DCGM", "nvidia")) else name
    if bare in _NAMES or bare.startswith(_PREFIXES):
        return bare
    at = name.find("pcie_")
    return name[at:] if 0 <= at <= 24 and name[at:] in _NAMES else None


def is_amd(series: Series) -> bool:
    """AMD's exporter puts gpu_id and partition labels on every series."""
    labels = series.labels
    return "gpu_partition_id" in labels or "card_model" in labels or "gpu_id" in labels


def amd_gpus(mine: list[tuple[str, Series]]) -> list[AmdGpu]:
    """Return the boards that series belong to; what is read on other partitions is left out."""
    found: dict[tuple[str, str], AmdGpu] = {}
    for bare, series in mine:
        value = series.last
        if value is None or not isfinite(value) or value in ALL_ONES or not series.place.key[1]:
            continue
        if series.labels.get("gpu_partition_id", "0") not in {"0", "4294967295", ""}:
            continue
        gpu = found.get(series.place.key)
        if gpu is None:
            if len(found) >= _MAX_GPUS:
                continue
            gpu = found[series.place.key] = AmdGpu(gpu_entity([series.place]), series.line)
        if bare == "gpu_clock":
            if series.labels.get("clock_type", "").lower().endswith("system"):
                gpu.clocks.append(value)
        elif bare == "gpu_afid_errors":
            gpu.afids[series.labels.get("severity", "")] = value
        else:
            gpu.now[bare] = max(value, gpu.now.get(bare, value))
    return list(found.values())


def power(gpu: AmdGpu) -> float | None:
    """Return the power of a board (W)."""
    names = ("gpu_package_power", "gpu_power_usage", "gpu_average_package_power")
    return next((gpu.now[n] for n in names if gpu.now.get(n)), None)


def hot_spot(gpu: AmdGpu) -> float | None:
    """Return the hottest temperature of the die (Celsius)."""
    names = ("gpu_junction_temperature", "gpu_edge_temperature")
    return next((gpu.now[n] for n in names if gpu.now.get(n)), None)


def hot_spots(named: Iterable[tuple[str | None, Series]]) -> Iterator[tuple[Entity, float]]:
    """Yield the boards among series, each with the hottest temperature of its die."""
    for gpu in amd_gpus([(bare, s) for bare, s in named if bare and is_amd(s)]):
        hot = hot_spot(gpu)
        if hot is not None:
            yield gpu.entity, hot


def finding(
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    line: int,
    data: dict[str, object],
    *,
    entity: Entity | None = None,
    cause: str | None = None,
    sources: tuple[str, ...] = (SOURCE,),
) -> Finding:
    """Return a finding about metrics of AMD."""
    return Finding(
        kind="metrics",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=entity,
        line=line,
        cause=cause,
        data=data,
        sources=sources,
    )
