"""What the parts of a service's judgement share: limits, findings, counts."""

from __future__ import annotations

from typing import Any

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Severity
from engine.readers.serving.load import Load

# Requests below which shares say nothing.
FEW = 20


class Limits:
    """The thresholds of ``knowledge/thresholds.yaml``, by name."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._limits = catalogue.limits

    def __getitem__(self, name: str) -> float:
        """Return a threshold."""
        return self._limits[name].value

    def source(self, *names: str) -> tuple[str, ...]:
        """Return where thresholds come from."""
        return tuple(self._limits[name].origin for name in names)


def finding(
    load: Load,
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    *,
    cause: str | None = None,
    entity: Entity | None = None,
    more: dict[str, Any] | None = None,
    sources: tuple[str, ...] = (),
) -> Finding:
    """Return a finding about a service."""
    return Finding(
        kind="serving",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=entity or load.entity,
        line=load.line,
        cause=cause,
        data={"server": load.server} | (more or {}),
        sources=sources,
    )


def crowded(load: Load, limits: Limits) -> bool:
    """Return whether a queue stands in front of the engines, by their number."""
    return any(value >= limits["queue_waiting"] for _, value in load.having("waiting"))


def mean_of(load: Load, quantity: str) -> float | None:
    """Return the mean of a histogram, None without one."""
    histogram = load.histograms.get(quantity)
    return histogram.mean if histogram else None


def counted(load: Load, quantity: str) -> float:
    """Return a counter's growth between scrapes, its total with one scrape, 0 without either."""
    grown = load.growth(quantity)
    return grown if grown is not None else (load.total(quantity) or 0.0)


def includes_failed(load: Load) -> bool:
    """Return whether finished requests include failed ones (vLLM, SGLang, Dynamo)."""
    return load.server in {"vllm", "dynamo", "sglang"}
