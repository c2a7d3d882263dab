"""The same incident under another name: of a rack or rail that falls apart, of nodes put together.

Where several hosts show the same, a sweep has one incident of what they share (its rack, its rail),
and one of each host where they are too few for that. Which of the two it is may change from look to
look while the fault goes on; the incident stays the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from engine.history.tracked import EntityKey, IncidentKey, State, Tracked
from engine.model import Entity, Incident, Kind

# Where hardware is. A job, pod or service that follows on the same GPUs is another one.
_PLACES = frozenset({Kind.GPU, Kind.NODE, Kind.RACK, Kind.FABRIC})
_RANK = {State.OPEN: 0, State.CLOSED: 1, State.PENDING: 2}

# A cause and an entity that has it.
Seen: TypeAlias = tuple[str, EntityKey]
# Cause, cluster, host.
_Host: TypeAlias = tuple[str, str, str]


def is_place(entity: Entity) -> bool:
    """Return whether an incident may go on as that of another entity that has the same hardware."""
    return entity.kind in _PLACES


def followed(
    before: Mapping[IncidentKey, Tracked], found: Mapping[IncidentKey, Incident]
) -> dict[IncidentKey, Tracked]:
    """Return which known incident each found one is, by the key it was found under.

    A known one that was not found itself goes on as one with which it has a member in common, or
    whose host it is: open ones first, then closed ones that may come back, then pending ones; of
    those the oldest. An open one is preferred to a pending or closed one that has the key.
    """
    index = _Index(found)
    out: dict[IncidentKey, Tracked] = {}
    for one in sorted((one for key, one in before.items() if key not in found), key=_age):
        is_open = one.state is State.OPEN
        ranked = []
        for key, common in index.related(one).items():
            own = before.get(key)
            free = own is None or (is_open and own.state is not State.OPEN)
            if free and key not in out:
                ranked.append((0 if own is None else _RANK[own.state], -common, key))
        if ranked:
            out[min(ranked)[-1]] = one
    return {key: before[key] for key in found if key in before} | out


def first_seen(known: Iterable[Tracked]) -> dict[Seen, float]:
    """Return since when each entity has been found with a cause, under whatever name."""
    out: dict[Seen, float] = {}
    for one in known:
        if one.present_since is None or not is_place(one.diagnosis.entity):
            continue
        for member in one.members:
            if member.last_seen == one.last_seen:
                seen = (one.diagnosis.cause, member.entity.key)
                out[seen] = min(member.first_seen, out.get(seen, member.first_seen))
    return out


def _age(one: Tracked) -> tuple[int, float, IncidentKey]:
    ages = (one.opened_at, one.present_since, one.last_seen)
    return (_RANK[one.state], next(at for at in ages if at is not None), one.key)


class _Index:
    """Found incidents by what they have in common with known ones."""

    def __init__(self, found: Mapping[IncidentKey, Incident]) -> None:
        self._members: dict[Seen, list[IncidentKey]] = {}
        self._hosts: dict[_Host, list[IncidentKey]] = {}
        self._nodes: dict[_Host, IncidentKey] = {}
        for key, incident in found.items():
            entity = incident.diagnosis.entity
            if not is_place(entity):
                continue
            cause, (cluster, _, name) = key
            for member in {m.key: m for m in incident.members}.values():
                self._members.setdefault((cause, member.key), []).append(key)
            for host in {m.host for m in incident.members if m.host}:
                self._hosts.setdefault((cause, cluster, host), []).append(key)
            if entity.kind is Kind.NODE:
                self._nodes[cause, cluster, name] = key

    def related(self, one: Tracked) -> Counter[IncidentKey]:
        """Return as which found ones a known one may go on, with the number of common members."""
        entity = one.diagnosis.entity
        out: Counter[IncidentKey] = Counter()
        if not is_place(entity):
            return out
        cause, (cluster, _, name) = one.key
        members = [m.entity for m in one.members if m.told or one.state is not State.OPEN]
        for member in members:
            out.update(self._members.get((cause, member.key), ()))
        if entity.kind is Kind.NODE:
            out.update(dict.fromkeys(self._hosts.get((cause, cluster, name), ()), 0))
        nodes = [self._nodes.get((cause, cluster, m.host)) for m in members if m.host]
        out.update({key: 0 for key in nodes if key is not None})
        return Counter({key: common for key, common in out.items() if key[1][0] == cluster})
