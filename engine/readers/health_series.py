"""Results of DCGM's health checks in exporter text: which watch warns or fails, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected, Series, tidy
from engine.signals.labels import gpu_entity

_WARN, _FAIL = 10, 20
# What a watch that fails points at, where no error code says more.
_CAUSES: Mapping[str, str] = {
    "PCIE": "pcie_errors",
    "NVLINK": "nvlink_errors",
    "MEM": "ecc_uncorrectable",
    "NVSWITCH_FATAL": "nvswitch_fault",
    "NVSWITCH_NONFATAL": "nvswitch_fault",
}


def health_checks(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield each watch that does not pass; one finding where all pass."""
    series = [s for s in collected.of("gpu_health_status") if s.last is not None]
    bad = [s for s in series if (s.last or 0) >= _WARN]
    # ALL repeats what the single watches say.
    named = [s for s in bad if _watch(s) != "ALL"] or bad
    for one in named:
        yield _failed(one, catalogue)
    if series and not bad:
        yield Finding(
            kind="metrics",
            id="health_pass",
            severity=Severity.INFO,
            says=f"DCGM's health checks pass ({len(series)} series at 0).",
            action="Nothing to do.",
            entity=None,
            line=series[0].line,
            cause=None,
            data={"health_checks": len(series)},
        )


def _failed(series: Series, catalogue: Catalogue) -> Finding:
    entity = gpu_entity([series.place])
    code = series.labels.get("health_error_code", "")
    entry = _entry(code, catalogue)
    fails = (series.last or 0) >= _FAIL
    watch = _watch(series)
    says = f"DCGM's health check {watch} of {entity.name} {'fails (20)' if fails else 'warns (10)'}"
    says += f": {tidy(code)}." if code else "."
    if entry:
        says += f" {entry['meaning']}"
    cause = entry.get("taxonomy") if entry else _CAUSES.get(watch) if fails else None
    return Finding(
        kind="metrics",
        id="health_check",
        severity=Severity.HIGH if fails else Severity.LOW,
        says=says,
        action=str(entry["action"])
        if entry
        else "Run dcgmi health -c and dcgmi diag -r 1 on the node for the reason.",
        entity=entity,
        line=series.line,
        cause=cause,
        data={"health_watch": watch, "health": "fail" if fails else "warn", "health_code": code},
        sources=("NVIDIA/dcgm-exporter internal/pkg/collector/gpu_health_collector.go",),
    )


def _watch(series: Series) -> str:
    return tidy(series.labels.get("health_watch", "")) or "ALL"


def _entry(code: str, catalogue: Catalogue) -> Mapping[str, Any] | None:
    for entry in catalogue.entries.get("dcgm_errors", {}).values():
        if code and code in {entry["name"], str(entry["id"])}:
            return entry
    return None
