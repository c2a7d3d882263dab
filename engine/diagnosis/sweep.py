"""Sweep: every GPU judged, what is wrong grouped by root cause, worst first.

Of a large fleet the server is asked first who must be looked at (`engine.diagnosis.sweeppush`).
Hosts are fetched in groups, so that memory stays bound by the group, not by the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.diagnosis.combine import merge_unknown, order
from engine.diagnosis.fetch import LOOKBACK_LOST_S, Fetched, Fetcher
from engine.diagnosis.judge import Judgement
from engine.diagnosis.logged import short_host, strangers, unknown_logs, unmatched
from engine.diagnosis.logwatch import LogWatch
from engine.diagnosis.present import current, silent
from engine.diagnosis.sweepgroups import Group, Listing, groups, listing
from engine.diagnosis.sweepholds import Server
from engine.diagnosis.sweeppush import pick, worth_asking
from engine.errors import SourceError
from engine.model import Diagnosis, Entity, Incident, Sweep, Verdict
from engine.samples import Ints, Matcher
from engine.signals.labels import node_entity
from engine.signals.normalise import Readings
from engine.sources.logs.port import Unread
from engine.sources.port import Evaluator, Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_SHOWN_UNSEEN = 200


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
    queries, waves = plan.queries, plan.waves
    warnings = [*engine.catalogue.left_out, *plan.warnings]
    answers: list[Judgement] = []
    unread = plan.unread
    known: set[str | None] = set(plan.settled)
    unreached: list[Entity] = []
    moment = plan.at
    for group in plan.groups:
        got = fetcher.start(moment, window_s)
        try:
            await fetcher.ask(source, got, group.selections(fetcher, span, tuple(where)))
        except SourceError as error:
            if not answers and not plan.settled:
                raise
            # What is judged is judged: the rest of the fleet is named as not seen.
            unreached += [node_entity(host) for host in group.hosts]
            warnings += [w for w in [error.one_line()] if w not in warnings]
            continue
        moment = got.at
        if watch.pending:
            hosts_here = [e.host for e in fetcher.frame(got).frame.entities]
            watch.start(hosts_here, got.log_end, span)
        await watch.join(got)
        readings = _frame(fetcher, got)
        hosts = {entity.host for entity in readings.frame.entities}
        known |= hosts
        got.warnings += unmatched(got.events, readings.frame, hosts, end=got.log_end)
        unread += [u for u in got.unread if u not in unread]
        queries += got.batch.queries
        waves += got.waves
        seen = engine.judge.observe(readings.frame)
        states = engine.judge.states(seen)
        chosen = current(readings, range(len(readings.frame)))
        # One of the requests may have failed: whoever reported just now is judged or named.
        came = {readings.frame.entities[i].host for i in chosen}
        unreached += [node_entity(host) for host in group.live if host not in came]
        asked = _one_a_host(readings.frame.host, chosen)
        answers += [engine.judge.judge(seen, i, states, unknowns=i in asked) for i in chosen]
        warnings += [w for w in got.warnings + readings.warnings if w not in warnings]
    if not where:  # else the others are just not asked about
        warnings += strangers(watch.events, known)
    found = _result(engine, answers, plan, unreached, moment, window_s, queries, waves, warnings)
    logs = unknown_logs(unread, engine.told_by_logs)
    return replace(found, unknown=(*logs, *found.unknown)) if logs else found


@dataclass(slots=True)
class _Plan:
    """What is fetched and judged, and what the server settled before.

    ``at`` is the moment judged, None if the first answer tells it; ``settled`` are the hosts of
    the ``healthy`` and ``idle`` GPUs of which nothing has to be fetched.
    """

    groups: list[Group]
    at: float | None
    settled: set[str | None] = field(default_factory=set)
    healthy: int = 0
    idle: int = 0
    queries: int = 0
    waves: int = 0
    warnings: list[str] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


async def _plan(
    engine: Engine,
    source: Source,
    at: float | None,
    span: float,
    where: tuple[Matcher, ...],
    watch: LogWatch,
) -> _Plan:
    """Find out which hosts there are, and which of them must be looked at."""
    if source.rereads:
        return _Plan([Group()], at, warnings=source.take_warnings())
    before = source.queries
    there = await listing(engine.fetcher, source, at, span, where)
    watch.start(sorted(h for h in there.hosts_now if h), at, span)
    if not isinstance(source, Evaluator) or not worth_asking(there.now):
        plan = _Plan(groups(there), at, waves=1)
    else:
        plan = await _pushed_down(engine, source, there, at, span, where, watch)
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
) -> _Plan:
    """Let the server find the hosts that must be looked at."""
    moment = (await source.evaluate((), at=at)).at
    log = engine.fetcher.start(moment, span)
    await watch.join(log)
    logged = {short_host(event.host) for event in log.events if event.host}
    boards = {event.uuid.lower() for event in log.events if event.uuid}
    marked = there.restless() | {
        row.place.host
        for row in there.now
        if short_host(row.place.host or "") in logged or (row.place.uuid or "").lower() in boards
    }
    plan = _Plan([], moment, queries=log.batch.queries, waves=1, unread=log.unread)
    plan.warnings += log.warnings
    try:
        found = await pick(
            engine, source, there.now, at=moment, window_s=span, where=where, marked=marked
        )
    except SourceError as error:
        plan.warnings.append(f"the sweep fetched all hosts in full: {error.message}")
        plan.groups = groups(there)
        return plan
    plan.groups = groups(there, found.judge)
    plan.settled |= found.settled
    plan.healthy, plan.idle = found.healthy, found.idle
    plan.waves += found.waves
    plan.warnings += found.warnings
    return plan


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


def _result(
    engine: Engine,
    answers: Sequence[Judgement],
    plan: _Plan,
    unreached: Sequence[Entity],
    at: float | None,
    window_s: float,
    queries: int,
    waves: int,
    warnings: Sequence[str],
) -> Sweep:
    verdicts = {v.value: 0 for v in Verdict}
    for answer in answers:
        verdicts[answer.verdict.value] += 1
    verdicts[Verdict.HEALTHY.value] += plan.healthy
    verdicts[Verdict.IDLE.value] += plan.idle
    judged = {a.entity.host for a in answers}
    unseen = [*unreached, *(a.entity for a in answers if a.verdict is Verdict.UNKNOWN)]
    return Sweep(
        at=at,
        window_s=window_s,
        incidents=tuple(incidents(answers)),
        checked={
            "gpu": len(answers) + plan.healthy + plan.idle,
            "node": len(judged | plan.settled),
        },
        verdicts=verdicts,
        unknown=merge_unknown(u for a in answers for u in a.unknown),
        engine=engine.info,
        queries=queries,
        waves=waves,
        warnings=tuple(warnings),
        unseen=tuple(unseen[:_SHOWN_UNSEEN]),
    )


def incidents(answers: Sequence[Judgement]) -> list[Incident]:
    """Group the diagnoses of many GPUs: one incident per cause and entity, worst first."""
    found: dict[tuple[str, tuple[str, str, str]], tuple[Diagnosis, list[Entity]]] = {}
    for answer in answers:
        for one in answer.diagnoses:
            key = (one.cause, one.entity.key)
            _, members = found.setdefault(key, (one, []))
            members.append(answer.entity)
    ordered = sorted(found.values(), key=lambda pair: order(pair[0]))
    return [Incident(diagnosis, tuple(members)) for diagnosis, members in ordered]
