"""What is said when an incident changes or ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.diagnosis.compose import below
from engine.history.tracked import Tracked
from engine.model import Diagnosis, Entity, Incident
from engine.units import duration

_NAMED = 4


def graded(before: Tracked, found: Diagnosis) -> list[str]:
    """Return how severity and confidence differ from what was told."""
    out = []
    if found.severity is not before.severity:
        out.append(f"severity {found.severity}, was {before.severity}")
    if found.confidence is not before.confidence:
        out.append(f"{found.confidence}, was {before.confidence}")
    return out


def moved(before: Entity, now: Entity) -> str:
    """Return that an incident is told as that of another entity from now on."""
    return f"now {now.shown}, was {before.shown}"


def goes_on(one: Tracked, found: Iterable[Incident]) -> list[str]:
    """Return as what an incident that is not found any more goes on, a phrase each.

    Its cause may have come up, beneath which it stands from now on; and what several hosts show
    becomes one incident of what they share, or falls apart again.
    """
    mine = {member.entity.key for member in one.members if member.told}
    out = []
    for other in found:
        root = other.diagnosis
        if one.key in {(e.cause, e.entity.key) for e in below(root.effects)}:
            out.append(f"beneath {root.cause} of {root.entity.name}")
        elif root.cause == one.diagnosis.cause and mine & {m.key for m in other.members}:
            out.append(f"as that of {root.entity.name}")
    return out


def moving_words(later: Sequence[str]) -> str:
    """Return as what an incident goes on (see `goes_on`)."""
    more = f" and {len(later) - _NAMED} more" if len(later) > _NAMED else ""
    return f"not over: it goes on {', '.join(later[:_NAMED])}{more}"


def closing_words(one: Tracked, now: float) -> str:
    """Return that an incident is over, and how long it was open."""
    opened = one.opened_at if one.opened_at is not None else now
    last = duration(max(0.0, now - one.last_seen))
    again = f", the last of {one.times} times" if one.times > 1 else ""
    return f"not found for {last}; it opened {duration(max(0.0, now - opened))} ago{again}"


def unread_words(one: Tracked, now: float, *, given_up: bool) -> str:
    """Return that nobody can say whether an incident is over."""
    since = one.unread_since if one.unread_since is not None else now
    name = one.diagnosis.entity.name
    said = f"{name} has not been readable for {duration(max(0.0, now - since))}"
    if given_up:
        return f"{said}: given up, not known to be healthy"
    return f"{said}: it stays open, for unknown is not healthy"
