"""The shapes of the answer to "why did this rule not fire?"."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.model import Confidence, EngineInfo, Entity, Number, Truth


class Outcome(StrEnum):
    """How a rule came out for an entity.

    fired: it fired, and is told. follows: it holds, and is told beneath its cause. held_back: it
    holds, and is not told, as ``says`` explains. quiet: it does not hold. unknown: a reading is
    missing that would decide. not_applicable: no such entity belongs to the target, or no exporter
    has the readings for it. disabled: an overlay switches it off.
    """

    FIRED = "fired"
    FOLLOWS = "follows"
    HELD_BACK = "held_back"
    UNKNOWN = "unknown"
    QUIET = "quiet"
    NOT_APPLICABLE = "not_applicable"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Decided:
    """A comparison that decided a symptom, with the number it saw; ``query`` shows the reading."""

    signal: str
    says: str
    truth: Truth
    value: Number
    unit: str
    op: str
    threshold: Number
    window_s: float | None
    query: str
    source: str


@dataclass(frozen=True, slots=True)
class Lack:
    """A reading that is missing: why, and the line or setting that would bring it."""

    signal: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Part:
    """One reference of a pattern.

    Attributes:
        role: ``all``, ``any``, ``none`` or ``unless``; ``itself`` for a symptom asked about.
        ref: the symptom, or ``cause/ID``.
        truth: as observed or derived.
        state: ``met``, ``blocks`` or ``open`` (unknown, and that matters).
        note: what the comparisons do not tell, such as a hold time.
        decided: the comparisons that decided it.
        lacks: what is missing, if it is unknown.
    """

    role: str
    ref: str
    truth: Truth
    state: str
    note: str = ""
    decided: tuple[Decided, ...] = ()
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternCheck:
    """One pattern of a cause, numbered from 1; ``state`` is ``holds``, ``blocked`` or ``open``."""

    number: int
    confidence: Confidence | None
    state: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """How the rule came out for one entity, and why."""

    entity: Entity
    outcome: Outcome
    says: str
    patterns: tuple[PatternCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer to ``gpuwhy rules why-not``.

    Attributes:
        rule: ``id@version``, or the id of a rule that is switched off.
        kind: ``cause`` or ``symptom``.
        outcome: the most telling of those of ``checks``.
        checks: one for each entity of the target that the rule is about.
        disabled_by: the overlay file that switches the rule off, empty if none does.
        goes_without: what its patterns refer to and an overlay switches off, with the file.
        members: the entities of ``checks``.
    """

    rule: str
    kind: str
    title: str
    target: Entity | None
    at: float | None
    window_s: float
    outcome: Outcome
    says: str
    checks: tuple[RuleCheck, ...]
    disabled_by: str
    goes_without: tuple[str, ...]
    engine: EngineInfo
    queries: int
    warnings: tuple[str, ...] = ()
    members: tuple[Entity, ...] = ()
    schema: str = field(default="gpuwhy/rules-why-not/1")
