"""Root causes with where they were seen; those of several hosts with one origin put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.diagnosis.compose import below, key_of
from engine.diagnosis.judge import Judgement
from engine.diagnosis.onrail import by_rail, is_port
from engine.diagnosis.racks import by_rack
from engine.diagnosis.rank import Key
from engine.model import Diagnosis, Entity, Incident, Kind


def gathered(
    roots: Iterable[Diagnosis],
    answers: Sequence[Judgement],
    racks: Mapping[str, str],
) -> list[Incident]:
    """Return one incident per root cause, worst first.

    Args:
        roots: the causes, with what hangs beneath them.
        answers: what was found of GPUs, nodes, services and so on.
        racks: host to rack, as far as the map of the site says.

    Returns:
        The members are where the cause or one of its effects was seen, GPUs first.
    """
    seen: dict[Key, dict[tuple[object, ...], Entity]] = {}
    for answer in answers:
        for one in answer.diagnoses:
            seen.setdefault(key_of(one), {})[_place(answer.entity)] = answer.entity
    out = []
    for root in roots:
        keys = [key_of(root), *((e.cause, e.entity.key) for e in below(root.effects))]
        members = {place: e for key in keys for place, e in seen.get(key, {}).items()}
        out.append(Incident(root, tuple(members[place] for place in sorted(members))))
    ports = [(e.host, e.instance) for e in (a.entity for a in answers) if is_port(e)]
    at = {key: list(found.values()) for key, found in seen.items()}
    return by_rail(by_rack(out, racks), at, [(h, n) for h, n in ports if h and n])


def _place(entity: Entity) -> tuple[object, ...]:
    """Sort key of a member: GPUs first, 2 before 10."""
    gpu = -1 if entity.gpu is None else entity.gpu
    kind = entity.kind is not Kind.GPU
    return (kind, entity.cluster or "", entity.host or "", gpu, *entity.key)
