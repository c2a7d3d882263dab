"""Which entities an incident affects, from one look to the next, without flapping."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.history.tracked import EntityKey, Holds, Member
from engine.model import Entity

_NAMED = 8


@dataclass(frozen=True, slots=True)
class Roster:
    """The members after a look, and who joined or left those that people were told of."""

    members: tuple[Member, ...]
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    now: float = 0.0

    def opened(self) -> Roster:
        """Return the roster of an incident that opens now: whoever is affected now is told of."""
        here = [replace(m, told=True) for m in self.members if m.last_seen == self.now]
        return Roster(tuple(here), now=self.now)

    def changes(self) -> list[str]:
        """Return what is different, a phrase each."""
        out = []
        if self.joined:
            out.append(f"also on {_names(self.joined)}")
        if self.left:
            out.append(f"no longer on {_names(self.left)}")
        return out


def following(
    before: Sequence[Member],
    found: Sequence[Entity],
    unread: Collection[EntityKey],
    now: float,
    holds: Holds,
    *,
    since: Mapping[EntityKey, float] | None = None,
) -> Roster:
    """Return the members after a look.

    One joins when it has been found for ``open_s``, and leaves when it has not been for
    ``resolve_s``; one that cannot be read stays.

    Args:
        before: the members before it.
        found: who is affected.
        unread: who could not be read.
        now: when the look began (Unix s).
        holds: how long something must last before it is told.
        since: since when others have been found that were members of another incident before.
    """
    since = since or {}
    known = {m.entity.key: m for m in before}
    here = {entity.key: entity for entity in found}
    members: list[Member] = []
    joined: list[str] = []
    left: list[str] = []
    for key in sorted(known.keys() | here.keys()):
        member, entity = known.get(key), here.get(key)
        if entity is not None:
            first = min(now, since.get(key, now), now if member is None else member.first_seen)
            told = member is not None and member.told
            joins = not told and now - first >= holds.open_s
            members.append(Member(entity, first, now, told or joins))
            joined += [entity.name] if joins else []
        elif member is None or not member.told:
            continue
        elif key in unread:
            members.append(replace(member, last_seen=now))
        elif now - min(member.last_seen, now) < holds.resolve_s:
            members.append(replace(member, last_seen=min(member.last_seen, now)))
        else:
            left.append(member.entity.name)
    return Roster(tuple(members), tuple(joined), tuple(left), now)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed
