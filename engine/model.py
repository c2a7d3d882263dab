"""The shapes that cross module borders and reach users: entities, evidence, diagnoses, answers.

Plain dataclasses without third-party imports, so that ``gpuwhy decode`` starts fast. The JSON
form is made by `to_json`; the JSON Schemas are generated from these classes by `engine.schema`.
Times are Unix seconds (float), windows are seconds, every number carries its unit beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What an entity is."""

    GPU = "gpu"
    NODE = "node"
    JOB = "job"
    RANK = "rank"
    SERVICE = "service"
    POD = "pod"
    FILESYSTEM = "filesystem"
    FABRIC = "fabric"
    RACK = "rack"
    FLEET = "fleet"


class Class(StrEnum):
    """What sort of cause it is; order is the tie-break of ranking, worst first."""

    FAULT = "fault"
    LIMIT = "limit"
    WORKLOAD = "workload"
    VICTIM = "victim"
    BENIGN = "benign"
    BLIND = "blind"


class Severity(StrEnum):
    """How bad, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


class Confidence(StrEnum):
    """How sure, as a word with a written meaning.

    certain: the reading that defines the cause is itself there (a bit, a flag, a counter).
    likely: several independent readings agree, and none speaks against it.
    possible: the pattern fits, but a reading that would settle it is missing, or there was only
    one sample.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Verdict(StrEnum):
    """The one word about a target. ``unknown`` is never ``healthy``."""

    DEGRADED = "degraded"
    HEALTHY = "healthy"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Truth(StrEnum):
    """The three values of a condition."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that readings are about. ``name`` is unique within a cluster: ``node-3:5``."""

    kind: Kind
    name: str
    cluster: str | None = None
    host: str | None = None
    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    model: str | None = None
    mig: str | None = None
    namespace: str | None = None
    pod: str | None = None
    job: str | None = None
    rank: int | None = None
    service: str | None = None
    instance: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity for grouping and sorting: cluster, kind, name."""
        return (self.cluster or "", self.kind.value, self.shown)

    @property
    def shown(self) -> str:
        """The name as people read it: a mount that is one host's own says whose."""
        own = self.kind is Kind.FILESYSTEM and self.instance and self.instance == self.host
        return f"{self.name} on {self.host}" if own else self.name


Number = float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reading that decided something, with all that is needed to check it.

    ``op`` is the comparison as written (``>=``, ``has`` …); ``query`` is PromQL that shows the
    reading, empty for sources without one; ``source`` says where the threshold comes from.
    """

    signal: str
    says: str
    value: Number
    unit: str
    op: str
    threshold: Number
    window_s: float | None
    query: str
    source: str
    entity: Entity


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do next. ``risk``: none, disturbs (slows work) or disrupts (stops work)."""

    do: str
    command: str | None = None
    argv: tuple[str, ...] | None = None
    risk: str = "none"
    capture: str | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A cause that the readings do not exclude, and what would tell it from the one named."""

    cause: str
    told_apart_by: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """A consequence that hangs under its cause."""

    cause: str
    entity: Entity
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause that holds for an entity, with its proof. ``rule`` is ``id@version``."""

    cause: str
    title: str
    class_: Class
    entity: Entity
    severity: Severity
    confidence: Confidence
    says: str
    evidence: tuple[Evidence, ...]
    against: tuple[Evidence, ...] = ()
    effects: tuple[Effect, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    next: tuple[Step, ...] = ()
    since: float | None = None
    rule: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """What could not be seen: the signal missing, why, how to get it, and what it blocks."""

    cause: str
    needs: str
    why: str
    fix: str
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many cause rules there are, could be decided, fired, and could not be seen."""

    rules: int
    checked: int
    fired: int
    unseen: int


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine answered: its version, the hash of knowledge and rules, the inference used."""

    version: str
    rules: str
    inference: str


@dataclass(frozen=True, slots=True)
class Change:
    """Something about an entity that changed in the last day: a limit, a driver, its workload.

    ``before`` and ``after`` carry units, ``at`` is when it was first seen (Unix s).
    """

    what: str
    before: str
    after: str
    at: float
    entity: Entity
    says: str


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to ``gpuwhy why``."""

    target: Entity
    at: float | None
    window_s: float
    verdict: Verdict
    diagnoses: tuple[Diagnosis, ...]
    notes: tuple[Diagnosis, ...]
    unknown: tuple[Unknown, ...]
    coverage: Coverage
    engine: EngineInfo
    queries: int
    waves: int
    warnings: tuple[str, ...] = ()
    members: tuple[Entity, ...] = ()
    changes: tuple[Change, ...] = ()
    schema: str = field(default="gpuwhy/why/1")

    @property
    def causes(self) -> frozenset[str]:
        """The causes that were diagnosed, effects left out."""
        return frozenset(d.cause for d in self.diagnoses)


@dataclass(frozen=True, slots=True)
class Incident:
    """One root cause found by a sweep, and everything that hangs on it."""

    diagnosis: Diagnosis
    members: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The answer to ``gpuwhy sweep``. ``unseen`` lists entities without a verdict."""

    at: float | None
    window_s: float
    incidents: tuple[Incident, ...]
    checked: dict[str, int]
    verdicts: dict[str, int]
    unknown: tuple[Unknown, ...]
    engine: EngineInfo
    queries: int
    waves: int
    warnings: tuple[str, ...] = ()
    unseen: tuple[Entity, ...] = ()
    schema: str = field(default="gpuwhy/sweep/1")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that pasted text shows. ``data`` holds the decoded values, units in the names."""

    kind: str
    id: str
    severity: Severity
    says: str
    action: str
    entity: Entity | None
    line: int | None
    cause: str | None
    data: dict[str, Any]
    errata: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """The answer to ``gpuwhy read``."""

    kinds: tuple[str, ...]
    findings: tuple[Finding, ...]
    causes: tuple[str, ...]
    unread_lines: int
    errata: tuple[str, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    schema: str = field(default="gpuwhy/read/1")


@dataclass(frozen=True, slots=True)
class Item:
    """One decoded thing. Fields that do not apply are None and left out of JSON."""

    id: str
    name: str
    meaning: str
    class_: str | None = None
    severity: str | None = None
    action: str | None = None
    bit: int | None = None
    unit: str | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to read what was given to ``decode``."""

    kind: str
    value: Number
    items: tuple[Item, ...]
    unknown_bits: int = 0
    errata: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decode:
    """The answer to ``gpuwhy decode``; ``nearest`` offers names when nothing matched."""

    input: str
    candidates: tuple[Candidate, ...]
    nearest: tuple[str, ...] = ()
    schema: str = field(default="gpuwhy/decode/1")


_DROP_NONE = (Entity, Item)


def to_json(value: Any) -> Any:
    """Turn a model object into plain JSON types, ``schema`` first, ``class_`` written ``class``.

    Entities and decoded items leave out what is not known; all other keys are always there.
    Infinite and NaN numbers become None (JSON has no spelling for them).
    """
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, Incident):
            return {**to_json(value.diagnosis), "members": to_json(value.members)}
        out: dict[str, Any] = {}
        if hasattr(value, "schema"):
            out["schema"] = value.schema
        drop = isinstance(value, _DROP_NONE)
        for f in fields(value):
            item = getattr(value, f.name)
            if f.name == "schema" or (drop and item is None):
                continue
            out[f.name.rstrip("_")] = to_json(item)
        return out
    msg = f"not a JSON value: {type(value).__name__}"
    raise TypeError(msg)
