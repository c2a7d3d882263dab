"""What is odd about the values of exporter text: blanks, impossible samples, units, Xid series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.error_series import ecc_counts, sxid_gauges
from engine.readers.link_rates import link_rates, resting_links
from engine.readers.series import Collected, Series, is_profiling
from engine.readers.throttle import Around, throttle_finding
from engine.readers.xid_series import xid_counts, xid_gauges
from engine.signals.clean import FP64_BLANK, INT32_BLANK, INT64_BLANK
from engine.signals.labels import gpu_entity
from engine.units import number, quantity

_BASES = {"FP64": int(FP64_BLANK), "INT64": INT64_BLANK, "INT32": int(INT32_BLANK)}
# What each marker means, in the order in which they count up from the base.
_MEANS = {
    "BLANK": "no reading",
    "NOT_FOUND": "not found",
    "NOT_SUPPORTED": "not supported on this GPU",
    "NOT_PERMISSIONED": "not permitted",
}
# Ratios are 0 to 1; rounding and counter skew stay far below this.
_PERCENT_FROM = 1.5
_MAX_NAMED = 6
# From here on a number is written with its exponent, but for the largest one of 64 bits.
_LONG = 2e19
# Why a sample can be no reading of this quantity, and what to add after the number.
_IMPOSSIBLE = {
    "UINT32_MAX": " (UINT32 maximum, 2^32 - 1)",
    "UINT64_MAX": " (UINT64 maximum)",
    "out of range": "",
}


def value_oddities(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield a finding for each oddity of the values."""
    yield from _blanks(collected)
    yield from _impossible(collected)
    yield from _valueless(collected)
    yield from xid_counts(collected, catalogue)
    yield from xid_gauges(collected, catalogue)
    yield from sxid_gauges(collected, catalogue)
    yield from ecc_counts(collected)
    yield from _masks(collected, catalogue)
    yield from _percent(collected)
    yield from link_rates(collected)
    yield from resting_links(collected)


