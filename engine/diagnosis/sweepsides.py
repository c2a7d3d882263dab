"""Which ports, mounts and pods of a large fleet must be looked at.

Ports and mounts are labelled by the address of node_exporter and what they are: a device, a mount
point, an NFS export; pods by namespace and name. A server is asked about each kind by its labels,
with the same conditions as for GPUs (`engine.diagnosis.sweepqueries`); what it finds is a superset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from engine.condition import LabelProfile
from engine.diagnosis.judge import Judge
from engine.diagnosis.preselect import Need, needs_of, reduced, suspicious
from engine.diagnosis.sweepask import ask
from engine.diagnosis.sweepholds import Server, several
from engine.diagnosis.sweephosts import Roster, rows_of
from engine.diagnosis.sweepqueries import SLACK, Bit, Known, compares, known, symptom
from engine.errors import SourceError
from engine.samples import Matcher
from engine.signals.entities import VIRTUAL
from engine.signals.labels import HOST_LABELS, first, host_of_instance

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_ADDRESS = "instance"


@dataclass(frozen=True, slots=True)
class _Side:
    """One way of labelling: what names a thing and where it is, and what its siblings share."""

    scope: str
    label: str
    siblings: str
    selector: tuple[Matcher, ...] = ()
    where: str = _ADDRESS


_SIDES = (
    _Side("port", "device", _ADDRESS, (Matcher("device", "!~", VIRTUAL + ".*"),)),
    _Side("filesystem", "mountpoint", "mountpoint"),
    _Side("filesystem", "export", "export"),
    _Side("filesystem", "device", _ADDRESS),
    _Side("pod", "exported_pod", "exported_namespace", where="exported_namespace"),
    _Side("pod", "pod", "namespace", (Matcher("exported_pod", "=", ""),), where="namespace"),
)


@dataclass(slots=True)
class Sides:
    """The hosts and pods (namespace, name) that must be looked at, and what went wrong."""

    hosts: set[str] = field(default_factory=set)
    pods: set[tuple[str, str]] = field(default_factory=set)
    failures: list[SourceError] = field(default_factory=list)
    waves: int = 0


async def sides(
    engine: Engine, source: Server, known_at: Mapping[str, str], *, at: float, window_s: int
) -> Sides:
    """Ask about all ports, mounts and pods of a server.

    ``known_at`` is scrape address to host, where that is not its name.

    Raises:
        SourceError: the server does not even say what it holds.
    """
    out = Sides(waves=4)
    names = await _names(engine, source, at, window_s)
    known_here = {
        side: known(engine.catalogue, some, (), (), window_s) for side, some in names.items()
    }
    for side, here in known_here.items():
        others = [k for s, k in known_here.items() if s is not side and s.scope == side.scope]
        await _ask(engine, source, side, here, others, sorted(names[side]), known_at, out, at=at)
    return out


async def _names(
    engine: Engine, source: Server, at: float, window_s: int
) -> dict[_Side, frozenset[str]]:
    """Return the metric names that there are of each kind, each name once."""
    every = engine.fetcher.names.others
    found = await asyncio.gather(
        *(
            source.label_sets(
                every[side.scope],
                ("__name__",),
                at=at,
                window_s=window_s,
                matchers=(Matcher(side.label, "!=", ""), *side.selector),
            )
            for side in _SIDES
        )
    )
    taken: dict[str, set[str]] = {}
    out: dict[_Side, frozenset[str]] = {}
    for side, rows in zip(_SIDES, found, strict=True):
        # Series of a pod have one label or the other; what a mount is called may stand in several.
        before = taken.setdefault(side.label if side.scope == "pod" else side.scope, set())
        new = {row["__name__"] for row in rows if "__name__" in row} - before
        before |= new
        if new:
            out[side] = frozenset(new)
    return out


async def _ask(
    engine: Engine,
    source: Server,
    side: _Side,
    here: Known,
    others: list[Known],
    names: list[str],
    known_at: Mapping[str, str],
    out: Sides,
    *,
    at: float,
) -> None:
    entity = (side.where, side.label)
    profile = LabelProfile(
        entity=entity,
        host=side.siblings,
        rail=side.label if side.scope == "port" else "",
        selector=side.selector,
        one_series=False,
        closed=True,
        slack=SLACK,
    )
    here = replace(here, several=await several(source, here, (), profile, at))
    bits, needs = _needs(engine.judges.of(side.scope), here, others)
    if needs == []:
        return
    found = await source.label_sets(
        names,
        (*entity, *HOST_LABELS),
        at=at,
        window_s=here.window_s,
        matchers=(Matcher(side.label, "!=", ""), *side.selector),
    )
    roster = Roster(entity, side.siblings, ())
    owners: list[set[str]] = []
    for row in rows_of(found):
        key = (row.labels.get(side.where, ""), row.labels.get(side.label, ""))
        number = roster.keys.setdefault(key, len(roster.keys))
        if number == len(owners):
            owners.append(set())
            roster.hosts.setdefault(row.labels.get(side.siblings, ""), []).append(number)
        name = first(row.labels, HOST_LABELS) or host_of_instance(key[0])
        name = known_at.get(name or "", name)
        if name:
            owners[number].add(name)
    every = list(roster.keys)
    if needs is None:
        _mark(out, side, every, owners)
        return
    told = await ask(source, roster, list(bits.values()), profile, at=at)
    out.failures += told.failures
    out.waves += told.waves
    marked = told.untold | suspicious(needs, told.may_be, len(roster))
    some = np.flatnonzero(marked).tolist()
    _mark(out, side, [every[k] for k in some], [owners[k] for k in some])


def _mark(
    out: Sides, side: _Side, keys: Iterable[tuple[str, ...]], owners: Iterable[set[str]]
) -> None:
    """Note that some things must be looked at: pods themselves, all others with their hosts."""
    if side.scope == "pod":
        out.pods |= {(namespace, pod) for namespace, pod in keys}
    else:
        out.hosts |= {name for some in owners for name in some}


def _needs(
    judge: Judge, here: Known, others: list[Known]
) -> tuple[Mapping[str, Bit], list[Need] | None]:
    """Return what to ask of one kind, and what makes one of it suspicious; None: everything does.

    A symptom that reads signals of another kind is left open where a pattern needs one of this.
    """
    elsewhere = frozenset().union(*(other.present for other in others)) - here.present
    never: set[str] = set()
    untold: set[str] = set()
    inside: set[str] = set()
    bits: dict[str, Bit] = {}
    for name, condition in judge.observer.conditions.items():
        if not condition.signals.isdisjoint(elsewhere):
            untold.add(name)
            continue
        bit = symptom(name, condition, here, loose=True)
        if bit is False:
            never.add(name)
            continue
        inside.add(name)
        if isinstance(bit, Bit):
            bits[name] = bit
        else:
            untold.add(name)
    compared = {n for n in inside if compares(judge.observer.conditions[n].tree)}
    wanted = [need for need in needs_of(judge.causes, compared) if need.symptoms & inside]
    needs = reduced(wanted, frozenset(never), frozenset(untold))
    if needs is None:
        return {}, None
    asked = {name for need in needs for name in need.symptoms}
    return {name: bit for name, bit in bits.items() if name in asked}, needs
