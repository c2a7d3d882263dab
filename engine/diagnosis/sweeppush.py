"""The pushed-down part of a sweep: the server says which hosts have to be looked at.

First what the server holds and how it lies there, then every question about every GPU
(`engine.diagnosis.sweepqueries`). A host with a GPU that may have anything is judged from its raw
samples; the GPUs of all others are healthy or idle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.diagnosis.observe import Bools
from engine.diagnosis.preselect import idle, suspicious
from engine.diagnosis.sweepask import Asked, ask
from engine.diagnosis.sweepholds import Holdings, Server, holdings
from engine.diagnosis.sweephosts import Roster, Row, Where, odd_hosts, rosters
from engine.diagnosis.sweepnodes import failures, nodes_of
from engine.diagnosis.sweepplan import Plan, idle_bit, plan
from engine.diagnosis.sweepshown import signatures
from engine.samples import Matcher

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# Fewer hosts are fetched in so few requests that asking first would cost more.
FEWEST_HOSTS = 48


@dataclass(slots=True)
class Picked:
    """What the server settled, and what it did not.

    Attributes:
        judge: hosts that must be judged from their samples.
        settled: names of the hosts of which nothing was found.
        healthy: GPUs of those that work.
        idle: GPUs of those that have nothing to do.
        waves: how often was asked, one wave after the other.
        warnings: what the server could not answer.
    """

    judge: set[Where]
    settled: set[str] = field(default_factory=set)
    healthy: int = 0
    idle: int = 0
    waves: int = 0
    warnings: list[str] = field(default_factory=list)


def worth_asking(rows: Sequence[Row]) -> bool:
    """Return whether there are so many hosts that asking first saves work."""
    return len({row.where for row in rows}) >= FEWEST_HOSTS


async def pick(
    engine: Engine,
    source: Server,
    rows: Sequence[Row],
    *,
    at: float,
    window_s: float,
    where: tuple[Matcher, ...],
    marked: Collection[str | None],
    known: Mapping[str, str],
) -> Picked:
    """Find the hosts that must be looked at.

    Args:
        engine: rules and what they need.
        source: the server.
        rows: the GPUs with a core reading in the window.
        at: the moment judged (Unix s).
        window_s: how far back readings count (s).
        where: what the sweep is narrowed to.
        marked: names of hosts that must be looked at in any case.
        known: scrape address to host, where that is not its name.

    Raises:
        SourceError: the server does not even say what it holds.
    """
    picked = Picked({row.where for row in rows if row.where})
    odd = odd_hosts(rows) | {r.where for r in rows if r.where and r.place.host in marked}
    found = [r for r in rosters(rows, odd) if len(r.hosts) >= FEWEST_HOSTS]
    if not found:
        return picked
    span = int(window_s)
    names = {row.where: row.place.host or "" for row in rows if row.where}
    nodes = await nodes_of(engine, source, rows, known, at=at, window_s=span)
    picked.waves += nodes.waves
    picked.warnings += [f"a query about nodes failed: {e.message}" for e in failures(nodes)[:1]]
    for roster in found:
        here = await holdings(
            engine, source, roster, rows, at=at, window_s=span, where=where, also=nodes.present
        )
        asking = plan(engine.judge, engine.fetcher.names.gpu, here.known, nodes) if here else None
        if here is None or asking is None:
            continue
        told = await ask(source, roster, asking.bits, here.profile, at=at)
        own = {host: names[roster.host, host] for host in roster.hosts}
        told.may_be.update(nodes.spread(roster, own))
        quiet, resting = _quiet(roster, here, asking, told)
        shown = await signatures(source, roster, here, quiet, at=at)
        picked.waves += here.waves + told.waves + 1
        picked.warnings += _failed(told)
        for host in quiet:
            if host in shown:
                continue
            picked.judge.discard((roster.host, host))
            picked.settled.add(own[host])
            idle_here = int(resting[roster.hosts[host]].sum())
            picked.idle += idle_here
            picked.healthy += len(roster.hosts[host]) - idle_here
    return picked


def _quiet(roster: Roster, here: Holdings, asking: Plan, told: Asked) -> tuple[list[str], Bools]:
    """Return the hosts of which nothing was found, and which GPUs are idle."""
    n = len(roster)
    found = told.untold | suspicious(asking.needs, told.may_be, n)
    true = {s: np.full(n, value, dtype=np.bool_) for s, value in asking.settled.items()}
    true |= {s: told.may_be[idle_bit(s)] for s in asking.resting.symptoms if s not in true}
    resting = idle(asking.resting, true, n)
    quiet = [
        host
        for host, members in roster.hosts.items()
        if (roster.host, host) not in here.odd and not found[members].any()
    ]
    return sorted(quiet), resting


def _failed(told: Asked) -> list[str]:
    if not told.failures:
        return []
    why = told.failures[-1].message
    if not told.untold.any():
        return [f"a query of the sweep failed and was asked again in parts: {why}"]
    share = f"{int(told.untold.sum())} of {len(told.untold)} GPUs"
    return [f"{share} were judged from their raw samples, as queries failed: {why}"]
