"""From one look to the next: which incidents open, change and close.

`advance` is a pure function: it reads no clock, and the same arguments give the same events.

Unknown is not healthy: an incident whose entity could not be read neither goes on counting towards
its end nor closes; the time that it has to be absent begins anew when it can be read again.

An incident stays the same one when it is found on another entity (see `engine.history.moving`).
That is told once it lasts; until then it is the one that was told, and what else of it is found
under other names neither opens nor closes anything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from engine.history.members import Roster, following
from engine.history.moving import first_seen, followed, is_place
from engine.history.tracked import (
    EntityKey,
    Event,
    EventKind,
    Holds,
    IncidentKey,
    State,
    Tracked,
    event_about,
)
from engine.history.words import (
    closing_words,
    goes_on,
    graded,
    moved,
    moving_words,
    unread_words,
)
from engine.model import Confidence, Diagnosis, Incident, Severity, Sweep

_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)
_ID_DIGITS = 12
# While it is not settled whose an incident is, nobody joins or leaves it.
_NEVER = Holds(open_s=math.inf, resolve_s=math.inf)


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look saw.

    Attributes:
        sweep: what was found.
        unread: of the entities of known incidents and their members, those that could not be read
            (`Entity.key`).
    """

    sweep: Sweep
    unread: Collection[tuple[str, str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """What a look leads to: the incidents that are known from now on, and what is to be told."""

    known: tuple[Tracked, ...]
    events: tuple[Event, ...]


def advance(
    known: Iterable[Tracked], sight: Sight, moment: float, *, holds: Holds, watch: str
) -> Step:
    """Return what a look changes.

    Args:
        known: what the step before left.
        sight: what was found, and what could not be read.
        moment: when the look began (Unix s). A clock that was set back makes nothing happen early.
        holds: how long something must last before it is told.
        watch: what is watched; incidents of two watches never have the same id.
    """
    turn = _Turn(known := tuple(known), sight, moment, holds, watch)
    found = _by_key(sight.sweep.incidents)
    before = {one.key: one for one in known if not turn.over(one)}
    same = followed(before, found)
    # What is open comes first: what it has told of is not told again.
    is_open = {key for key, one in same.items() if one.state is State.OPEN}
    for key in (*(k for k in found if k in is_open), *(k for k in found if k not in is_open)):
        turn.present(same.get(key), key, found[key])
    there = {one.key for one in same.values()}
    for key in sorted(before.keys() - there):
        one = before[key]
        if key in found:  # an open one goes on under its key
            turn.absent(one)
        elif turn.taken(one):
            turn.told_by_others(one)
        elif turn.readable(one):
            turn.absent(one)
        else:
            turn.unread(one)
    return Step(turn.left(), tuple(turn.events))


def unseen(known: Iterable[Tracked]) -> tuple[Tracked, ...]:
    """Return what is known after a look that saw nothing: every absence is counted anew."""
    return tuple(replace(one, absent_since=None) for one in known)


def _by_key(incidents: Iterable[Incident]) -> dict[IncidentKey, Incident]:
    """Return incidents by their key, worst first; what comes twice is put together."""
    found: dict[IncidentKey, Incident] = {}
    for one in incidents:
        key = (one.diagnosis.cause, one.diagnosis.entity.key)
        first = found.get(key)
        found[key] = one if first is None else replace(first, members=first.members + one.members)
    return found


def _digest(seed: str) -> str:
    return sha256(seed.encode("utf-8", "backslashreplace")).hexdigest()[:_ID_DIGITS]


class _Turn:
    """One step over all incidents; ``kept`` and ``events`` fill up."""

    def __init__(
        self, known: Iterable[Tracked], sight: Sight, now: float, holds: Holds, watch: str
    ) -> None:
        self._unread = sight.unread
        self._found = sight.sweep.incidents
        self._now = now
        self._holds = holds
        self._watch = watch
        self._ids = {one.id for one in known}
        self._first = first_seen(known)
        self._here = {(i.diagnosis.cause, m.key) for i in self._found for m in i.members}
        # Whom open incidents have been told to be on, before this look and so far in it.
        self._told_before = {
            (one.diagnosis.cause, m.entity.key)
            for one in known
            if one.state is State.OPEN
            for m in one.members
            if m.told
        }
        self._told: set[tuple[str, EntityKey]] = set()
        self.kept: list[Tracked] = []
        self.events: list[Event] = []

    def left(self) -> tuple[Tracked, ...]:
        """Return what is known from now on; what an open one has taken the key of is history."""
        taken = {one.key for one in self.kept if one.state is State.OPEN}
        kept = [one for one in self.kept if one.state is State.OPEN or one.key not in taken]
        return tuple(sorted(kept, key=lambda one: one.key))

    def over(self, one: Tracked) -> bool:
        """Return whether a closed incident is history: what comes now is another one."""
        closed = one.state is State.CLOSED and one.present_since is None
        return closed and self._now - (one.closed_at or 0.0) > self._holds.quiet_s

    def readable(self, one: Tracked) -> bool:
        """Return whether the absence of an incident means anything."""
        asked = [one.diagnosis.entity, *(m.entity for m in one.members if m.told)]
        return not any(entity.key in self._unread for entity in asked)

    def present(self, before: Tracked | None, key: IncidentKey, incident: Incident) -> None:
        """Take an incident that was found."""
        one = before or self._new(key, incident.diagnosis)
        known_since = one.present_since
        since = self._since(self._first_of(incident) if known_since is None else known_since)
        opens = (
            one.state is not State.OPEN
            and self._now - max(since, self._news(incident)) >= self._holds.open_s
        )
        one, changes = self._placed(one, incident, opens=opens)
        roster = self._roster(one, incident)
        if opens:
            roster = roster.opened()
        if one.state is State.OPEN:
            changes += roster.changes()
            changes += ["can be read again"] if one.unread_told else []
        one, graded_to = self._graded(one, incident.diagnosis, at_once=one.state is not State.OPEN)
        changes += graded_to if one.state is State.OPEN else []
        one = replace(
            one,
            members=roster.members,
            present_since=since,
            last_seen=self._now,
            absent_since=None,
            unread_since=None,
            unread_told=False,
        )
        if opens:
            self._open(one, changes)
        elif changes:
            self._tell(one, EventKind.CHANGED, one.diagnosis.says, changes)
        else:
            self._keep(one)

    def taken(self, one: Tracked) -> bool:
        """Return whether all that an open incident is on was found as part of others."""
        if one.state is not State.OPEN or not is_place(one.diagnosis.entity):
            return False
        mine = {(one.diagnosis.cause, m.entity.key) for m in one.members if m.told}
        return bool(mine) and mine <= self._here

    def told_by_others(self, one: Tracked) -> None:
        """Take an open incident that is `taken`: it closes once the others have been told."""
        cause = one.diagnosis.cause
        if all((cause, m.entity.key) in self._told for m in one.members if m.told):
            later = goes_on(one, self._found)
            self._close(one, moving_words(later), later)
            return
        again = ["can be read again"] if one.unread_told else []
        members = [replace(m, last_seen=self._now) for m in one.members if m.told]
        one = replace(
            one,
            members=tuple(members),
            last_seen=self._now,
            absent_since=None,
            unread_since=None,
            unread_told=False,
        )
        if again:
            self._tell(one, EventKind.CHANGED, one.diagnosis.says, again)
        else:
            self._keep(one)

    def absent(self, one: Tracked) -> None:
        """Take an incident that was not found although its entity could be read."""
        if one.state is State.PENDING:
            return
        again = ["can be read again"] if one.unread_told else []
        since = self._since(one.absent_since)
        one = replace(
            one, present_since=None, absent_since=since, unread_since=None, unread_told=False
        )
        if one.state is State.OPEN and self._now - since >= self._holds.resolve_s:
            later = goes_on(one, self._found)
            says = moving_words(later) if later else closing_words(one, self._now)
            self._close(one, says, later)
        elif again:
            self._tell(one, EventKind.CHANGED, "not found any more", again)
        else:
            self._keep(one)

    def unread(self, one: Tracked) -> None:
        """Take an incident of which nobody can say whether it is still there."""
        since = self._since(one.unread_since)
        lasts = self._now - since
        one = replace(one, absent_since=None, unread_since=since)
        if one.state is not State.OPEN:
            if lasts < self._holds.forget_s:
                self._keep(one)
        elif lasts >= self._holds.forget_s:
            self._close(one, unread_words(one, self._now, given_up=True))
        elif lasts >= self._holds.resolve_s and not one.unread_told:
            said = unread_words(one, self._now, given_up=False)
            self._tell(replace(one, unread_told=True), EventKind.CHANGED, said, ["cannot be read"])
        else:
            self._keep(one)

    def _since(self, before: float | None) -> float:
        """Return since when something lasts; never in the future of a clock that was set back."""
        return self._now if before is None else min(before, self._now)

    def _new(self, key: IncidentKey, diagnosis: Diagnosis) -> Tracked:
        cause, entity = key
        seed = "\0".join((self._watch, cause, *entity, repr(self._now)))
        while (id_ := _digest(seed)) in self._ids:  # the one that it was given to has moved
            seed += "\0"
        self._ids.add(id_)
        return Tracked(
            id=id_,
            state=State.PENDING,
            diagnosis=diagnosis,
            severity=diagnosis.severity,
            confidence=diagnosis.confidence,
            members=(),
            present_since=None,
            last_seen=self._now,
        )

    def _first_of(self, incident: Incident) -> float | None:
        """Return since when something of what was found has been there, under whatever name."""
        cause = incident.diagnosis.cause
        seen = [self._first.get((cause, m.key)) for m in incident.members]
        return min((at for at in seen if at is not None), default=None)

    def _news(self, incident: Incident) -> float:
        """Return since when an incident has been on what no open one was told to be on."""
        cause = incident.diagnosis.cause
        new = [m for m in incident.members if (cause, m.key) not in self._told]
        if len(new) == len(incident.members) or not is_place(incident.diagnosis.entity):
            return -math.inf
        return min((self._first.get((cause, m.key), self._now) for m in new), default=math.inf)

    def _overdue(self, incident: Incident) -> bool:
        """Return whether something has been there for the hold that nobody was told of."""
        seen = {(incident.diagnosis.cause, m.key) for m in incident.members}
        ages = [self._now - self._first.get(one, self._now) for one in seen - self._told_before]
        return max(ages, default=-math.inf) >= self._holds.open_s

    def _placed(
        self, one: Tracked, incident: Incident, *, opens: bool
    ) -> tuple[Tracked, list[str]]:
        """Take over what was found; another entity than was told once it, or one of it, lasts."""
        found, told = incident.diagnosis, one.diagnosis
        if one.state is State.PENDING or found.entity.key == told.entity.key:
            return replace(one, diagnosis=found, moved_since=None), []
        settled = opens
        since = None
        if one.state is State.OPEN:
            since = self._since(one.moved_since)
            more = len(incident.members) > sum(m.told for m in one.members)
            hold_s = self._holds.open_s if more else self._holds.resolve_s
            settled = self._now - since >= hold_s or self._overdue(incident)
        if settled:
            words = [moved(told.entity, found.entity)]
            return replace(one, diagnosis=found, moved_since=None), words
        held = replace(told, severity=found.severity, confidence=found.confidence)
        return replace(one, diagnosis=held, moved_since=since), []

    def _roster(self, one: Tracked, incident: Incident) -> Roster:
        cause = one.diagnosis.cause
        keys = {m.key for m in incident.members}
        first = {key: at for key in keys if (at := self._first.get((cause, key))) is not None}
        unread = {m.entity.key for m in one.members if m.entity.key in self._unread}
        unread -= {key for key in unread if (cause, key) in self._here}
        holds = self._holds if one.moved_since is None else _NEVER
        return following(one.members, incident.members, unread, self._now, holds, since=first)

    def _graded(
        self, one: Tracked, found: Diagnosis, *, at_once: bool
    ) -> tuple[Tracked, list[str]]:
        """Take over severity and confidence: worse or surer at once, else once it lasts."""
        told = (_SEVERITIES.index(one.severity), _CONFIDENCES.index(one.confidence))
        now = (_SEVERITIES.index(found.severity), _CONFIDENCES.index(found.confidence))
        if now == told:
            return replace(one, lower_since=None), []
        since = self._since(one.lower_since)
        if now > told and not at_once and self._now - since < self._holds.resolve_s:
            return replace(one, lower_since=since), []
        raised = replace(
            one, severity=found.severity, confidence=found.confidence, lower_since=None
        )
        return raised, graded(one, found)

    def _open(self, one: Tracked, changes: Iterable[str]) -> None:
        again = one.state is State.CLOSED
        kind = EventKind.REOPENED if again else EventKind.OPENED
        one = replace(
            one,
            state=State.OPEN,
            opened_at=one.opened_at if again else self._now,
            closed_at=None,
            times=one.times + 1,
        )
        self._tell(one, kind, one.diagnosis.says, changes)

    def _close(self, one: Tracked, says: str, goes_on_as: Sequence[str] = ()) -> None:
        one = replace(
            one,
            state=State.CLOSED,
            closed_at=self._now,
            present_since=None,
            lower_since=None,
            moved_since=None,
            unread_told=False,
        )
        self._tell(one, EventKind.CLOSED, says, goes_on_as)

    def _tell(self, one: Tracked, kind: EventKind, says: str, changes: Iterable[str]) -> None:
        one = replace(one, revision=one.revision + 1)
        self._keep(one)
        self.events.append(event_about(one, kind, self._now, self._watch, says, changes))

    def _keep(self, one: Tracked) -> None:
        self.kept.append(one)
        if one.state is State.OPEN:
            cause = one.diagnosis.cause
            self._told.update((cause, m.entity.key) for m in one.members if m.told)
