"""Sweep: every GPU judged, what is wrong grouped by root cause, worst first.

Hosts are fetched in groups, so that memory stays bound by the group, not by the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.diagnosis.combine import merge_unknown, order
from engine.diagnosis.judge import Judgement
from engine.model import Diagnosis, Entity, Incident, Sweep, Verdict
from engine.samples import Matcher, Selection
from engine.signals.labels import HOST_LABELS, IDENTITY_LABELS
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
    groups = await _groups(engine, source, at, start.window_s, tuple(where))
    queries = waves = 0 if source.rereads else 1
    warnings: list[str] = []
    answers: list[Judgement] = []
    moment = at
    for matchers in groups:
        got = fetcher.start(moment, window_s)
        names = fetcher.names.gpu + fetcher.names.node
        selection = Selection(names, (*matchers, *where), got.window_s)
        await fetcher.ask(source, got, [selection])
        moment = got.at
        queries += got.batch.queries
        waves += got.waves
        readings = fetcher.frame(got)
        seen = engine.judge.observe(readings.frame)
        states = engine.judge.states(seen)
        answers += [
            engine.judge.judge(seen, i, states, unknowns=i == 0) for i in range(len(readings.frame))
        ]
        warnings += [w for w in got.warnings + readings.warnings if w not in warnings]
    return _result(engine, answers, moment, window_s, queries, waves, warnings)


async def _groups(
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
    where: tuple[Matcher, ...],
) -> list[tuple[Matcher, ...]]:
    """Return the matchers of the requests that together cover every GPU once."""
    if source.rereads:
        return [()]
    rows = await source.label_sets(
        engine.fetcher.core_names(), IDENTITY_LABELS, at=at, window_s=window_s, matchers=where
    )
    by_label: dict[str, set[str]] = {}
    for row in rows:
        label = next((name for name in (*HOST_LABELS, "instance") if row.get(name)), None)
        if label:
            by_label.setdefault(label, set()).add(row[label])
    groups: list[tuple[Matcher, ...]] = []
    labels = (*HOST_LABELS, "instance")
    for k, label in enumerate(labels):
        hosts = sorted(by_label.get(label, ()))
        absent = tuple(Matcher(other, "=", "") for other in labels[:k])
        for start in range(0, len(hosts), HOSTS_PER_REQUEST):
            some = "|".join(_escape(h) for h in hosts[start : start + HOSTS_PER_REQUEST])
            groups.append((Matcher(label, "=~", some), *absent))
    return groups


def _escape(text: str) -> str:
    import re  # noqa: PLC0415

    return re.escape(text)


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
