"""What nodes say of their GPUs in a sweep: conditions that read nothing of the GPUs themselves.

Series of nodes name their host by other labels than those of GPUs, if at all. What they share is
the address they were scraped from, so that is what a server is asked by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from engine.condition import LabelProfile
from engine.diagnosis.observe import Bools
from engine.diagnosis.sweepask import Asked, ask
from engine.diagnosis.sweepholds import Server, several
from engine.diagnosis.sweephosts import Roster, Row, rows_of
from engine.diagnosis.sweepqueries import SLACK, Bit, known, symptom
from engine.errors import SourceError
from engine.signals.labels import HOST_LABELS, host_of_instance

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_ADDRESS = "instance"


@dataclass(slots=True)
class Nodes:
    """What was asked about nodes.

    Attributes:
        present: ids of the signals of nodes that there are.
        settled: symptoms to whether they are true of all nodes, or of none.
        untold: symptoms that the server cannot narrow down.
        asked: the answers, by address; None if nothing had to be asked.
        hosts: number of an address to the names of the hosts it speaks of.
        waves: how often was asked.
    """

    present: frozenset[str]
    settled: dict[str, bool] = field(default_factory=dict)
    untold: set[str] = field(default_factory=set)
    asked: Asked | None = None
    hosts: list[set[str]] = field(default_factory=list)
    waves: int = 0

    def spread(self, roster: Roster, names: Mapping[str, str]) -> dict[str, Bools]:
        """Return for every symptom which GPUs of a roster stand in a node where it may be true.

        Args:
            roster: the GPUs.
            names: the roster's hosts to their names.
        """
        if self.asked is None:
            return {}
        members: dict[str, list[int]] = {}
        for host, gpus in roster.hosts.items():
            members.setdefault(names[host], []).extend(gpus)
        out = {}
        for symptom_, at_address in self.asked.may_be.items():
            out[symptom_] = np.zeros(len(roster), dtype=np.bool_)
            for number in np.flatnonzero(at_address | self.asked.untold).tolist():
                for name in self.hosts[number]:
                    out[symptom_][members.get(name, [])] = True
        return out


async def nodes_of(
    engine: Engine,
    source: Server,
    rows: Sequence[Row],
    known_at: Mapping[str, str],
    *,
    at: float,
    window_s: int,
) -> Nodes:
    """Ask about the conditions that read signals of nodes only.

    Args:
        engine: rules and what they need.
        source: the server.
        rows: the GPUs.
        known_at: scrape address to host, where that is not its name.
        at: the moment judged (Unix s).
        window_s: how far back readings count (s).

    Raises:
        SourceError: the server does not answer.
    """
    conditions = {
        name: condition
        for name, condition in engine.judge.observer.conditions.items()
        if condition.signals
        and all(engine.catalogue.signals[s].scope == "node" for s in condition.signals)
    }
    names = engine.fetcher.names.node
    if not names:
        return Nodes(frozenset())
    labels = ("__name__", _ADDRESS, *HOST_LABELS)
    found = await source.label_sets(names, labels, at=at, window_s=window_s)
    there = known(engine.catalogue, {row["__name__"] for row in found}, (), (), window_s)
    profile = LabelProfile(
        entity=(_ADDRESS,),
        host=_ADDRESS,
        one_series=False,
        closed=True,
        slack=SLACK,
    )
    there = replace(there, several=await several(source, there, (), profile, at))
    signals = {s for s in there.present if s in there.catalogue.signals}
    nodes = Nodes(frozenset(signals), waves=2)
    roster = _roster(nodes, found, rows, known_at)
    bits: list[Bit] = []
    for name, condition in conditions.items():
        bit = symptom(name, condition, there, loose=True)
        if isinstance(bit, Bit):
            bits.append(bit)
        elif bit is None:
            nodes.untold.add(name)
        else:
            nodes.settled[name] = bit
    if bits:
        nodes.asked = await ask(source, roster, bits, profile, at=at)
        nodes.waves += nodes.asked.waves
    return nodes


def _roster(
    nodes: Nodes,
    found: Sequence[Mapping[str, str]],
    rows: Sequence[Row],
    known_at: Mapping[str, str],
) -> Roster:
    """Number the addresses, and note which hosts each speaks of."""
    gpus: dict[str, set[str]] = {}
    for row in rows:
        if row.place.instance and row.place.host:
            gpus.setdefault(row.place.instance, set()).add(row.place.host)
    roster = Roster((_ADDRESS,), _ADDRESS, ())
    for row in rows_of(found):
        address = row.labels.get(_ADDRESS, "")
        number = roster.keys.setdefault((address,), len(roster.keys))
        if number == len(nodes.hosts):
            nodes.hosts.append(set(gpus.get(address, ())))
            roster.hosts[address] = [number]
            if at_port := host_of_instance(address):
                nodes.hosts[number].add(known_at.get(at_port, at_port))
        if row.place.host:
            nodes.hosts[number].add(row.place.host)
    return roster


def failures(nodes: Nodes) -> list[SourceError]:
    """Return what went wrong."""
    return nodes.asked.failures if nodes.asked else []
