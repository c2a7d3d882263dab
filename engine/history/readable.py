"""Whether an entity was read: only then does it mean something that nothing was found on it.

A GPU was read if it has a fresh core reading and the sweep gave it a verdict; a host, if some GPU
on it was, and its own readings came if such decided; a port, mount or service, if it has a fresh
reading of its own. A pod, job or rank comes and goes: where its host was read it may be over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.history.tracked import EntityKey
from engine.model import Entity, Kind, Sweep
from engine.signals.entities import (
    ENGINE_LABELS,
    MODEL_LABELS,
    MOUNT_LABELS,
    RANK_LABELS,
    RUN_LABELS,
    Found,
    identify,
    mounts,
)
from engine.signals.labels import IDENTITY_LABELS, NAMESPACE_LABELS, POD_LABELS, locate

# A sweep lists no more entities without a verdict than this; then nobody knows who else is.
UNSEEN_LISTED = 200
# Everything that says what a series is about.
LABELS = tuple(
    dict.fromkeys((
        *IDENTITY_LABELS,
        *POD_LABELS,
        *NAMESPACE_LABELS,
        *MODEL_LABELS,
        *ENGINE_LABELS,
        *MOUNT_LABELS,
        *RANK_LABELS,
        *RUN_LABELS,
        *("device", "interface", "port", "export", "fs_name", "fsname", "target", "job"),
    ))
)  # fmt: skip
_SCOPES = {
    Kind.FILESYSTEM: "filesystem",
    Kind.POD: "pod",
    Kind.JOB: "rank",
    Kind.RANK: "rank",
    Kind.SERVICE: "service",
}
_PASSING = frozenset({Kind.POD, Kind.JOB, Kind.RANK})


@dataclass(frozen=True, slots=True)
class Asked:
    """An entity, and whether readings of its host itself decided on it."""

    entity: Entity
    by_node: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Labels of everything that has fresh readings: of GPUs, of hosts, of what else, by scope."""

    gpus: Iterable[Mapping[str, str]] = ()
    nodes: Iterable[Mapping[str, str]] = ()
    others: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)


def scope_of(entity: Entity) -> str | None:
    """Return the scope of signals that are an entity's own; None for GPUs and hosts."""
    if entity.kind is Kind.NODE:
        return "port" if entity.instance else None
    return _SCOPES.get(entity.kind)


def unread(asked: Iterable[Asked], sweep: Sweep, rows: Rows) -> frozenset[EntityKey]:
    """Return which entities a sweep could not judge.

    Args:
        asked: whom to look for.
        sweep: names some of those that it could not judge.
        rows: labels of everything that has a fresh reading.
    """
    if len(sweep.unseen) >= UNSEEN_LISTED:
        return frozenset(one.entity.key for one in asked)
    fresh = _Fresh(sweep, rows)
    return frozenset(one.entity.key for one in asked if not fresh.has(one))


class _Fresh:
    """What has fresh readings."""

    def __init__(self, sweep: Sweep, rows: Rows) -> None:
        self._unseen = {entity.key for entity in sweep.unseen}
        self._unseen_hosts = {e.host for e in sweep.unseen if e.kind is Kind.NODE}
        places = [locate(row) for row in rows.gpus]
        self._boards = {place.uuid for place in places if place.uuid}
        self._slots = {(place.host, place.gpu) for place in places if place.gpu is not None}
        self._hosts = {place.host for place in places if place.host}
        self._hosts_own = {locate(row).host for row in rows.nodes}
        self._others = {
            found.entity.key
            for scope, labels in rows.others.items()
            for found in _identified(scope, labels)
        }

    def has(self, asked: Asked) -> bool:
        """Return whether an entity was read."""
        entity = asked.entity
        if entity.key in self._unseen or (entity.host and entity.host in self._unseen_hosts):
            return False
        if asked.by_node and entity.host not in self._hosts_own:
            return False
        if entity.kind is Kind.GPU:
            return entity.uuid in self._boards or (entity.host, entity.gpu) in self._slots
        if scope_of(entity) is None:
            # What is neither on a host nor has readings of its own is known by its members alone.
            return entity.host is None or entity.host in self._hosts | self._hosts_own
        if entity.key in self._others:
            return True
        return entity.kind in _PASSING and (entity.host is None or entity.host in self._hosts)


def _identified(scope: str, rows: Sequence[Mapping[str, str]]) -> list[Found]:
    aliases = {device: mount for row in rows for device, mount in mounts(row).items()}
    return [found for row in rows if (found := identify(scope, row, aliases))]
