"""From one look to the next: which incidents open, change and close.

`advance` is a pure function: it reads no clock, and the same arguments give the same events.

Unknown is not healthy: an incident whose entity could not be read neither goes on counting towards
its end nor closes; the time that it has to be absent begins anew when it can be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from engine.history.members import following
from engine.history.tracked import (
    Event,
    EventKind,
    Holds,
    IncidentKey,
    State,
    Tracked,
    event_about,
)
from engine.history.words import closing_words, goes_on, graded, moving_words, unread_words
from engine.model import Confidence, Diagnosis, Incident, Severity, Sweep

_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)
_ID_DIGITS = 12


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
    turn = _Turn(sight, moment, holds, watch)
    found = _by_key(sight.sweep.incidents)
    before = {one.key: one for one in known if not turn.over(one)}
    for key, incident in found.items():
        turn.present(before.get(key), key, incident)
    for key in sorted(before.keys() - found.keys()):
        one = before[key]
        if turn.readable(one):
            turn.absent(one)
        else:
            turn.unread(one)
    turn.kept.sort(key=lambda one: one.key)
    return Step(tuple(turn.kept), tuple(turn.events))


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


class _Turn:
    """One step over all incidents; ``kept`` and ``events`` fill up."""

    def __init__(self, sight: Sight, now: float, holds: Holds, watch: str) -> None:
        self._unread = sight.unread
        self._found = sight.sweep.incidents
        self._now = now
        self._holds = holds
        self._watch = watch
        self.kept: list[Tracked] = []
        self.events: list[Event] = []

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
        since = self._since(one.present_since)
        opens = one.state is not State.OPEN and self._now - since >= self._holds.open_s
        roster = following(one.members, incident.members, self._unread, self._now, self._holds)
        changes: list[str] = []
        if opens:
            roster = roster.opened()
        if one.state is State.OPEN:
            changes += roster.changes()
            changes += ["can be read again"] if one.unread_told else []
        one, graded_to = self._graded(one, incident.diagnosis, at_once=one.state is not State.OPEN)
        changes += graded_to if one.state is State.OPEN else []
        one = replace(
            one,
            diagnosis=incident.diagnosis,
            members=roster.members,
            present_since=since,
            last_seen=self._now,
            absent_since=None,
            unread_since=None,
            unread_told=False,
        )
        if opens:
            self._open(one)
        elif changes:
            self._tell(one, EventKind.CHANGED, incident.diagnosis.says, changes)
        else:
            self.kept.append(one)

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
            self.kept.append(one)

    def unread(self, one: Tracked) -> None:
        """Take an incident of which nobody can say whether it is still there."""
        since = self._since(one.unread_since)
        lasts = self._now - since
        one = replace(one, absent_since=None, unread_since=since)
        if one.state is not State.OPEN:
            if lasts < self._holds.forget_s:
                self.kept.append(one)
        elif lasts >= self._holds.forget_s:
            self._close(one, unread_words(one, self._now, given_up=True))
        elif lasts >= self._holds.resolve_s and not one.unread_told:
            said = unread_words(one, self._now, given_up=False)
            self._tell(replace(one, unread_told=True), EventKind.CHANGED, said, ["cannot be read"])
        else:
            self.kept.append(one)

    def _since(self, before: float | None) -> float:
        """Return since when something lasts; never in the future of a clock that was set back."""
        return self._now if before is None else min(before, self._now)

    def _new(self, key: IncidentKey, diagnosis: Diagnosis) -> Tracked:
        cause, entity = key
        seed = "\0".join((self._watch, cause, *entity, repr(self._now)))
        return Tracked(
            id=sha256(seed.encode("utf-8", "backslashreplace")).hexdigest()[:_ID_DIGITS],
            state=State.PENDING,
            diagnosis=diagnosis,
            severity=diagnosis.severity,
            confidence=diagnosis.confidence,
            members=(),
            present_since=None,
            last_seen=self._now,
        )

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

    def _open(self, one: Tracked) -> None:
        again = one.state is State.CLOSED
        kind = EventKind.REOPENED if again else EventKind.OPENED
        one = replace(
            one,
            state=State.OPEN,
            opened_at=one.opened_at if again else self._now,
            closed_at=None,
            times=one.times + 1,
        )
        self._tell(one, kind, one.diagnosis.says, ())

    def _close(self, one: Tracked, says: str, goes_on_as: Sequence[str] = ()) -> None:
        one = replace(
            one,
            state=State.CLOSED,
            closed_at=self._now,
            present_since=None,
            lower_since=None,
            unread_told=False,
        )
        self._tell(one, EventKind.CLOSED, says, goes_on_as)

    def _tell(self, one: Tracked, kind: EventKind, says: str, changes: Iterable[str]) -> None:
        one = replace(one, revision=one.revision + 1)
        self.kept.append(one)
        self.events.append(event_about(one, kind, self._now, self._watch, says, changes))
