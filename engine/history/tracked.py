"""What a watch remembers of an incident between two looks, and what it tells.

All moments are Unix seconds, all lengths of time are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from engine.model import Confidence, Diagnosis, Entity, Incident, Severity

# An entity's `Entity.key`: cluster, kind, name.
EntityKey: TypeAlias = tuple[str, str, str]
# What makes two findings the same incident: the root cause, and the entity it is on.
IncidentKey: TypeAlias = tuple[str, EntityKey]


class State(StrEnum):
    """How far an incident has come; PENDING has not been told to anybody yet."""

    PENDING = "pending"
    OPEN = "open"
    CLOSED = "closed"


class EventKind(StrEnum):
    """What is told.

    opened, reopened, changed, closed: about an incident. open: it was open when the watch started.
    watching: the watch has started. blind: the source cannot be read. seeing: it can again.
    """

    OPENED = "opened"
    REOPENED = "reopened"
    CHANGED = "changed"
    CLOSED = "closed"
    OPEN = "open"
    WATCHING = "watching"
    BLIND = "blind"
    SEEING = "seeing"


@dataclass(frozen=True, slots=True)
class Holds:
    """How long something must last before it is told (s).

    Attributes:
        open_s: an incident opens when it was found in every look that could see it for so long.
        resolve_s: it closes when it was in no look for so long, all of which could see its entity.
            ``open_s`` and ``resolve_s`` are also how long it must have become more, or less.
        quiet_s: one that comes back within so long after it closed is the same one.
        forget_s: one whose entity could not be read for so long is given up: the machine is gone.
    """

    open_s: float = 120.0
    resolve_s: float = 300.0
    quiet_s: float = 3600.0
    forget_s: float = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Member:
    """An entity that an incident affects.

    Attributes:
        entity: as it was found last.
        first_seen: since when it has been found.
        last_seen: when it was found last, or could not be read.
        told: it is among those that people were told of.
    """

    entity: Entity
    first_seen: float
    last_seen: float
    told: bool


@dataclass(frozen=True, slots=True)
class Tracked:
    """An incident that a watch knows.

    Attributes:
        id: the same as long as it is the same incident.
        state: how far it has come.
        diagnosis: as it was found last on the entity that was told, or, if it is pending, at all.
        severity: the one that was told; a lower one is told when it has lasted.
        confidence: as ``severity``.
        members: what it affects.
        present_since: since when every look that could see it has found it; None: not found now.
        last_seen: when it was found last.
        absent_since: since when no look has found it, and all could see it.
        unread_since: since when its entity cannot be read.
        lower_since: since when it has been less severe, or less sure, than was told.
        moved_since: since when it has been found on another entity than was told.
        unread_told: it was told that it cannot be read.
        opened_at: when it opened first.
        closed_at: when it closed last.
        times: how often it opened.
        revision: how many events there were about it.
    """

    id: str
    state: State
    diagnosis: Diagnosis
    severity: Severity
    confidence: Confidence
    members: tuple[Member, ...]
    present_since: float | None
    last_seen: float
    absent_since: float | None = None
    unread_since: float | None = None
    lower_since: float | None = None
    moved_since: float | None = None
    unread_told: bool = False
    opened_at: float | None = None
    closed_at: float | None = None
    times: int = 0
    revision: int = 0

    @property
    def key(self) -> IncidentKey:
        """What makes it the same incident, if it is found under that."""
        return (self.diagnosis.cause, self.diagnosis.entity.key)

    def shown(self) -> Incident:
        """Return the incident as people are told of it."""
        return Incident(self.diagnosis, tuple(m.entity for m in self.members if m.told))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a source cannot be read, since when, and whether that was told."""

    since: float
    says: str
    told: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell; ``gpuwhy watch --json`` prints one a line.

    Attributes:
        event: what happened.
        at: when.
        watch: what is watched: the source, and what is selected of it.
        id: of the incident; empty where it is about none.
        times: how often the incident opened; above 1, it came back.
        revision: number of this event among those of the incident, from 1.
        incident: as it is now, or was found last.
        opened_at: when it opened first.
        closed_at: when it closed.
        unread_since: since when its entity cannot be read.
        changes: what is different from what was told before, a phrase each; of one that closed, as
            what it goes on (beneath its cause, as that of a rack), if it is not over.
        says: what happened, in a sentence.
    """

    event: EventKind
    at: float
    watch: str
    id: str = ""
    times: int = 0
    revision: int = 0
    incident: Incident | None = None
    opened_at: float | None = None
    closed_at: float | None = None
    unread_since: float | None = None
    changes: tuple[str, ...] = ()
    says: str = ""
    schema: str = field(default="gpuwhy/watch/1")


def event_about(
    one: Tracked,
    kind: EventKind,
    at: float,
    watch: str,
    says: str,
    changes: Iterable[str] = (),
) -> Event:
    """Return an event about an incident."""
    return Event(
        event=kind,
        at=at,
        watch=watch,
        id=one.id,
        times=one.times,
        revision=one.revision,
        incident=one.shown(),
        opened_at=one.opened_at,
        closed_at=one.closed_at,
        unread_since=one.unread_since,
        changes=tuple(changes),
        says=says,
    )
