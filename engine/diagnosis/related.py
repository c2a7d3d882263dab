"""What else belongs to a target: the node, ports, mounts, pods and ranks of its GPUs, and back.

Everything here is by names that labels carry; what no label ties together stays apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.model import Entity, Kind
from engine.samples import Frame
from engine.signals.normalise import Readings
from engine.topology import Target

# Which frames are looked at beside the GPUs of a target.
_BESIDE = {
    Kind.GPU: ("port", "filesystem", "pod", "rank"),
    Kind.POD: ("port", "filesystem", "pod", "rank"),
    Kind.NODE: ("node", "port", "filesystem", "pod", "rank", "service"),
    Kind.RACK: ("node", "port", "filesystem", "pod", "rank", "service"),
    Kind.JOB: ("node", "port", "filesystem", "pod", "rank"),
    Kind.RANK: ("port", "pod", "rank"),
    Kind.FLEET: ("node", "port", "filesystem", "pod", "rank", "service"),
    Kind.SERVICE: ("node", "pod", "service"),
    Kind.FILESYSTEM: ("filesystem", "node"),
}
# The frame of what a target itself is, where that is no GPU.
OWN = {Kind.SERVICE: "service", Kind.FILESYSTEM: "filesystem", Kind.RANK: "rank"}


def gpus(target: Target, readings: Readings) -> list[int]:
    """Return the GPUs beneath a service, a file system or a rank, by pod or else by host."""
    others = readings.others.get(OWN[target.kind])
    if others is None or target.kind is Kind.FILESYSTEM:
        return []
    mine = [others.entities[k] for k in own(target, others)]
    entities = readings.frame.entities
    found: set[int] = set()
    for one in mine:
        in_pod = [
            i
            for i, e in enumerate(entities)
            if one.pod and (e.namespace, e.pod) == (one.namespace, one.pod)
        ]
        on_host = [
            i
            for i, e in enumerate(entities)
            if one.host and (e.cluster, e.host) == (one.cluster, one.host)
        ]
        found.update(in_pod or on_host)
    return sorted(found)


def own(target: Target, frame: Frame) -> list[int]:
    """Return the entities of a frame that a target names."""
    target = target.among({entity.service for entity in frame.entities})
    return [i for i, entity in enumerate(frame.entities) if _is(target, entity)]


def beside(target: Target, readings: Readings, chosen: Sequence[int]) -> dict[str, list[int]]:
    """Return, by scope, the entities that belong to a target or to its GPUs."""
    mine = [readings.frame.entities[i] for i in chosen]
    hosts = {e.host for e in mine if e.host} | {h for h in (target.host, *target.hosts) if h}
    clusters: set[str | None] = {target.cluster} if target.cluster else {e.cluster for e in mine}
    pods = {(e.namespace, e.pod) for e in mine}
    jobs = {e.job for e in mine if e.job} | ({target.job} if target.job else set())
    if target.kind in OWN and (named := readings.others.get(OWN[target.kind])):
        hosts |= {host for k in own(target, named) if (host := named.entities[k].host)}
    out: dict[str, list[int]] = {}
    for scope in _BESIDE.get(target.kind, ()):
        frame = readings.others.get(scope)
        if frame is None:
            continue
        if OWN.get(target.kind) == scope:
            found = own(target, frame)
        elif target.kind is Kind.FLEET:
            found = list(range(len(frame)))
        else:
            found = [
                i
                for i, e in enumerate(frame.entities)
                if _belongs(e, scope, hosts, pods, jobs) and _within(e.cluster, clusters)
            ]
        if found:
            out[scope] = found
    return out


def _within(cluster: str | None, clusters: set[str | None]) -> bool:
    """Return whether something may be of some clusters: names alone repeat from one to the next.

    What names no cluster may be of any: exporters of hosts seldom do.
    """
    return cluster is None or not clusters or None in clusters or cluster in clusters


def _belongs(
    entity: Entity,
    scope: str,
    hosts: set[str],
    pods: set[tuple[str | None, str | None]],
    jobs: set[str],
) -> bool:
    match scope:
        case "pod":
            return entity.pod is not None and (entity.namespace, entity.pod) in pods
        case "rank":
            return entity.job in jobs
        case _:
            return entity.host in hosts


def _is(target: Target, entity: Entity) -> bool:
    if target.cluster not in {None, entity.cluster}:
        return False
    match target.kind:
        case Kind.SERVICE:
            return entity.service == target.service and target.instance in {
                None,
                entity.instance,
                (entity.instance or "").partition(":")[0],
            }
        case Kind.FILESYSTEM:
            mount = (target.mount or "").lstrip("/")
            return entity.name == f"fs/{mount}"
        case _:
            return entity.job == target.job and entity.rank == target.rank
