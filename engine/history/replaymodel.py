"""The shapes of a backtest: when rules would have fired, and how two versions of them differ.

Moments are Unix seconds, lengths of time are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.model import Confidence, EngineInfo, Entity


class Ended(StrEnum):
    """Why a firing ended where it did.

    over: the rule was false. unknown: a reading went missing. gone: the entity was not there any
    more. unread: the source did not answer. goes_on: it fired to the end of what was replayed.
    """

    OVER = "over"
    UNKNOWN = "unknown"
    GONE = "gone"
    UNREAD = "unread"
    GOES_ON = "goes_on"


class Difference(StrEnum):
    """How the firings of a rule on an entity differ in the other version."""

    NEW = "new"
    GONE = "gone"
    LONGER = "longer"
    SHORTER = "shorter"


@dataclass(frozen=True, slots=True)
class Firing:
    """A span in which a rule fired at every moment that was judged.

    Attributes:
        rule: the id.
        entity: what it is said of.
        start: the first moment at which it fired.
        end: the last one.
        lasted_s: moments times step, so that one moment alone lasts one step (s).
        confidence: the best word in that span; None for a symptom.
        from_before: it fired already at the first moment, of the span or after a gap in it.
        ended: why it ended.
    """

    rule: str
    entity: Entity
    start: float
    end: float
    lasted_s: float
    confidence: Confidence | None
    from_before: bool
    ended: Ended


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """One rule over the whole span.

    ``looks`` counts entities times moments, ``unknown`` those of them at which it could not be
    decided; ``lasted_s`` and ``longest_s`` are of its firings (s).
    """

    rule: str
    kind: str
    title: str
    firings: int
    entities: int
    lasted_s: float
    longest_s: float
    looks: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Change:
    """What differs for one rule on one entity: the firings before and after that overlap."""

    difference: Difference
    rule: str
    entity: Entity
    before: tuple[Firing, ...]
    after: tuple[Firing, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """What sweeping these rules every minute would ask of the metrics server.

    Attributes:
        queries_a_sweep: requests of one sweep, as long as the fleet fits into one.
        queries_a_day: the same 1,440 times.
        series: metrics times entities that were read at the most.
        samples_a_day: samples that a server would have to read for it in a day.
    """

    queries_a_sweep: int
    queries_a_day: int
    series: int
    samples_a_day: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A span that could not be read, or metrics of it: what, and why."""

    start: float
    end: float
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the rules, replayed; ``left_out`` counts firings beyond those listed."""

    hash: str
    rules: tuple[RuleHistory, ...]
    firings: tuple[Firing, ...]
    left_out: int
    load: Load


@dataclass(frozen=True, slots=True)
class Backtest:
    """The answer to ``gpuwhy rules backtest``.

    Attributes:
        source: what was read.
        start: of the span; the first moment is one step later.
        end: of the span, and the last moment.
        step_s: the time between two moments (s).
        moments: how many were judged.
        now: the rules as they are.
        other: the rules with the overlay that they are compared with, None without one.
        changes: what differs in ``other``.
        same: firings that are the same in both.
        gaps: what could not be read.
        moments_read: of those moments, how many had any reading in the rules' window.
        readings_from: the oldest reading that was found, None for none (Unix s).
        readings_to: the newest one; where the span has none, both are those of the whole file.
    """

    source: str
    start: float
    end: float
    step_s: float
    moments: int
    now: Version
    other: Version | None
    changes: tuple[Change, ...]
    same: int
    gaps: tuple[Gap, ...]
    engine: EngineInfo
    queries: int
    warnings: tuple[str, ...] = ()
    moments_read: int = 0
    readings_from: float | None = None
    readings_to: float | None = None
    schema: str = field(default="gpuwhy/rules-backtest/1")
