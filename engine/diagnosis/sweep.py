"""Sweep: every GPU, host, service and job judged, what is wrong by root cause, worst first.

Of a large fleet the server is asked first who must be looked at (`engine.diagnosis.sweeppush`).
Hosts are fetched in groups, so that memory stays bound by the group, not by the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.diagnosis.fetch import Fetched, Fetcher
from engine.diagnosis.logged import short_host, strangers, unmatched
from engine.diagnosis.logwatch import LogWatch
from engine.diagnosis.present import current, newest, silent
from engine.diagnosis.railpeers import RailPeers
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.diagnosis.sweepaway import judged, of_gpus, pods_alone, targets
from engine.diagnosis.sweepgroups import Group, Listing, groups, listing
from engine.diagnosis.sweepholds import Server
from engine.diagnosis.sweepothers import beneath, of_hosts, of_workloads, pods, workloads
from engine.diagnosis.sweeppush import pick, worth_asking
from engine.diagnosis.sweepresult import Found, Plan, result
from engine.diagnosis.sweepsides import sides
from engine.errors import SourceError
from engine.model import Sweep
from engine.samples import Ints, Matcher, Selection
from engine.signals.hosts import UNAME, addresses
from engine.signals.labels import node_entity
from engine.signals.normalise import Readings
from engine.sources.port import Evaluator, Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine


async def sweep(
    engine: Engine,
    source: Source,
    *,
    at: float | None,
    window_s: float,
    where: Sequence[Matcher] = (),
    watch: LogWatch | None = None,
) -> Sweep:
    """Judge every GPU that a source holds (see `Engine.sweep`)."""
    fetcher = engine.fetcher
    span = fetcher.start(at, window_s).window_s
    watch = watch or LogWatch(None)
    # The moment of a file is that of its newest sample: not known before it is read.
    known_moment = at is not None or not source.rereads
    if known_moment:
        watch.start(None, at, span)
    plan = await _plan(engine, source, at, span, tuple(where), watch)
    found = Found(
        at=plan.at,
        unread=plan.unread,
        known=set(plan.settled),
        queries=plan.queries,
        waves=plan.waves,
        warnings=[*engine.catalogue.left_out, *engine.site.warnings, *plan.warnings],
    )
    peers = None if source.rereads else RailPeers(engine, where)  # a file gives all at once
    for group in plan.groups:
        await _judge_group(engine, source, found, group, plan, window_s, tuple(where), watch, peers)
    for selections in plan.workloads:
        await _judge_workloads(engine, source, found, selections, window_s)
    for selections in plan.away:
        await _judge_away(engine, source, found, selections, plan, window_s)
    if found.at is None and isinstance(source, Evaluator):  # nobody reports: the moment is now
        found.at = (await source.evaluate((), at=None)).at
    if not where:  # else the others are just not asked about
        found.warn(strangers(watch.events, found.known))
    found.warn(found.twice())
    return result(engine, found, plan, window_s)


async def _judge_group(
    engine: Engine,
    source: Source,
    found: Found,
    group: Group,
    plan: Plan,
    window_s: float,
    where: tuple[Matcher, ...],
    watch: LogWatch,
    peers: RailPeers | None,
) -> None:
    """Fetch the readings of some hosts and judge their GPUs, and what belongs to them.

    Raises:
        SourceError: the source does not answer, and nothing was judged yet.
    """
    fetcher = engine.fetcher
    got = fetcher.start(found.at, window_s)
    span = got.window_s
    try:
        await fetcher.ask(source, got, group.selections(fetcher, span, where))
    except SourceError as error:
        if not found.answers and not plan.settled:
            raise
        # What is judged is judged: the rest of the fleet is named as not seen.
        found.unreached += [node_entity(host) for host in group.hosts]
        found.warn([error.one_line()])
        return
    found.at = got.at
    if far := fetcher.addressed(got.batch.series, group.live, fetcher.names.host):
        await _ask_more(fetcher, source, got, far)
    running = [] if source.rereads else pods(fetcher, got.batch.series, span)
    if running:
        await _ask_more(fetcher, source, got, running)
    if peers:
        await peers.bring(source, got, group.live)
    if watch.pending:
        hosts_here = [e.host for e in fetcher.frame(got).frame.entities]
        watch.start(hosts_here, got.log_end, span)
    await watch.join(got)
    readings = _frame(fetcher, got)
    if peers:
        peers.sort(readings)
    hosts = {entity.host for entity in readings.frame.entities}
    found.known |= hosts
    got.warnings += unmatched(got.events, readings.frame, hosts, end=got.log_end)
    found.unread += [u for u in got.unread if u not in found.unread]
    found.queries += got.batch.queries
    found.waves += got.waves
    seen = engine.judge.observe(readings.frame)
    states = engine.judge.states(seen)
    chosen = current(readings, range(len(readings.frame)))
    # One of the requests may have failed: whoever reported just now is judged or named.
    came = {readings.frame.entities[i].host for i in chosen}
    found.unreached += [node_entity(host) for host in group.live if host not in came]
    asked = _one_a_host(readings.frame.host, chosen)
    found.answers += [engine.judge.judge(seen, i, states, unknowns=i in asked) for i in chosen]
    for i in chosen:
        entity = readings.frame.entities[i]
        if entity.uuid in plan.twice:
            found.twins.setdefault(entity.uuid, {})[entity.name] = newest(readings.frame, i)
    found.beside += of_hosts(engine, readings, chosen)
    if source.rereads:  # a file gave all at once
        found.beside += of_workloads(engine, readings)
        found.beside += judged(engine, readings, (), found.beside)
    found.warn([*got.warnings, *readings.warnings])


async def _judge_workloads(
    engine: Engine,
    source: Source,
    found: Found,
    selections: Sequence[Selection],
    window_s: float,
) -> None:
    """Fetch the readings of some services or jobs and judge them."""
    got = engine.fetcher.start(found.at, window_s)
    await _ask_more(engine.fetcher, source, got, selections)
    readings = engine.fetcher.frame(got)
    more = beneath(engine.fetcher, got, readings)
    if more:
        await _ask_more(engine.fetcher, source, got, more)
        readings = engine.fetcher.frame(got)
        found.beside += of_hosts(engine, readings, ())
    found.beside += of_workloads(engine, readings)
    found.queries += got.batch.queries
    found.waves += got.waves
    found.warn([*got.warnings, *readings.warnings])


async def _judge_away(
    engine: Engine,
    source: Source,
    found: Found,
    selections: Sequence[Selection],
    plan: Plan,
    window_s: float,
) -> None:
    """Fetch what no host of a GPU brings along, and judge it."""
    got = engine.fetcher.start(found.at, window_s)
    await _ask_more(engine.fetcher, source, got, selections)
    readings = engine.fetcher.frame(got)
    found.beside += judged(engine, readings, plan.pods, found.beside)
    found.queries += got.batch.queries
    found.waves += got.waves
    found.warn([*got.warnings, *readings.warnings])


async def _ask_more(
    fetcher: Fetcher, source: Source, got: Fetched, selections: Sequence[Selection]
) -> None:
    """Ask for what stands beside the GPUs: without it they are judged all the same."""
    try:
        await fetcher.ask(source, got, selections)
    except SourceError as error:
        got.warnings.append(error.one_line())


async def _plan(
    engine: Engine,
    source: Source,
    at: float | None,
    span: float,
    where: tuple[Matcher, ...],
    watch: LogWatch,
) -> Plan:
    """Find out which hosts there are, and which of them must be looked at."""
    if source.rereads:
        return Plan([Group()], at, warnings=source.take_warnings())
    before = source.queries
    there = await listing(engine.fetcher, source, at, span, where)
    watch.start(sorted(h for h in there.hosts_now if h), at, span)
    # The names of pods are not compared on the server.
    asks = worth_asking(there.now) and engine.site.job_of_pod is None
    if not isinstance(source, Evaluator) or not asks:
        plan = Plan(groups(there), at, waves=1)
    else:
        plan = await _pushed_down(engine, source, there, at, span, where, watch)
    plan.twice = there.twice()
    plan.workloads = list(workloads(engine.fetcher, there, span, where))
    plan.away += targets(engine.fetcher, span, where)
    plan.queries += source.queries - before
    plan.warnings += source.take_warnings()
    return plan


async def _pushed_down(
    engine: Engine,
    source: Server,
    there: Listing,
    at: float | None,
    span: float,
    where: tuple[Matcher, ...],
    watch: LogWatch,
) -> Plan:
    """Let the server find the hosts that must be looked at."""
    moment = (await source.evaluate((), at=at)).at
    log = engine.fetcher.start(moment, span)
    await watch.join(log)
    logged = {short_host(event.host) for event in log.events if event.host}
    boards = {event.uuid.lower() for event in log.events if event.uuid}
    # Jobs that only the map of the site knows are not compared on the server either.
    marked = (
        set(engine.site.by_host)
        | there.restless()
        | {
            row.place.host
            for row in there.now
            if short_host(row.place.host or "") in logged
            or (row.place.uuid or "").lower() in boards
        }
    )
    plan = Plan([], moment, queries=log.batch.queries, waves=1, unread=log.unread)
    plan.warnings += log.warnings
    try:
        known = await _addresses(source, there, at=moment, window_s=span)
        beside = await sides(engine, source, known, at=moment, window_s=int(span))
        plan.waves += beside.waves
        plan.warnings += [
            f"a query about ports, mounts or pods failed: {e.message}" for e in beside.failures[:1]
        ]
        found = await pick(
            engine,
            source,
            there.now,
            at=moment,
            window_s=span,
            where=where,
            marked=marked | beside.hosts,
            known=known,
        )
        plan.pods = await of_gpus(
            engine.fetcher, source, beside.pods, at=moment, window_s=span, where=where
        )
    except SourceError as error:
        plan.warnings.append(f"the sweep fetched all hosts in full: {error.message}")
        plan.groups = groups(there)
        return plan
    plan.groups = groups(there, found.judge)
    plan.away = list(pods_alone(engine.fetcher, plan.pods, span))
    plan.settled |= found.settled
    plan.healthy, plan.idle = found.healthy, found.idle
    plan.waves += found.waves
    plan.warnings += found.warnings
    return plan


async def _addresses(
    source: Source, there: Listing, *, at: float, window_s: float
) -> dict[str, str]:
    """Return which hosts are scraped at addresses that are not their names.

    Raises:
        SourceError: the source does not answer.
    """
    labels = ("instance", "nodename")
    uname = await source.label_sets((UNAME,), labels, at=at, window_s=window_s)
    return addresses(uname, (row.place for row in there.now))


def _one_a_host(host: Ints, chosen: Sequence[int]) -> set[int]:
    """Return the first GPU of each host: what an exporter lacks, it lacks for all of them."""
    first: dict[int, int] = {}
    for i in chosen:
        first.setdefault(int(host[i]), i)
    return set(first.values())


def _frame(fetcher: Fetcher, got: Fetched) -> Readings:
    """Return the readings of a group, over the last day if some GPU is silent in the window."""
    readings = fetcher.frame(got)
    frame = readings.frame
    if frame.timed and any(silent(frame, i) for i in range(len(frame))):
        got.window_s = LOOKBACK_LOST_S
        readings = fetcher.frame(got)
    return readings
