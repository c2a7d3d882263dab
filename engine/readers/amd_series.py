"""Metrics of AMD's device-metrics-exporter: what they show, and their traps.

Every metric is a gauge there, accumulators and totals among them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from engine.model import Finding, Severity
from engine.readers.amd_gpu import (
    ALL_ONES,
    IDLE,
    SOURCE,
    VIOLATIONS,
    AmdGpu,
    amd_gpus,
    amd_name,
    finding,
    hot_spot,
    is_amd,
    power,
)
from engine.readers.amd_slowed import Board, slowed
from engine.readers.amd_state import errors, health, outliers, violations
from engine.readers.series import Collected, Series
from engine.readers.value_oddities import listed
from engine.units import number


def amd_series(collected: Collected) -> Iterator[Finding]:
    """Yield what the metrics of AMD GPUs show."""
    mine = [
        (bare, s) for s in collected.series.values() if (bare := amd_name(s.name)) and is_amd(s)
    ]
    if not mine:
        return
    yield from _sentinels(mine)
    yield from _partitions(mine)
    gpus = amd_gpus(mine)
    yield from _summary(gpus)
    for gpu in gpus:
        yield from errors(gpu)
        yield from violations(gpu)
        yield from health(gpu)
    yield from outliers(gpus)
    yield from _units(mine)


def amd_slowed(collected: Collected, judged: Collection[str]) -> Iterator[Finding]:
    """Yield boards whose clocks are cut, of those that the rules could not judge.

    Args:
        collected: the series of the text.
        judged: names of the GPUs of which a verdict says what is wrong.
    """
    gpus = amd_gpus(
        [(bare, s) for s in collected.series.values() if (bare := amd_name(s.name)) and is_amd(s)]
    )
    boards = {id(gpu): _board(gpu) for gpu in gpus}
    for gpu in gpus:
        others = [boards[id(g)] for g in gpus if g is not gpu and g.entity.host == gpu.entity.host]
        one = None if gpu.entity.name in judged else slowed(boards[id(gpu)], others)
        if one is not None:
            yield finding(
                "amd_slowed",
                one.severity,
                one.says,
                one.action,
                gpu.line,
                one.data,
                entity=gpu.entity,
                cause=one.cause,
                sources=(VIOLATIONS,),
            )


def _board(gpu: AmdGpu) -> Board:
    return Board(
        gpu.entity.name,
        activity=gpu.now.get("gpu_gfx_activity"),
        hot=hot_spot(gpu),
        clock=min(gpu.clocks, default=None),
        power=power(gpu),
        cap=gpu.now.get("gpu_power_cap"),
    )


def _sentinels(mine: list[tuple[str, Series]]) -> Iterator[Finding]:
    ones = [
        s for bare, s in mine if s.last in ALL_ONES or s.bad_value in ALL_ONES or _byte(bare, s)
    ]
    labels = [s for _, s in mine if s.labels.get("gpu_partition_id") == "4294967295"]
    if not ones and not labels:
        return
    parts = []
    if ones:
        parts.append(
            f"{len(ones)} AMD series read all ones (2^64 - 1, 2^32 - 1; 255 for a percentage): not "
            "supported on this GPU or in this virtual machine, and no value: "
            f"{listed(s.name for s in ones)}."
        )
    if labels:
        parts.append(
            'gpu_partition_id="4294967295" is such a marker too: the GPU reports no partition.'
        )
    yield finding(
        "amd_not_supported",
        Severity.INFO,
        " ".join(parts),
        "Filter percentages above 100, and values above 1e9 of powers and temperatures, before any "
        "average.",
        (ones or labels)[0].line,
        {"series": len(ones), "metrics": list(dict.fromkeys(s.name for s in ones))[:64]},
        sources=(VIOLATIONS,),
    )


def _byte(bare: str, series: Series) -> bool:
    """Whether a percentage is all ones of its byte."""
    return bare.endswith("_percentage") and series.last == 255


def _partitions(mine: list[tuple[str, Series]]) -> Iterator[Finding]:
    zero = [
        s
        for bare, s in mine
        if "power" in bare
        and s.last == 0
        and s.labels.get("gpu_partition_id", "0") not in {"0", "", "4294967295"}
    ]
    if not zero:
        return
    mode = zero[0].labels.get("gpu_compute_partition_type", "").upper()
    yield finding(
        "amd_partitions",
        Severity.INFO,
        f"{len(zero)} power readings of 0 W belong to partitions other than 0"
        + (f" ({mode} mode)" if mode else "")
        + ": power, temperature, clocks and activity exist on partition 0 only, so this is no "
        "fault and no idle GPU.",
        'Keep gpu_partition_id="0" for alerts and averages, and count boards, not rows.',
        zero[0].line,
        {"partitions_at_zero": len(zero), "mode": mode or None},
    )


def _summary(gpus: list[AmdGpu]) -> Iterator[Finding]:
    if not gpus:
        return
    parts = []
    for words, unit, read in (
        ("GFX activity", " %", lambda g: g.now.get("gpu_gfx_activity")),
        ("power", " W", power),
        ("hot spot", " °C", hot_spot),
        ("memory", " °C", lambda g: g.now.get("gpu_memory_temperature")),
        ("GFX clock", " MHz", lambda g: min(g.clocks, default=None)),
    ):
        values = [v for g in gpus if (v := read(g)) is not None]
        if values:
            low, high = number(min(values)), number(max(values))
            parts.append(f"{words} {low if low == high else f'{low} to {high}'}{unit}")
    activity = [g.now["gpu_gfx_activity"] for g in gpus if "gpu_gfx_activity" in g.now]
    idle = bool(activity) and max(activity) <= IDLE and len(activity) == len(gpus)
    yield Finding(
        kind="metrics",
        id="amd_gpus",
        severity=Severity.INFO,
        says=f"{len(gpus)} AMD GPU{'' if len(gpus) == 1 else 's'}: "
        + (", ".join(parts) or "no reading that tells its state")
        + "."
        + (" No work runs." if idle else ""),
        action="Limits are per board: amd-smi static --limit.",
        entity=gpus[0].entity if len(gpus) == 1 else None,
        line=gpus[0].line,
        cause="idle" if idle else None,
        data=_first(gpus) if len(gpus) == 1 else {"gpus": len(gpus)},
        sources=(SOURCE,),
    )


def _first(gpus: list[AmdGpu]) -> dict[str, object]:
    gpu = gpus[0]
    named = {
        "gpus": 1,
        "gfx_activity_percent": gpu.now.get("gpu_gfx_activity"),
        "umc_activity_percent": gpu.now.get("gpu_umc_activity"),
        "power_w": power(gpu),
        "junction_c": gpu.now.get("gpu_junction_temperature"),
        "edge_c": gpu.now.get("gpu_edge_temperature"),
        "memory_c": gpu.now.get("gpu_memory_temperature"),
        "gfx_clock_mhz": min(gpu.clocks, default=None),
        "vram_used_mb": gpu.now.get("gpu_used_vram"),
        "vram_total_mb": gpu.now.get("gpu_total_vram"),
    }
    return {name: value for name, value in named.items() if value is not None}


def _units(mine: list[tuple[str, Series]]) -> Iterator[Finding]:
    energy = [s for bare, s in mine if bare == "gpu_energy_consumed" and s.last]
    ratios = [s for bare, s in mine if bare.startswith("gpu_prof_") and bare.endswith("_percent")]
    if not energy and not ratios:
        return
    parts = []
    if energy:
        joules = (energy[0].last or 0.0) / 1e6
        parts.append(
            f"{energy[0].name} is in microjoules ({number(round(joules))} J here), not in "
            "millijoules as NVIDIA's."
        )
    if ratios:
        parts.append(f"{listed(s.name for s in ratios)} is 0 to 100, not a ratio as DCGM's PROF.")
    yield finding(
        "amd_units",
        Severity.INFO,
        " ".join(parts),
        "Divide by 1e6 for joules, by 100 for ratios, before comparing with NVIDIA GPUs.",
        (energy or ratios)[0].line,
        {"energy_j": round((energy[0].last or 0.0) / 1e6)} if energy else {},
    )
