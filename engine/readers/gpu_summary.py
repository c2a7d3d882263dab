"""What GPU metrics in exporter text read, in one sentence: also where nothing is odd about them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from engine.model import Finding, Severity
from engine.readers.series import Collected, Series
from engine.readers.value_oddities import listed
from engine.signals.labels import gpu_entity
from engine.units import duration, number, quantity

# Told elsewhere, with what they mean: codes, masks, links' rates, samples in a window.
_ELSEWHERE = frozenset(
    {
        *("xid", "xid_count", "throttle_reasons", "energy", "pods", "mig_instances"),
        *("pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_bytes", "nvlink_rx_bytes"),
        *("nvlink_bandwidth", "fabric_health", "fabric_manager_status", "gpu_health_status"),
    }
)
# Up to this many different values stand in the sentence one by one; more become a range.
_EACH = 4
_MAX_QUANTITIES = 16
# A ratio beyond this was written as percent.
_PERCENT_FROM = 1.5


def gpu_summary(collected: Collected) -> Iterator[Finding]:
    """Yield the readings of the GPUs of a text: values, or their ranges, and counters at 0."""
    mine = [
        s
        for s in collected.series.values()
        if s.place.key[1]
        and s.count
        and (collected.field(s.name) if s.signal is None else s.signal.scope == "gpu")
    ]
    if not mine:
        return
    by_signal: dict[str, list[Series]] = {}
    for series in mine:
        if series.signal is not None and not _elsewhere(series.signal.id):
            by_signal.setdefault(series.signal.id, []).append(series)
    shown, zero, data = _readings(by_signal)
    shown += _others(collected)
    no_xid = [s for s in mine if s.signal and s.signal.id == "xid"]
    quiet = bool(no_xid) and not any(s.highest for s in no_xid)
    if quiet:
        shown.append(f"no Xid (the gauge reads 0 on {_gpus(len({s.place.key for s in no_xid}))})")
    if zero:
        shown.append(f"at 0: {listed(zero)}")
    if not shown:
        return
    places = {s.place.key: s.place for s in mine}
    one = len(places) == 1
    entity = gpu_entity([s.place for s in mine]) if one else None
    pods = list(dict.fromkeys(s.place.workload for s in mine if s.place.workload))
    more: dict[str, object] = {"physical_gpus": len(places), "readings": data}
    if pods:
        more["pods"] = len(pods)
    yield Finding(
        kind="metrics",
        id="readings",
        severity=Severity.INFO,
        says=f"Readings of {entity.name if entity else _gpus(len(places))}{_who(mine)}: "
        + "; ".join(shown)
        + ".",
        action="Compare with the same GPU under its usual load; a rise of a counter needs a "
        "second scrape.",
        entity=entity,
        line=mine[0].line,
        cause=None,
        data=more,
    )


def _elsewhere(signal: str) -> bool:
    return signal in _ELSEWHERE or signal.endswith("_events")


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _who(mine: list[Series]) -> str:
    """Models, jobs and pods of these GPUs."""
    models = list(dict.fromkeys(s.place.model for s in mine if s.place.model))
    jobs = list(dict.fromkeys(s.place.job for s in mine if s.place.job))
    pods = list(dict.fromkeys(s.place.workload[1] for s in mine if s.place.workload))
    parts = [listed(models)] if models else []
    parts += [f"job {listed(jobs)}"] if jobs else []
    parts += [f"pod {listed(pods)}"] if pods else []
    return f" ({', '.join(parts)})" if parts else ""


def _readings(by_signal: dict[str, list[Series]]) -> tuple[list[str], list[str], dict[str, object]]:
    shown: list[str] = []
    zero: list[str] = []
    data: dict[str, object] = {}
    for signal, series in by_signal.items():
        values = [s.value for s in series if s.value is not None and isfinite(s.value)]
        first = series[0].signal
        if first is None or not values:
            continue
        if first.unit == "ratio" and max(values) > _PERCENT_FROM:
            values = [value / 100 for value in values]
        data[signal] = values[0] if len(values) == 1 else [min(values), max(values)]
        if not any(values) and (first.kind == "counter" or first.unit in {"bool", "count"}):
            zero.append(first.title)
            continue
        if len(shown) < _MAX_QUANTITIES:
            total = " since the driver was loaded" if first.unit == "ns" else ""
            shown.append(f"{first.title} {_values(series, values, first.unit)}{total}")
    return shown, zero, data


def _others(collected: Collected) -> list[str]:
    """Fields of DCGM that no rule needs, under their titles."""
    found: dict[str, list[Series]] = {}
    for series in collected.series.values():
        if series.signal is None and series.last is not None and collected.field(series.name):
            found.setdefault(series.name, []).append(series)
    shown = []
    for name, group in list(found.items())[:_MAX_QUANTITIES]:
        entry = collected.field(name) or {}
        unit = str(entry.get("unit", "count"))
        values = [s.last for s in group if s.last is not None and isfinite(s.last)]
        if not values:
            continue
        shown.append(f"{entry.get('title', name)} {_values(group, values, unit)}")
    return shown


def _values(series: list[Series], values: list[float], unit: str) -> str:
    if len(set(values)) == 1:
        return _written(values[0], unit)
    if len(values) > _EACH:
        return f"{_written(min(values), unit)} to {_written(max(values), unit)}"
    gpus = [s.place.gpu for s in series]
    told = None not in gpus and len(set(gpus)) == len(values)
    return ", ".join(
        f"{_written(value, unit)}{f' (GPU {gpu})' if told else ''}"
        for value, gpu in zip(values, gpus, strict=False)
    )


def _written(value: float, unit: str) -> str:
    if unit == "ns":
        seconds = value / 1e9
        return f"{number(seconds)} s" if seconds < 600 else duration(seconds)
    return quantity(value, unit)
