"""What an answer calls its target, and on which machines it is."""

from __future__ import annotations

from collections.abc import Sequence

from engine.model import Entity, Kind
from engine.signals.labels import node_entity
from engine.signals.normalise import Readings
from engine.topology import Target


def hosts_of(target: Target, readings: Readings | None, chosen: Sequence[int]) -> list[str | None]:
    """Return the machines that a target is on, as far as is known or, without readings, said."""
    said = [target.host, *target.hosts]
    if readings is None:
        return [host for host in said if host]
    found = [readings.frame.entities[i].host for i in chosen if i < len(readings.frame)]
    return [*said, *found]


def distinct(entity: Entity) -> str:
    """Return a name that tells GPUs of the same name apart."""
    name = f"{entity.cluster}::{entity.name}" if entity.cluster else entity.name
    return f"{name} ({entity.uuid})" if entity.uuid else name


def entity_of(target: Target, readings: Readings, chosen: Sequence[int]) -> Entity:
    """Return the entity of a target that stands for several GPUs."""
    match target.kind:
        case Kind.NODE:
            first = readings.frame.entities[chosen[0]]
            return node_entity(first.host or target.host or "", target.cluster)
        case Kind.POD:
            name = f"pod/{target.namespace}/{target.pod}"
            return Entity(
                Kind.POD, name, target.cluster, namespace=target.namespace, pod=target.pod
            )
        case Kind.JOB:
            return Entity(Kind.JOB, f"job/{target.job}", target.cluster, job=target.job)
        case Kind.RACK:
            return Entity(Kind.RACK, f"rack/{target.rack}", target.cluster)
        case Kind.SERVICE:
            where = f"#{target.instance}" if target.instance else ""
            name = f"svc/{target.service}{where}"
            return Entity(Kind.SERVICE, name, target.cluster, service=target.service)
        case Kind.FILESYSTEM:
            name = f"fs/{(target.mount or '').lstrip('/')}"
            return Entity(Kind.FILESYSTEM, name, target.cluster)
        case _:
            return Entity(Kind.FLEET, "fleet", target.cluster)
