"""Sweep: every GPU judged, what is wrong grouped by root cause, worst first.

Hosts are fetched in groups, so that memory stays bound by the group, not by the fleet.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from engine.diagnosis.combine import merge_unknown, order
from engine.diagnosis.fetch import LOOKBACK_LOST_S, Fetched, Fetcher
from engine.diagnosis.judge import Judgement
from engine.diagnosis.logged import strangers, unknown_logs, unmatched
from engine.diagnosis.logwatch import LogWatch
from engine.diagnosis.present import current, gone, silent
from engine.errors import SourceError
from engine.model import Diagnosis, Entity, Incident, Sweep, Verdict
from engine.samples import Ints, Matcher, Selection
from engine.signals.labels import HOST_LABELS, IDENTITY_LABELS, Place, locate, node_entity
from engine.signals.normalise import Readings
from engine.sources.logs.port import Unread
from engine.sources.port import Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# Hosts per request: 16 hosts of 8 GPUs are about 5,000 series, 8 MB of a 15-minute window.
HOSTS_PER_REQUEST = 16
_SHOWN_UNSEEN = 200
_WHERE = (*HOST_LABELS, "instance")


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
    groups = await _groups(engine, source, at, span, tuple(where))
    if known_moment:
        watch.start([host for group in groups for host in group.live], at, span)
    queries, waves = (0, 0) if source.rereads else (2, 1)
    warnings = [*engine.catalogue.left_out, *source.take_warnings()]
    answers: list[Judgement] = []
    unread: list[Unread] = []
    known: set[str | None] = set()
    unreached: list[Entity] = []
    moment = at
    for group in groups:
        got = fetcher.start(moment, window_s)
        try:
            await fetcher.ask(source, got, group.selections(fetcher, span, tuple(where)))
        except SourceError as error:
            if not answers:
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
    found = _result(engine, answers, unreached, moment, window_s, queries, waves, warnings)
    logs = unknown_logs(unread, engine.told_by_logs)
    return replace(found, unknown=(*logs, *found.unknown)) if logs else found


@dataclass(frozen=True, slots=True)
class _Group:
    """Some hosts that are asked about together, or all of them.

    ``live`` are those that report, ``exporters`` their scrape addresses, ``gone`` their GPUs that
    stopped before the window.
    """

    hosts: tuple[str, ...] = ()
    matchers: tuple[Matcher, ...] = ()
    live: tuple[str, ...] = ()
    exporters: tuple[str, ...] = ()
    gone: tuple[Place, ...] = ()

    def selections(
        self, fetcher: Fetcher, window_s: float, where: tuple[Matcher, ...]
    ) -> list[Selection]:
        """Return what is asked about the group, in one wave."""
        matchers = (*self.matchers, *where)
        out = [Selection(fetcher.names.gpu + fetcher.names.node, matchers, window_s)]
        if not self.matchers:
            out.append(Selection(fetcher.sign_of_life(), matchers, LOOKBACK_LOST_S))
        if self.exporters:  # what speaks of a node names it by another label, or not at all
            pattern = "|".join(re.escape(e) for e in self.exporters)
            where_from = (Matcher("instance", "=~", pattern),)
            out.append(Selection(fetcher.names.node, where_from, window_s))
        return out + fetcher.history_of(self.gone, fetcher.sign_of_life())


async def _groups(
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
    where: tuple[Matcher, ...],
) -> list[_Group]:
    """Return the groups that together cover every GPU once."""
    if source.rereads:
        return [_Group()]
    fetcher = engine.fetcher
    ask = partial(source.label_sets, labels=IDENTITY_LABELS, at=at, matchers=where)
    now, day = await asyncio.gather(
        ask(fetcher.core_names(), window_s=window_s),
        ask(fetcher.sign_of_life(), window_s=LOOKBACK_LOST_S),
    )
    live = [locate(row) for row in now]
    lost = gone([locate(row) for row in day], live)
    hosts_now = {place.host for place in live}
    rows = now + [row for row in day if locate(row).host not in hosts_now]
    groups = []
    for k, label in enumerate(_WHERE):
        absent = _WHERE[:k]
        of_host: dict[str, list[Place]] = {}
        for row in rows:
            if row.get(label) and not any(row.get(name) for name in absent):
                of_host.setdefault(row[label], []).append(locate(row))
        hosts = sorted(of_host)
        for first in range(0, len(hosts), HOSTS_PER_REQUEST):
            some = hosts[first : first + HOSTS_PER_REQUEST]
            places = {h: of_host[h] for h in some}
            groups.append(_group(label, absent, places, hosts_now, lost))
    return groups


def _group(
    label: str,
    absent: Iterable[str],
    of_host: Mapping[str, Sequence[Place]],
    hosts_now: Container[str | None],
    lost: Iterable[Place],
) -> _Group:
    pattern = "|".join(re.escape(host) for host in of_host)
    places = [place for found in of_host.values() for place in found]
    names = {place.host for place in places}
    return _Group(
        hosts=tuple(of_host),
        matchers=(Matcher(label, "=~", pattern), *(Matcher(name, "=", "") for name in absent)),
        live=tuple(sorted({p.host for p in places if p.host and p.host in hosts_now})),
        exporters=tuple(sorted({p.instance for p in places if p.instance})),
        gone=tuple(p for p in lost if p.host in names),
    )


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
    unseen = [*unreached, *(a.entity for a in answers if a.verdict is Verdict.UNKNOWN)]
    return Sweep(
        at=at,
        window_s=window_s,
        incidents=tuple(incidents(answers)),
        checked={"gpu": len(answers), "node": len({a.entity.host for a in answers})},
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
