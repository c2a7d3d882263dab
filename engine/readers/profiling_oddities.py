"""What is odd about profiling readings of dcgm-exporter: long averages, silent zeros, gaps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected, Series, is_profiling
from engine.readers.value_oddities import listed
from engine.signals.labels import gpu_entity
from engine.units import number, quantity

# Above this a GPU counts as busy (percent of the driver's sample period).
_BUSY = 50.0
# An average over idle hours pulls a busy instance below this.
_LOW = 0.5
# Series that come and go by design: the first Xid, the first clock event.
_SPARSE = ("XID", "_EXP_", "VGPU", "CLOCK_EVENTS")
_WITHOUT = re.compile(r"GeForce (?!RTX 50\d\d)|\bTesla [MPK]\d|\bQuadro [MPK]\d")
_Key = tuple[tuple[str, str], str | None]


def profiling_oddities(collected: Collected, _catalogue: Catalogue) -> Iterator[Finding]:
    """Yield a finding for each oddity of the profiling readings."""
    yield from _averages(collected)
    yield from _zeros(collected)
    yield from _gaps(collected)
    yield from _unsupported(collected)


def averaged(collected: Collected) -> list[Series]:
    """Return ratios of MIG instances that old exporters averaged over their whole uptime."""
    return [
        s
        for s in collected.of("gr_engine_active")
        if s.place.mig
        and s.count == 1
        and s.value is not None
        and 0 < s.value < _LOW
        # Labels that exporters have since 3.3.7-3.5.0 and 4.6.0-4.8.3: those do not average.
        and not {"pci_bus_id", "hostname"} & s.labels.keys()
    ]


def _averages(collected: Collected) -> Iterator[Finding]:
    low = averaged(collected)
    if not low:
        return
    first = low[0]
    assert first.value is not None  # filtered above
    yield Finding(
        kind="metrics",
        id="mig_average",
        severity=Severity.INFO,
        says=(
            f"{first.name} reads {number(first.value)} on MIG instance {first.place.mig}"
            + (f" (and {len(low) - 1} more are low)" if len(low) > 1 else "")
            + ". Old exporters (seen with 2.3.6-2.6.6) averaged profiling metrics of MIG "
            "instances over the exporter's whole uptime: then a low value is an artefact and does "
            "not mean that the instance is idle or under-used now."
        ),
        action=(
            "Restart dcgm-exporter and read again: if the value jumps, it was such an average; "
            "then upgrade the exporter. dcgmi dmon -e 1001 shows the value of now."
        ),
        entity=gpu_entity([s.place for s in low]) if len({s.place.key for s in low}) == 1 else None,
        line=first.line,
        cause=None,
        data={"gr_engine_active": first.value, "mig": first.place.mig},
        sources=("NVIDIA/dcgm-exporter issue 68",),
    )


def _zeros(collected: Collected) -> Iterator[Finding]:
    """Profiling at 0 on a GPU that the driver calls busy."""
    busy = {
        s.place.key: s for s in collected.of("gpu_util") if s.value is not None and s.value >= _BUSY
    }
    zero: dict[tuple[str, str], list[Series]] = {}
    for series in collected.of("gr_engine_active", "sm_active"):
        if series.place.key in busy and not series.place.mig and series.highest == 0:
            zero.setdefault(series.place.key, []).append(series)
    if not zero:
        return
    key, found = next(iter(zero.items()))
    util = busy[key].value or 0.0
    entity = gpu_entity([s.place for s in found])
    yield Finding(
        kind="metrics",
        id="profiling_zero",
        severity=Severity.MEDIUM,
        says=(
            f"{listed(s.name for s in found)} reads 0 on {entity.name} while its utilisation is "
            f"{quantity(util, 'percent')}"
            + (f" (likewise on {len(zero) - 1} more GPUs)" if len(zero) > 1 else "")
            + ": both cannot be; profiling is silently not collected, so the zeros say nothing."
        ),
        action=(
            "Run dcgmi dmon -e 1001 -c 1 in the exporter's container (it starts profiling again), "
            "or restart the exporter; look for another profiler that holds the counters."
        ),
        entity=entity if len(zero) == 1 else None,
        line=found[0].line,
        cause="profiling_paused",
        data={"gpu_util_percent": util, "gpus": len(zero)},
        sources=("NVIDIA/dcgm-exporter issue 662",),
    )


def _unsupported(collected: Collected) -> Iterator[Finding]:
    """GPUs of which DCGM reads no profiling metrics, in a text without any."""
    found = [s for s in collected.series.values() if _WITHOUT.search(s.place.model or "")]
    if not found or any(is_profiling(s.name) for s in collected.series.values()):
        return
    yield Finding(
        kind="metrics",
        id="no_profiling",
        severity=Severity.INFO,
        says=(
            f"{listed(s.place.model or '' for s in found)}: DCGM has no profiling metrics "
            "(DCGM_FI_PROF_*) for GeForce cards before Blackwell (RTX 50) and for GPUs before "
            "Volta, so none of them will show up here: not supported, no fault of the exporter."
        ),
        action="Use DCGM_FI_DEV_GPU_UTIL and power draw; profile with Nsight for more.",
        entity=None,
        line=found[0].line,
        cause=None,
        data={"models": list(dict.fromkeys(s.place.model for s in found))[:16]},
        sources=("NVIDIA/dcgm-exporter issues 152, 294 and 404", "NVIDIA/DCGM issue 234"),
    )


def _gaps(collected: Collected) -> Iterator[Finding]:
    """Metrics that most GPUs or MIG instances of a text have and some lack."""
    by_model: dict[str, dict[_Key, set[str]]] = {}
    for series in collected.series.values():
        if not series.name.upper().startswith("DCGM_F") or not series.place.key[1]:
            continue
        if any(word in series.name.upper() for word in _SPARSE):
            continue
        owners = by_model.setdefault(series.place.model or "", {})
        owners.setdefault((series.place.key, series.place.mig), set()).add(series.name)
    for owners in by_model.values():
        yield from _missing(collected, owners)


def _missing(collected: Collected, owners: dict[_Key, set[str]]) -> Iterator[Finding]:
    kinds = {mig is None for _, mig in owners}
    if len(owners) < 2 or len(kinds) > 1:
        return  # whole GPUs and instances of them have different metrics by design
    counts: dict[str, int] = {}
    for names in owners.values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    lacking = {
        name: [owner for owner, names in owners.items() if name not in names]
        for name, count in counts.items()
        if len(owners) / 2 < count < len(owners)
    }
    if not lacking:
        return
    name, missing = next(iter(lacking.items()))
    places = {(s.place.key, s.place.mig): s.place for s in collected.series.values()}
    who = [
        gpu_entity([places[owner]]).name + (f" (MIG {owner[1]})" if owner[1] else "")
        for owner in missing
    ]
    profiling = any(is_profiling(n) for n in lacking)
    yield Finding(
        kind="metrics",
        id="partly_missing",
        severity=Severity.LOW,
        says=(
            f"{listed(lacking)} {'is' if len(lacking) == 1 else 'are'} there for most GPUs of this "
            f"text but not for {listed(who)}: what is missing cannot be judged, and absent is not "
            "zero."
        ),
        action=(
            "Look into the exporter's log; restart the exporter. With MIG some exporters lose "
            "profiling metrics of single instances: upgrade."
            if profiling
            else "Look into the exporter's log, and whether that GPU answers: nvidia-smi -i INDEX."
        ),
        entity=None,
        line=None,
        cause="metrics_missing",
        data={"metrics": list(lacking)[:64], "missing_on": who[:64], "metric": name},
        sources=("NVIDIA/dcgm-exporter issues 507 and 512",),
    )
