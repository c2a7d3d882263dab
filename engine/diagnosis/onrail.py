"""Ports of one rail that show the same on several hosts: one incident of what they share.

Port k of every host of a rail-optimised cluster goes to the same leaf switch (NVIDIA DGX SuperPOD
reference architecture, compute fabric). Faults of single cables scatter over ports and time; where
several hosts lose the same port at once, that switch is looked at first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engine.diagnosis.combine import order
from engine.diagnosis.compose import key_of
from engine.diagnosis.rank import Key
from engine.model import Diagnosis, Effect, Entity, Incident, Kind, Step

_OF_LINKS = frozenset({"ib_link_down", "ib_link_degraded"})
_OF_NETWORK = "network_congestion"
# Fewer bad cables than this may well be at the same port of their hosts by chance.
_FEWEST = 3
# What a switch does to its ports begins at once; scrapes of a minute spread it a little (s).
_AT_ONCE_S = 180.0
_NAMED = 6
_EVIDENCE = 8

# A host and the name of a port of it.
Port = tuple[str, str]


def by_rail(
    incidents: Sequence[Incident],
    seen_at: Mapping[Key, Sequence[Entity]],
    looked_at: Iterable[Port],
) -> list[Incident]:
    """Put faults of links together that began at one port of three hosts or more at the same time.

    Args:
        incidents: one a cause and entity, worst first.
        seen_at: where the cause of each was seen itself.
        looked_at: all ports that were judged.
    """
    ports = {
        key_of(one.diagnosis): _ports(seen_at.get(key_of(one.diagnosis), ())) for one in incidents
    }
    hosts_with: dict[str, set[str]] = {}
    ports_of: dict[str, set[str]] = {}
    for host, name in looked_at:
        hosts_with.setdefault(name, set()).add(host)
        ports_of.setdefault(host, set()).add(name)
    groups: dict[tuple[str, str | None, str], list[Incident]] = {}
    for one in incidents:
        mine = {name for _, name in ports[key_of(one.diagnosis)]}
        if one.diagnosis.cause in _OF_LINKS and len(mine) == 1:
            where = (one.diagnosis.cause, one.diagnosis.entity.cluster, mine.pop())
            groups.setdefault(where, []).append(one)
    gone: set[Key] = set()
    merged: list[Incident] = []
    for (_, cluster, name), some in groups.items():
        # Where hosts have one port only, every fault is at the same one.
        several = [i for i in some if len(ports_of.get(i.diagnosis.entity.host or "", ())) > 1]
        together = _at_once(several, len(hosts_with.get(name, ())))
        if together:
            gone |= {key_of(one.diagnosis) for one in together}
            merged.append(_merged(name, cluster, together))
    kept = [
        _told_where(one, ports[key_of(one.diagnosis)])
        for one in incidents
        if key_of(one.diagnosis) not in gone
    ]
    return sorted([*kept, *merged], key=lambda one: order(one.diagnosis))


def _at_once(some: Sequence[Incident], of: int) -> list[Incident]:
    """Return those that began together: the most within some minutes.

    Of those whose beginning was not seen it is all, if half of the ``of`` hosts with such a port
    have it.
    """
    if len(some) < _FEWEST:
        return []
    timed = sorted(
        ((one.diagnosis.since, k) for k, one in enumerate(some) if one.diagnosis.since is not None)
    )
    best: list[int] = []
    for k, (since, _) in enumerate(timed):
        near = [i for other, i in timed[k:] if other - since <= _AT_ONCE_S]
        best = near if len(near) > len(best) else best
    if len(best) >= _FEWEST:
        return [some[i] for i in sorted(best)]
    unseen = [one for one in some if one.diagnosis.since is None]
    return unseen if len(unseen) >= _FEWEST and 2 * len(unseen) >= of else []


def _ports(entities: Iterable[Entity]) -> list[Port]:
    """Return those of some entities that are ports."""
    return [(e.host, e.instance) for e in entities if e.host and e.instance and is_port(e)]


def is_port(entity: Entity) -> bool:
    """Return whether an entity is a port of a host."""
    return entity.kind is Kind.NODE and entity.name == f"{entity.host} {entity.instance}"


def _rail(ports: Sequence[Port]) -> str | None:
    """Return the port that most of some ports are, of enough hosts; None if they scatter."""
    of_name = Counter(name for _, name in ports)
    if not of_name:
        return None
    name, count = min(of_name.items(), key=lambda pair: (-pair[1], pair[0]))
    hosts = {host for host, other in ports if other == name}
    return name if len(hosts) >= _FEWEST and 4 * count >= 3 * len(ports) else None


def _merged(name: str, cluster: str | None, some: Sequence[Incident]) -> Incident:
    parts = [one.diagnosis for one in some]
    first = parts[0]
    says = (
        f"{len(parts)} hosts have it, all at port {name} ({_listed(d.entity.name for d in parts)});"
        " where ports of one number go to one leaf switch, that switch is looked at before the"
        f" cables. {first.says}"
    )
    host = first.entity.host
    device, _, number = name.partition("/")
    step = Step(
        "Ask a port for the switch at its other end; compare the hosts",
        f"ssh {host} smpquery -C {device} -P {number} -D nodedesc 0,{number}"
        if number
        else f"ssh {host} lldpctl {device}",
    )
    told = [d.since for d in parts if d.since is not None]
    effects: tuple[Effect, ...] = tuple(effect for d in parts for effect in d.effects)
    merged: Diagnosis = replace(
        first,
        entity=Entity(Kind.FABRIC, f"fabric/{name}", cluster),
        says=says,
        evidence=(*first.evidence, *(d.evidence[0] for d in parts[1:_EVIDENCE] if d.evidence)),
        effects=effects,
        next=(step, *first.next),
        since=min(told, default=None),
    )
    members = {member.key: member for one in some for member in one.members}
    return Incident(merged, tuple(members.values()))


def _told_where(incident: Incident, ports: Sequence[Port]) -> Incident:
    """Say at which ports it was seen: of a host that has it at several, of congestion anyway."""
    diagnosis = incident.diagnosis
    if len(ports) > 1 and diagnosis.cause in _OF_LINKS:
        text = f"{len(ports)} of its ports have it: {_listed(name for _, name in ports)}."
        return replace(incident, diagnosis=replace(diagnosis, says=f"{diagnosis.says} {text}"))
    if diagnosis.cause != _OF_NETWORK or len(ports) < 2:
        return incident
    hosts = list(dict.fromkeys(host for host, _ in ports))
    names = list(dict.fromkeys(name for _, name in ports))
    rail = _rail(ports)
    text = f"Seen at {len(ports)} ports of {len(hosts)} hosts ({_listed(hosts)})"
    if rail:
        text += f", most at port {rail}: look at the leaf switch of that rail first"
    elif len(hosts) == 1:
        text += ", at no other host: look at what it receives, and how fast it takes it"
    else:
        text += f", at {len(names)} different ports: look beyond a single leaf switch"
    return replace(incident, diagnosis=replace(diagnosis, says=f"{diagnosis.says} {text}."))


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more
