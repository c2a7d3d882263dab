"""Nodes of one rack that show the same: one incident of the rack, whose power they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.diagnosis.combine import order
from engine.model import Diagnosis, Entity, Incident, Kind

# What a rack's power feeds and cooling bring about; other causes may come together by chance.
_SHARED = frozenset({"power_brake", "platform_power_cap", "node_airflow"})
_FEWEST = 2
_NAMED = 6

_Where = tuple[str, str | None, str]


def by_rack(incidents: Sequence[Incident], racks: Mapping[str, str]) -> list[Incident]:
    """Put incidents of nodes together where half of a rack's nodes, two at least, have the same.

    Args:
        incidents: one a cause and entity, worst first.
        racks: host to rack.
    """
    there = Counter(racks.values())
    together: dict[_Where, list[Incident]] = {}
    for one in incidents:
        entity = one.diagnosis.entity
        rack = racks.get(entity.host or "") if entity.kind is Kind.NODE else None
        if rack and one.diagnosis.cause in _SHARED:
            together.setdefault((one.diagnosis.cause, entity.cluster, rack), []).append(one)
    out = list(incidents)
    for (_, cluster, rack), some in together.items():
        if len(some) >= _FEWEST and 2 * len(some) >= there[rack]:
            mine = {id(one) for one in some}
            out = [one for one in out if id(one) not in mine]
            out.append(_merged(rack, cluster, some, there[rack]))
    return sorted(out, key=lambda one: order(one.diagnosis))


def _merged(rack: str, cluster: str | None, some: Sequence[Incident], of: int) -> Incident:
    parts: list[Diagnosis] = [one.diagnosis for one in some]
    first = parts[0]
    names = [d.entity.name for d in parts]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    says = (
        f"{len(names)} of {of} nodes of rack {rack} have it ({', '.join(names[:_NAMED])}{more}):"
        f" they share power feeds and cooling, so look at the rack first. {first.says}"
    )
    told = [d.since for d in parts if d.since is not None]
    merged = replace(
        first,
        entity=Entity(Kind.RACK, f"rack/{rack}", cluster),
        says=says,
        evidence=(*first.evidence, *(d.evidence[0] for d in parts[1:] if d.evidence)),
        effects=tuple(effect for d in parts for effect in d.effects),
        since=min(told, default=None),
    )
    members = {member.key: member for one in some for member in one.members}
    return Incident(merged, tuple(members.values()))
