"""Ports of one rail that show the same on several hosts: one incident of what they share.

Port k of every host of a rail-optimised cluster goes to the same leaf switch (NVIDIA DGX SuperPOD
reference architecture, compute fabric). Faults of single cables scatter over the ports; where a
fault keeps to one port of several hosts, that switch is looked at first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.diagnosis.combine import order
from engine.model import Diagnosis, Effect, Entity, Incident, Kind, Step

_OF_LINKS = frozenset({"ib_link_down", "ib_link_degraded"})
_OF_NETWORK = "network_congestion"
# By chance three cables of many go bad at the same port of their hosts less often than a switch.
_FEWEST = 3
# So much of all ports concerned must be of the rail.
_MOST = 0.75
_NAMED = 6
_EVIDENCE = 8

Port = tuple[str, str]


def by_rail(incidents: Sequence[Incident]) -> list[Incident]:
    """Put faults of links together that keep to one port of three hosts or more.

    Args:
        incidents: one a cause and entity, worst first; members that are ports say which.
    """
    out = [_told_where(one) for one in incidents]
    groups: dict[tuple[str, str | None], list[Incident]] = {}
    for one in out:
        if one.diagnosis.cause in _OF_LINKS and one.diagnosis.entity.kind is Kind.NODE:
            where = (one.diagnosis.cause, one.diagnosis.entity.cluster)
            groups.setdefault(where, []).append(one)
    for (_, cluster), some in groups.items():
        shared = _rail([port for one in some for port in _ports(one)])
        mine = [one for one in some if shared and {name for _, name in _ports(one)} == {shared}]
        if shared and len(mine) >= _FEWEST:
            out = [one for one in out if one not in mine]
            out.append(_merged(shared, cluster, mine))
    return sorted(out, key=lambda one: order(one.diagnosis))


def _ports(incident: Incident) -> list[Port]:
    """Return (host, port) of the ports among the members."""
    return [(m.host, m.instance) for m in incident.members if m.host and m.instance and _is_port(m)]


def _is_port(entity: Entity) -> bool:
    return entity.kind is Kind.NODE and entity.name == f"{entity.host} {entity.instance}"


def _rail(ports: Sequence[Port]) -> str | None:
    """Return the port that most of some ports are, of enough hosts; None if they scatter."""
    of_name = Counter(name for _, name in ports)
    if not of_name:
        return None
    name, count = min(of_name.items(), key=lambda pair: (-pair[1], pair[0]))
    hosts = {host for host, other in ports if other == name}
    return name if len(hosts) >= _FEWEST and count >= _MOST * len(ports) else None


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


def _told_where(incident: Incident) -> Incident:
    """Say at which ports it was seen: of a host that has it at several, of congestion anyway."""
    diagnosis = incident.diagnosis
    ports = _ports(incident)
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
