"""Incidents and looks built by hand, for tests of watches."""

from __future__ import annotations

from collections.abc import Iterable

from engine.history import Holds, Sight
from engine.model import (
    Class,
    Confidence,
    Diagnosis,
    EngineInfo,
    Entity,
    Incident,
    Kind,
    Severity,
    Sweep,
)

NOW = 1_800_000_000.0
WATCH = "http://prometheus:9090"
HOLDS = Holds(open_s=120.0, resolve_s=300.0, quiet_s=3600.0, forget_s=86400.0)
AT_ONCE = Holds(open_s=0.0, resolve_s=0.0, quiet_s=3600.0, forget_s=86400.0)


def named(name: str) -> Entity:
    """Return a GPU (node-1:0), a job, a rack or a node by its name."""
    kind, slash, rest = name.partition("/")
    if slash:
        return Entity(Kind(kind), name, job=rest if kind == "job" else None)
    return gpu(name) if ":" in name else Entity(Kind.NODE, name, host=name)


def gpu(name: str = "node-1:0") -> Entity:
    host, _, index = name.partition(":")
    return Entity(Kind.GPU, name, host=host, gpu=int(index), uuid=f"GPU-{name}")


def incident(
    name: str = "node-1:0",
    cause: str = "power_brake",
    *,
    members: Iterable[str] = (),
    severity: Severity = Severity.HIGH,
    confidence: Confidence = Confidence.CERTAIN,
    says: str = "it is slow",
) -> Incident:
    entity = named(name)
    diagnosis = Diagnosis(
        cause=cause,
        title=cause.replace("_", " "),
        class_=Class.FAULT,
        entity=entity,
        severity=severity,
        confidence=confidence,
        says=says,
        evidence=(),
        rule=f"{cause}@1",
    )
    return Incident(diagnosis, tuple(gpu(m) for m in members) or (entity,))


def sweep(*incidents: Incident, unseen: Iterable[Entity] = ()) -> Sweep:
    return Sweep(
        at=None,
        window_s=900.0,
        incidents=incidents,
        checked={"gpu": 8, "node": 1},
        verdicts={},
        unknown=(),
        engine=EngineInfo("0", "0", "reference"),
        queries=0,
        waves=0,
        unseen=tuple(unseen),
    )


def sight(*incidents: Incident, unread: Iterable[str] = ()) -> Sight:
    return Sight(sweep(*incidents), frozenset(gpu(name).key for name in unread))
