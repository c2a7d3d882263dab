"""The engine: questions in, verdicts out. Everything a surface needs of the diagnosis is here.

One `Engine` holds a catalogue, its compiled rules and the inference engine; it keeps no state
between questions, so the same readings always give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine import __version__
from engine.catalogue.types import Catalogue
from engine.diagnosis.combine import combine
from engine.diagnosis.fetch import Fetched, Fetcher, host_matchers, matches
from engine.diagnosis.history import XID_HISTORY, LOOKBACK_HISTORY_S, date_xid
from engine.diagnosis.judge import Judge, Judgement, missing_core
from engine.diagnosis.lost import lost, placeholder
from engine.errors import UsageError
from engine.model import EngineInfo, Entity, Kind, Sweep, Why
from engine.samples import Matcher, Selection
from engine.signals.labels import Place, node_entity
from engine.signals.normalise import Readings
from engine.sources.port import Source
from engine.topology import Target, parse_target

DEFAULT_WINDOW_S = 900.0
# A GPU index that changed its UUID (a swapped board) is ambiguous only while both report.
_REPLACED_S = 120.0
_ANSWERED = (Kind.GPU, Kind.NODE, Kind.POD, Kind.JOB, Kind.FLEET)


class Engine:
    """Answers ``why`` and ``sweep`` from a source.

    Args:
        catalogue: knowledge and rules.
        inference: ``auto``, ``durable_rules`` or ``reference`` (see `engine.inference`).
    """

    def __init__(self, catalogue: Catalogue, *, inference: str = "auto") -> None:
        self.catalogue = catalogue
        self.judge = Judge(catalogue, inference=inference)
        self.fetcher = Fetcher(catalogue, self.judge.observer)
        self.info = EngineInfo(__version__, catalogue.hash, self.judge.inferrer.name)

    async def why(
        self,
        text: str,
        source: Source,
        *,
        at: float | None = None,
        window_s: float = DEFAULT_WINDOW_S,
    ) -> Why:
        """Diagnose a target.

        Args:
            text: the target as typed (`engine.topology.parse_target`).
            source: where readings come from.
            at: the moment judged (Unix s); None is now, or a file's newest sample.
            window_s: how far back to look (s).

        Raises:
            UsageError: unreadable target, none or several things of that name.
            SourceError: the source does not answer.
        """
        target = parse_target(text)
        if target.kind not in _ANSWERED:
            raise UsageError(
                f"no rule looks at a {target.kind.value} in this version",
                hint="ask about HOST:GPU, HOST, pod/NAMESPACE/NAME, job/ID or fleet",
            )
        got = self.fetcher.start(at, window_s)
        await self.fetcher.ask(source, got, self.fetcher.wave_one(target, got.window_s))
        readings = self.fetcher.frame(got)
        chosen = self._choose(target, readings)
        if not chosen:
            readings, chosen = await lost(self.fetcher, source, got, target)
            if not chosen:
                readings, chosen = placeholder(target, readings, got), [0]
        elif any(missing_core(readings.frame, i) for i in chosen):
            await self._ask_exporter(source, got, readings, chosen)
            readings, chosen = self._again(target, got)
        if target.host is None and target.kind is not Kind.FLEET and got.waves == 1:
            places = [p for i in chosen for p in readings.places[i]]
            await self.fetcher.ask(source, got, self.fetcher.siblings_of(places))
            readings, chosen = self._again(target, got)
        answers = self._judge_all(readings, chosen)
        answers = await self._date_old_xids(source, got, readings, chosen, answers)
        return self._why(target, readings, chosen, answers, got, window_s)

    async def each(self, source: Source, *, window_s: float = DEFAULT_WINDOW_S) -> list[Why]:
        """Judge every GPU of a source on its own: what pasted exporter text shows.

        Raises:
            InputError: the source cannot be read.
        """
        got = self.fetcher.start(None, window_s)
        await self.fetcher.ask(source, got, [Selection((), (), got.window_s)])
        readings = self.fetcher.frame(got)
        chosen = list(range(len(readings.frame)))
        answers = self._judge_all(readings, chosen)
        target = Target(Kind.GPU, "")
        return [
            self._why(target, readings, [i], [answer], got, window_s)
            for i, answer in zip(chosen, answers, strict=True)
        ]

    async def sweep(
        self,
        source: Source,
        *,
        at: float | None = None,
        window_s: float = DEFAULT_WINDOW_S,
        where: Sequence[Matcher] = (),
    ) -> Sweep:
        """Judge every GPU of a source and group what is wrong by root cause, worst first."""
        from engine.diagnosis.sweep import sweep  # noqa: PLC0415 - they need each other

        return await sweep(self, source, at=at, window_s=window_s, where=tuple(where))

    def _choose(self, target: Target, readings: Readings) -> list[int]:
        """Return the entities of a frame that are the target.

        Raises:
            UsageError: a GPU was asked for and several fit.
        """
        groups = readings.places
        chosen = [i for i, group in enumerate(groups) if any(matches(target, p) for p in group)]
        if target.kind is Kind.GPU and len(chosen) > 1:
            chosen = _freshest(readings, chosen)
        if target.kind is Kind.GPU and len(chosen) > 1:
            names = ", ".join(_distinct(readings.frame.entities[i]) for i in chosen[:4])
            more = f" and {len(chosen) - 4} more" if len(chosen) > 4 else ""
            raise UsageError(
                f"{len(chosen)} GPUs match {target.text!r}: {names}{more}",
                hint="name one of them by HOST:GPU, CLUSTER::HOST:GPU or a longer UUID",
                code="ambiguous_target",
            )
        return chosen

    def _again(self, target: Target, got: Fetched) -> tuple[Readings, list[int]]:
        readings = self.fetcher.frame(got)
        return readings, self._choose(target, readings)

    async def _ask_exporter(
        self, source: Source, got: Fetched, readings: Readings, chosen: Sequence[int]
    ) -> None:
        """Ask whether the exporters of some GPUs answer scrapes."""
        addresses = sorted({a for i in chosen for a in readings.instances[i]})
        if addresses:
            selection = Selection(
                ("up",),
                (Matcher("instance", "=~", "|".join(_literal(a) for a in addresses)),),
                got.window_s,
            )
            await self.fetcher.ask(source, got, [selection])

    def _judge_all(self, readings: Readings, chosen: Sequence[int]) -> list[Judgement]:
        seen = self.judge.observe(readings.frame)
        states = self.judge.states(seen)
        return [self.judge.judge(seen, i, states) for i in chosen]

    async def _date_old_xids(
        self,
        source: Source,
        got: Fetched,
        readings: Readings,
        chosen: Sequence[int],
        answers: list[Judgement],
    ) -> list[Judgement]:
        """Say when an old, sticky Xid appeared, if the last day of the source tells."""
        old = [k for k, a in enumerate(answers) if any(n.cause == XID_HISTORY for n in a.notes)]
        if not old or not readings.frame.timed:
            return answers
        signal = self.catalogue.signals["xid"]
        names = tuple(s.name for s in signal.spellings)
        selections = [
            Selection(names, origin.matchers, LOOKBACK_HISTORY_S)
            for k in old
            if (origin := readings.frame.origins.get(("xid", chosen[k])))
        ]
        past = self.fetcher.start(got.at, LOOKBACK_HISTORY_S)
        past.window_s = LOOKBACK_HISTORY_S
        await self.fetcher.ask(source, past, selections)
        got.waves += past.waves
        got.batch.queries += past.batch.queries
        history = self.fetcher.frame(past)
        out = list(answers)
        for k in old:
            out[k] = date_xid(out[k], history, got.at or 0.0)
        return out

    def _why(
        self,
        target: Target,
        readings: Readings,
        chosen: Sequence[int],
        answers: Sequence[Judgement],
        got: Fetched,
        window_s: float,
    ) -> Why:
        frame = readings.frame
        alone = target.kind is Kind.GPU
        entity = frame.entities[chosen[0]] if alone else _entity(target, readings, chosen)
        answer = answers[0] if alone else combine(entity, answers)
        return Why(
            target=entity,
            at=got.at if frame.timed or not len(got.batch.series) else None,
            window_s=window_s,
            verdict=answer.verdict,
            diagnoses=answer.diagnoses,
            notes=answer.notes,
            unknown=answer.unknown,
            coverage=answer.coverage,
            engine=self.info,
            queries=got.batch.queries,
            waves=got.waves,
            warnings=tuple(dict.fromkeys([*got.warnings, *readings.warnings])),
            members=() if alone else tuple(frame.entities[i] for i in chosen),
        )


def _freshest(readings: Readings, chosen: Sequence[int]) -> list[int]:
    """Of several GPUs under one index, keep those that still report."""
    frame = readings.frame
    newest = {}
    for i in chosen:
        stamps = [frame.samples(s, i)[0] for s in frame.columns]
        newest[i] = max((float(ts[-1]) for ts in stamps if ts.size), default=-np.inf)
    best = max(newest.values())
    return [i for i in chosen if best - newest[i] <= _REPLACED_S]


def _distinct(entity: Entity) -> str:
    name = f"{entity.cluster}::{entity.name}" if entity.cluster else entity.name
    return f"{name} ({entity.uuid})" if entity.uuid else name


def _entity(target: Target, readings: Readings, chosen: Sequence[int]) -> Entity:
    """Return the entity of a target that stands for several GPUs."""
    first = readings.frame.entities[chosen[0]]
    match target.kind:
        case Kind.NODE:
            return node_entity(first.host or target.host or "", target.cluster)
        case Kind.POD:
            name = f"pod/{target.namespace}/{target.pod}"
            return Entity(
                Kind.POD, name, target.cluster, namespace=target.namespace, pod=target.pod
            )
        case Kind.JOB:
            return Entity(Kind.JOB, f"job/{target.job}", target.cluster, job=target.job)
        case _:
            return Entity(Kind.FLEET, "fleet", target.cluster)


def _literal(text: str) -> str:
    import re  # noqa: PLC0415

    return re.escape(text)


__all__ = ["DEFAULT_WINDOW_S", "Engine", "Place", "host_matchers", "replace"]