def listed(names: Iterable[str]) -> str:
    """Write names for a sentence, the first few of them."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _MAX_NAMED} more" if len(unique) > _MAX_NAMED else ""
    return ", ".join(unique[:_MAX_NAMED]) + more


def _blanks(collected: Collected) -> Iterator[Finding]:
    blank: dict[str, list[Series]] = {}
    for series in collected.series.values():
        for why in series.bad:
            if why.startswith(("FP64_", "INT64_", "INT32_")):
                blank.setdefault(why, []).append(series)
    if not blank:
        return
    total = sum(s.bad[why] for why, found in blank.items() for s in found)
    are = "s are" if total > 1 else " is"
    parts = [f"{total} sample{are} blank: DCGM's marker for no reading, not a value."]
    for why, found in blank.items():
        kind, _, suffix = why.partition("_")
        marker = _BASES[kind] + list(_MEANS).index(suffix)
        power = " = 2^47" if marker == FP64_BLANK else ""
        parts.append(
            f"{why} ({marker}{power}, {_MEANS[suffix]}) in {listed(s.name for s in found)}."
        )
    parts.append("Drop such samples before any arithmetic.")
    real = [s for s in collected.series.values() if s.count and not s.bad and s.signal]
    if real:
        shown = [
            f"{s.signal.title} {quantity(s.value, s.unit)}"
            for s in real[:3]
            if s.signal is not None and s.value is not None
        ]
        parts.append(f"Real readings beside them: {', '.join(shown)}.")
    all_series = [s for found in blank.values() for s in found]
    profiling = [s for s in all_series if is_profiling(s.name)]
    cause: str | None = None
    action = "Leave these series out of averages and alerts; nothing else is wrong with them."
    if profiling and not any(s.count for s in collected.series.values() if is_profiling(s.name)):
        refused = all("NOT_" in why for s in profiling for why in s.bad)
        cause = "metrics_missing" if refused else "profiling_paused"
        parts.append(
            "Every profiling (PROF) reading is blank: profiling is not being collected on this "
            "GPU, so nothing can be said of its SMs, tensor pipes or memory traffic."
        )
        action = (
            "Check whether another profiler (ncu, nsys, CUPTI, a second host engine) holds the "
            "profiling counters or DCGM was left paused (dcgmi profile --resume); then the driver "
            "and DCGM versions, the profiling module and the permissions of the exporter."
        )
    elif all(not s.count for s in collected.series.values()):
        cause = "no_data"
    names = list(blank)
    data: dict[str, object] = {"sentinels": names, "blank_samples": total}
    if len(names) == 1:
        data["sentinel"] = names[0]
    yield Finding(
        kind="metrics",
        id="blank",
        severity=Severity.MEDIUM if cause else Severity.LOW,
        says=" ".join(parts),
        action=action,
        entity=gpu_entity([all_series[0].place]) if _one_gpu(all_series) else None,
        line=all_series[0].line,
        cause=cause,
        data=data,
        sources=("NVIDIA/DCGM dcgmlib/dcgm_structs.h 4.6.0 (blank values)",),
    )


def _impossible(collected: Collected) -> Iterator[Finding]:
    for series in collected.series.values():
        hits = {w: n for w, n in series.bad.items() if w in _IMPOSSIBLE}
        if series.signal is None:
            hits.pop("out of range", None)
        if not hits or series.bad_value is None or (not series.signal and _foreign(series)):
            continue
        count = sum(hits.values())
        marker = next((_IMPOSSIBLE[w] for w in hits), "")
        title = series.signal.title if series.signal else series.name
        written = _written(series.bad_value)
        says = f"{series.name}: the sample {written}{marker} is corrupt"
        if series.signal and series.signal.kind == "code" and series.bad_value % 1:
            says += ": a fraction is no code"
        elif series.signal and series.signal.low is not None and series.signal.high is not None:
            low, high = series.signal.low, series.signal.high
            says += f", outside its range of {number(low)} to {quantity(high, series.unit)}"
        says += f" ({count} such samples)." if count > 1 else "."
        if series.value is not None:
            says += (
                f" The {series.count} good sample{'s read' if series.count > 1 else ' reads'}: "
                f"{title} {quantity(series.value, series.unit)}."
            )
        yield Finding(
            kind="metrics",
            id="impossible_value",
            severity=Severity.LOW,
            says=says,
            action=(
                "Drop samples out of range before averaging: one of them ruins any mean. DCGM is "
                "known to publish them."
            ),
            entity=gpu_entity([series.place]),
            line=series.line,
            cause=None,
            data={
                "metric": series.name,
                "bad_value": series.bad_value,
                "bad_samples": count,
                "good_samples": series.count,
                "last": series.value,
            },
            sources=("NVIDIA/DCGM issue 199", "NVIDIA/dcgm-exporter issue 418"),
        )


def _written(value: float) -> str:
    if not isfinite(value):
        return "infinity"
    return number(value) if abs(value) < _LONG else f"{value:.6g}"


def _valueless(collected: Collected) -> Iterator[Finding]:
    if not collected.valueless:
        return
    count = sum(collected.valueless.values())
    kept = sum(s.count for s in collected.series.values())
    says = (
        f"{count} line{'s have' if count > 1 else ' has'} no value and "
        f"{'are' if count > 1 else 'is'} skipped: {listed(collected.valueless)}. The rest is kept"
        f" ({kept} sample{'' if kept == 1 else 's'})."
    )
    old = all(name.startswith("dcgm_") for name in collected.valueless)
    if old:
        says += (
            " A known bug of the text-file exporter of DCGM 1.4: an overflow while it printed "
            "large counters."
        )
    yield Finding(
        kind="metrics",
        id="no_value",
        severity=Severity.LOW,
        says=says,
        action="Upgrade to dcgm-exporter." if old else "Look whether the text was cut.",
        entity=None,
        line=collected.valueless_line,
        cause=None,
        data={"lines_without_value": count, "metrics": list(collected.valueless)[:64]},
        sources=("NVIDIA/gpu-monitoring-tools issue 4",) if old else (),
    )


def _masks(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    masks: dict[int, list[Series]] = {}
    for series in collected.of("throttle_reasons"):
        if series.value is not None and series.value >= 0:
            masks.setdefault(int(series.value), []).append(series)
    for mask, found in masks.items():
        gpus = list(dict.fromkeys(s.place.key for s in found))
        entity = gpu_entity([s.place for s in found]) if len(gpus) == 1 else None
        subject = entity.name if entity else f"{len(gpus)} GPUs"
        around = _around(collected, gpus[0]) if len(gpus) == 1 else Around()
        finding = throttle_finding(
            mask, around, catalogue, entity=entity, subject=subject, line=found[0].line
        )
        finding.data["physical_gpus"] = len(gpus)
        yield finding


_AROUND = {
    "gpu_temp": "gpu_temp_c",
    "gpu_temp_margin": "margin_c",
    "gpu_max_op_temp": "max_op_temp_c",
    "memory_temp": "memory_temp_c",
    "memory_max_op_temp": "memory_max_op_temp_c",
    "power_usage": "power_w",
    "enforced_power_limit": "power_limit_w",
    "power_limit_default": "power_limit_default_w",
    "sm_clock": "sm_clock_mhz",
    "max_sm_clock": "max_sm_clock_mhz",
}


def _around(collected: Collected, key: tuple[str, str]) -> Around:
    around = Around()
    for series in collected.of(*_AROUND):
        if series.place.key == key and series.value is not None and series.signal is not None:
            setattr(around, _AROUND[series.signal.id], series.value)
    return around


def _percent(collected: Collected) -> Iterator[Finding]:
    scaled = [
        s
        for s in collected.series.values()
        if s.signal is not None and s.unit == "ratio" and s.highest * s.scale > _PERCENT_FROM
    ]
    if not scaled:
        return
    yield Finding(
        kind="metrics",
        id="ratio_in_percent",
        severity=Severity.INFO,
        says=(
            f"{listed(s.name for s in scaled)} should be a ratio from 0 to 1 but reads up to "
            f"{number(max(s.highest for s in scaled))}: this exporter writes percent under the "
            "ratio's name."
        ),
        action="Divide by 100 before comparing with ratios; look for a scaling rule in the scrape.",
        entity=None,
        line=scaled[0].line,
        cause=None,
        data={"metrics": list(dict.fromkeys(s.name for s in scaled))},
        sources=("NVIDIA/DCGM dcgmlib/dcgm_fields.h 4.6.0 (PROF fields are ratios)",),
    )


def _foreign(series: Series) -> bool:
    """Whether a series is AMD's, whose markers are told together (`engine.readers.amd_series`)."""
    return "gpu_partition_id" in series.labels or "card_model" in series.labels


def _one_gpu(series: Iterable[Series]) -> bool:
    return len({s.place.key for s in series}) == 1
