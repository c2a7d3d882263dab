"""Sweep: every GPU judged, what is wrong grouped by root cause, worst first.

Hosts are fetched in groups, so that memory stays bound by the group, not by the fleet.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.diagnosis.combine import merge_unknown, order
from engine.diagnosis.fetch import LOOKBACK_LOST_S, Fetched, Fetcher
from engine.diagnosis.judge import Judgement
from engine.diagnosis.present import current, gone, silent
from engine.model import Diagnosis, Entity, Incident, Sweep, Verdict
from engine.samples import Matcher, Selection
from engine.signals.labels import HOST_LABELS, IDENTITY_LABELS, Place, locate
from engine.signals.normalise import Readings
from engine.sources.port import Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# Hosts per request: 16 hosts of 8 GPUs are about 5,000 series, 8 MB of a 15-minute window.
HOSTS_PER_REQUEST = 16
_SHOWN_UNSEEN = 200


async def sweep(
    engine: Engine,
    source: Source,
    *,
    at: float | None,
    window_s: float,
    where: Sequence[Matcher] = (),
) -> Sweep:
    """Judge every GPU that a source holds (see `Engine.sweep`)."""
    fetcher = engine.fetcher
    start = fetcher.start(at, window_s)
    groups, known = await _groups(engine, source, at, start.window_s, tuple(where))
    queries, waves = (0, 0) if source.rereads else (2, 1)
    warnings: list[str] = []
    answers: list[Judgement] = []
    moment = at
    for group in groups:
        got = fetcher.start(moment, window_s)
        await fetcher.ask(source, got, group.selections(fetcher, tuple(where), got.window_s))
        moment = got.at
        readings = await _with_the_gone(fetcher, source, got, group, known)
        queries += got.batch.queries
        waves += got.waves
        seen = engine.judge.observe(readings.frame)
        states = engine.judge.states(seen)
        chosen = current(readings, range(len(readings.frame)))
        answers += [engine.judge.judge(seen, i, states, unknowns=i == chosen[0]) for i in chosen]
        warnings += [w for w in got.warnings + readings.warnings if w not in warnings]
    return _result(engine, answers, moment, window_s, queries, waves, warnings)


@dataclass(frozen=True, slots=True)
class _Group:
    """Some hosts that are asked about together; all of them where ``hosts`` is None."""

    matchers: tuple[Matcher, ...] = ()
    hosts: frozenset[str] | None = None
    exporters: tuple[str, ...] = ()

    def selections(
        self, fetcher: Fetcher, where: tuple[Matcher, ...], window_s: float
    ) -> list[Selection]:
        matchers = (*self.matchers, *where)
        names = fetcher.names.gpu + fetcher.names.node
        out = [Selection(names, matchers, window_s)]
        if self.hosts is None:
            out.append(Selection(fetcher.sign_of_life(), matchers, LOOKBACK_LOST_S))
        if self.exporters:  # `up` names no host, so the matchers do not find it
            pattern = "|".join(re.escape(e) for e in self.exporters)
            out.append(Selection(("up",), (Matcher("instance", "=~", pattern),), window_s))
        return out


async def _with_the_gone(
    fetcher: Fetcher, source: Source, got: Fetched, group: _Group, known: Sequence[Place]
) -> Readings:
    """Return the readings of a group, those of GPUs that went before the window included."""
    readings = fetcher.frame(got)
    missed = gone([p for p in known if group.hosts and p.host in group.hosts], readings)
    if missed:
        await fetcher.ask(source, got, fetcher.history_of(missed, fetcher.sign_of_life()))
    frame = readings.frame
    if missed or (frame.timed and any(silent(frame, i) for i in range(len(frame)))):
        got.window_s = LOOKBACK_LOST_S
        readings = fetcher.frame(got)
    return readings


async def _groups(
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
    where: tuple[Matcher, ...],
) -> tuple[list[_Group], list[Place]]:
    """Return the groups that together cover every GPU once, and all GPUs of the last day."""
    if source.rereads:
        return [_Group()], []
    ask = partial(source.label_sets, labels=IDENTITY_LABELS, at=at, matchers=where)
    fetcher = engine.fetcher
    now, day = await asyncio.gather(
        ask(fetcher.core_names(), window_s=window_s),
        ask(fetcher.sign_of_life(), window_s=LOOKBACK_LOST_S),
    )
    rows = now + day
    by_label: dict[str, set[str]] = {}
    for row in rows:
        label = next((name for name in (*HOST_LABELS, "instance") if row.get(name)), None)
        if label:
            by_label.setdefault(label, set()).add(row[label])
    groups: list[_Group] = []
    labels = (*HOST_LABELS, "instance")
    for k, label in enumerate(labels):
        hosts = sorted(by_label.get(label, ()))
        absent = tuple(Matcher(other, "=", "") for other in labels[:k])
        for start in range(0, len(hosts), HOSTS_PER_REQUEST):
            some = hosts[start : start + HOSTS_PER_REQUEST]
            pattern = "|".join(re.escape(h) for h in some)
            names = frozenset(locate({label: host}).host or host for host in some)
            groups.append(_Group((Matcher(label, "=~", pattern), *absent), names))
    return groups, list(dict.fromkeys(locate(row) for row in rows))


def _result(
    engine: Engine,
    answers: Sequence[Judgement],
    at: float | None,
    window_s: float,
    queries: int,
    waves: int,
    warnings: Sequence[str],
) -> Sweep:
    verdicts = {v.value: 0 for v in Verdict}
    for answer in answers:
        verdicts[answer.verdict.value] += 1
    unseen = [a.entity for a in answers if a.verdict is Verdict.UNKNOWN]
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
