"""Looking once: a sweep, and which of the known incidents it could not see.

A sweep says what it found, and lists whom it could not judge; an entity that has vanished is in
neither. Before the absence of an incident counts, its entity must have been read: its core readings
are there, newer than `FRESH_S`, and the sweep gave it a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.diagnosis import Engine
from engine.history.incidents import Sight
from engine.history.tracked import EntityKey, IncidentKey, Tracked
from engine.model import Entity, Kind, Sweep
from engine.samples import Matcher
from engine.signals.labels import IDENTITY_LABELS, locate
from engine.sources.logs.port import LogSource
from engine.sources.port import Source

# An entity counts as read if one of its core readings is at most so old (s): several scrapes.
FRESH_S = 300.0
# A sweep lists no more entities without a verdict than this; then nobody knows who else is.
UNSEEN_LISTED = 200


async def look(
    engine: Engine,
    source: Source,
    known: Sequence[Tracked],
    *,
    window_s: float,
    where: Sequence[Matcher] = (),
    logs: LogSource | None = None,
) -> Sight:
    """Sweep a source, and say which of the entities of known incidents could not be read.

    Args:
        engine: judges.
        source: where readings come from.
        known: the incidents whose absence would mean something.
        window_s: how far back to look (s).
        where: label matchers that every series must fit.
        logs: where events of kernel logs come from.

    Raises:
        SourceError: the source does not answer.
    """
    sweep = await engine.sweep(source, window_s=window_s, where=where, logs=logs)
    missing = absent(known, sweep)
    if not missing:
        return Sight(sweep)
    rows = await source.label_sets(
        engine.fetcher.core_names(),
        IDENTITY_LABELS,
        at=sweep.at,
        window_s=min(window_s, FRESH_S),
        matchers=tuple(where),
    )
    return Sight(sweep, unread(missing, sweep, rows))


def absent(known: Iterable[Tracked], sweep: Sweep) -> list[Entity]:
    """Return the entities and members of the known incidents that a sweep did not find.

    Those of found incidents that some member has left are among them: it may not have been read.
    """
    found: Mapping[IncidentKey, set[EntityKey]] = {
        (one.diagnosis.cause, one.diagnosis.entity.key): {m.key for m in one.members}
        for one in sweep.incidents
    }
    out: dict[EntityKey, Entity] = {}
    for one in known:
        here = found.get(one.key)
        told = [m.entity for m in one.members if m.told]
        if here is None:
            out[one.diagnosis.entity.key] = one.diagnosis.entity
        out.update({entity.key: entity for entity in told if entity.key not in (here or ())})
    return list(out.values())


def unread(
    entities: Iterable[Entity], sweep: Sweep, rows: Iterable[Mapping[str, str]]
) -> frozenset[EntityKey]:
    """Return which entities a sweep could not judge.

    Args:
        entities: whom to look for.
        sweep: names some of those that it could not judge.
        rows: labels of everything that has a fresh core reading.
    """
    asked = list(entities)
    if len(sweep.unseen) >= UNSEEN_LISTED:
        return frozenset(entity.key for entity in asked)
    unseen = {entity.key for entity in sweep.unseen}
    unseen_hosts = {e.host for e in sweep.unseen if e.kind is Kind.NODE}
    places = [locate(row) for row in rows]
    boards = {place.uuid for place in places if place.uuid}
    slots = {(place.host, place.gpu) for place in places if place.gpu is not None}
    hosts = {place.host for place in places if place.host}

    def is_read(entity: Entity) -> bool:
        if entity.key in unseen or (entity.host and entity.host in unseen_hosts):
            return False
        if entity.kind is Kind.GPU:
            by_uuid = entity.uuid is not None and entity.uuid in boards
            return by_uuid or (entity.host, entity.gpu) in slots
        # What is neither a GPU nor on a host is known by its members alone.
        return entity.host is None or entity.host in hosts

    return frozenset(entity.key for entity in asked if not is_read(entity))
