"""The series of one host, as node_exporter writes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Entity, Finding, Severity
from engine.readers.series import Series
from engine.signals.labels import node_entity

SOURCE = "prometheus/node_exporter 1.12 collectors"


@dataclass(slots=True)
class Host:
    """The series of one host, by name."""

    name: str
    series: dict[str, list[Series]] = field(default_factory=dict)

    def one(self, name: str) -> float | None:
        """The value of a metric that a host has once."""
        found = self.series.get(name)
        return found[0].last if found and len(found) == 1 else None

    def line(self, name: str) -> int:
        """Where a metric stands first."""
        return self.series[name][0].line

    @property
    def entity(self) -> Entity | None:
        """The host, None where no label names it."""
        return node_entity(self.name) if self.name else None

    @property
    def called(self) -> str:
        """How to call it in a sentence."""
        return self.name or "the host"


def finding(
    host: Host,
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    line: int,
    data: dict[str, object],
    cause: str | None = None,
) -> Finding:
    """Return a finding about a host."""
    return Finding(
        kind="metrics",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=host.entity,
        line=line,
        cause=cause,
        data=data,
        sources=(SOURCE,),
    )
