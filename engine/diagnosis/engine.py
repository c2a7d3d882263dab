"""The engine: questions in, verdicts out. Everything a surface needs of the diagnosis is here.

One `Engine` holds a catalogue, its compiled rules and the inference engine; it keeps no state
between questions, so the same readings always give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine import __version__
from engine.catalogue.types import Catalogue
from engine.collector import held_off
from engine.diagnosis.compose import compose, key_of, with_found
from engine.diagnosis.culprits import named, suspects, without_strangers
from engine.diagnosis.fetch import Fetched, Fetcher
from engine.diagnosis.gathered import gathered
from engine.diagnosis.joblinks import bad_links
from engine.diagnosis.judge import Judgement, Judges
from engine.diagnosis.logged import earlier, elsewhere, unknown_logs, unmatched
from engine.diagnosis.logwatch import LogWatch
from engine.diagnosis.lost import with_warnings
from engine.diagnosis.mapped import over
from engine.diagnosis.past import dated, with_past
from engine.diagnosis.railpeers import RailPeers
from engine.diagnosis.reading import Reader
from engine.diagnosis.related import OWN, beside
from engine.diagnosis.sited import resolved, with_absent
from engine.diagnosis.targets import entity_of, hosts_of
from engine.errors import UsageError
from engine.model import EngineInfo, Kind, Sweep, Verdict, Why
from engine.samples import Matcher, Selection
from engine.signals.normalise import Readings
from engine.sitemap import NOTHING, SiteFile, SiteMap
from engine.sources.logs.port import LogSource
from engine.sources.port import Source
from engine.topology import Target, parse_target

DEFAULT_WINDOW_S = 900.0
# Of a host or several: what one thing brings about at many places is told once.
_OF_HOSTS = frozenset({Kind.NODE, Kind.JOB, Kind.RACK, Kind.FLEET})


class Engine:
    """Answers ``why`` and ``sweep`` from a source.

    Args:
        catalogue: knowledge and rules.
        inference: ``auto``, ``durable_rules`` or ``reference`` (see `engine.inference`).
        site: the map of the site, None for none; it may change while the engine works.
    """

    def __init__(
        self, catalogue: Catalogue, *, inference: str = "auto", site: SiteFile | None = None
    ) -> None:
        self.catalogue = catalogue
        self._site = site
        self.judges = Judges(catalogue, inference)
        self.judge = self.judges.of("gpu")
        self.fetcher = Fetcher(catalogue, self.judge.observer)
        self._reader = Reader(self.fetcher)
        self.info = EngineInfo(__version__, catalogue.hash, self.judge.inferrer.name)
        self.told_by_logs = self.judge.told_by("xid")

    @property
    def site(self) -> SiteMap:
        """The map of the site as it is now.

        Raises:
            UsageError: it cannot be read.
        """
        return self._site.current() if self._site else NOTHING

    async def why(
        self,
        text: str,
        source: Source,
        *,
        at: float | None = None,
        window_s: float = DEFAULT_WINDOW_S,
        logs: LogSource | None = None,
    ) -> Why:
        """Diagnose a target.

        Args:
            text: the target as typed (`engine.topology.parse_target`).
            source: where readings come from.
            at: the moment judged (Unix s); None is now, or a file's newest sample.
            window_s: how far back to look (s).
            logs: where events of kernel logs come from; asked at the same time as the source, and
                told as not seen if it does not answer.

        Raises:
            UsageError: unreadable target, none or several things of that name; no map of the site.
            SourceError: the source does not answer.
        """
        site = self.site
        target = resolved(parse_target(text), site)
        source = over(source, site)
        if target.mig:
            raise UsageError(
                f"exporters do not name MIG instances by UUID: {target.mig}",
                hint="ask about the GPU it is on, as HOST:GPU",
            )
        got = self.fetcher.start(at, window_s)
        got.warnings += site.warnings
        watch = LogWatch(logs)
        try:
            readings, chosen = await self._reader.read(target, source, got, watch)
            if target.kind is Kind.NODE and chosen:
                # Else a sweep, which has them at hand, would find what this does not.
                peers, host = RailPeers(self, ()), target.host
                if await peers.bring(source, got, {host}, gpus=True):
                    readings, chosen = self._reader.again(target, got)
        except UsageError as error:
            raise with_warnings(error, [*got.warnings, *source.take_warnings()]) from None
        finally:
            await watch.aclose()
        if services := readings.others.get("service"):
            target = target.among({entity.service for entity in services.entities})
        hosts = hosts_of(target, readings, chosen)
        got.warnings += unmatched(got.events, readings.frame, hosts, end=got.log_end)
        got.warnings += elsewhere(got.events, hosts)
        got.warnings += earlier(readings.frame, chosen, window_s)
        answers = self._judge_all(readings, chosen)
        readings, chosen, slow = await self._find_slow(source, got, readings, chosen, answers)
        answers = self._judge_all(readings, chosen) if slow else answers
        links = await bad_links(self, target, source, got, readings, chosen, answers)
        answers = await dated(self.fetcher, source, got, readings, chosen, answers)
        found = self._why(target, readings, chosen, answers, got, window_s, slow)
        told = {key_of(d) for d in found.diagnoses}
        if links := [link for link in links if key_of(link) not in told]:
            found = replace(
                found,
                verdict=Verdict.DEGRADED,
                diagnoses=(*found.diagnoses, *links),
                coverage=with_found(found, links),
            )
        found = with_absent(found, target, site, readings, chosen)
        return await with_past(self.fetcher, found, source, got, readings)

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
        logs: LogSource | None = None,
    ) -> Sweep:
        """Judge every GPU of a source and group what is wrong by root cause, worst first."""
        from engine.diagnosis.sweep import sweep  # noqa: PLC0415 - they need each other

        watch = LogWatch(logs)
        source = over(source, self.site)
        try:
            return await sweep(
                self, source, at=at, window_s=window_s, where=tuple(where), watch=watch
            )
        finally:
            await watch.aclose()

    async def _find_slow(
        self,
        source: Source,
        got: Fetched,
        readings: Readings,
        chosen: Sequence[int],
        answers: Sequence[Judgement],
    ) -> tuple[Readings, list[int], list[int]]:
        """Fetch in full the GPUs for which the target waits; the target's own come back first."""
        found = suspects(self.judge, readings.frame, chosen, answers)
        if not found:
            return readings, list(chosen), []
        before = readings.frame.entities
        await self.fetcher.ask(
            source, got, self.fetcher.in_full([p for i in found for p in readings.places[i]])
        )
        readings = self.fetcher.frame(got)
        where = {entity.key: i for i, entity in enumerate(readings.frame.entities)}
        mine, slow = ([where[before[i].key] for i in some] for some in (chosen, found))
        return readings, mine, slow

    @held_off()
    def _judge_all(self, readings: Readings, chosen: Sequence[int]) -> list[Judgement]:
        seen = self.judge.observe(readings.frame, chosen)
        states = self.judge.states(seen)
        return [self.judge.judge(seen, i, states) for i in chosen]

    def _why(
        self,
        target: Target,
        readings: Readings,
        chosen: Sequence[int],
        answers: Sequence[Judgement],
        got: Fetched,
        window_s: float,
        slow: Sequence[int] = (),
    ) -> Why:
        frame = readings.frame
        single = target.kind is Kind.GPU
        found = beside(target, readings, chosen)
        scope = OWN.get(target.kind)
        mine = self.judge_other(readings, scope, found.pop(scope, [])) if scope else list(answers)
        side = [a for name, some in found.items() for a in self.judge_other(readings, name, some)]
        side += answers if scope else []
        peers = self._judge_slow(readings, slow)
        if single:
            entity = frame.entities[chosen[0]]
        elif scope and len(mine) == 1:
            entity = mine[0].entity
        else:
            entity = entity_of(target, readings, chosen)
        alone = single or (scope is not None and len(mine) == 1)
        answer = compose(entity, mine, [*side, *peers], self.catalogue.causes, alone=alone)
        diagnoses = without_strangers(answer.diagnoses, [*mine, *side], peers)
        if target.kind in _OF_HOSTS:
            together = gathered(diagnoses, [*mine, *side, *peers], self.site.racks)
            diagnoses = tuple(one.diagnosis for one in together)
        others = [a.entity for a in mine] if scope and not alone else []
        return Why(
            target=entity,
            at=got.at if frame.timed or not len(got.batch.series) else None,
            window_s=window_s,
            verdict=answer.verdict,
            diagnoses=named(diagnoses, [*mine, *side, *peers]),
            notes=answer.notes,
            unknown=(*unknown_logs(got.unread, self.told_by_logs), *answer.unknown),
            coverage=answer.coverage,
            engine=self.info,
            queries=got.batch.queries,
            waves=got.waves,
            warnings=tuple(
                dict.fromkeys(
                    [
                        *self.catalogue.left_out,
                        *got.warnings,
                        *readings.warnings,
                    ]
                )
            ),
            members=() if single else (*others, *(frame.entities[i] for i in chosen)),
        )

    def _judge_slow(self, readings: Readings, slow: Sequence[int]) -> list[Judgement]:
        """Judge the GPUs for which a target waits, and what belongs to their hosts."""
        if not slow:
            return []
        found = beside(Target(Kind.NODE, ""), readings, slow)
        answers = self._judge_all(readings, slow)
        for scope in ("node", "port", "filesystem", "pod"):
            answers += self.judge_other(readings, scope, found.get(scope, []))
        return answers

    def judge_other(
        self, readings: Readings, scope: str, chosen: Sequence[int], *, unknowns: bool = True
    ) -> list[Judgement]:
        """Judge entities that are no GPUs; ``unknowns`` as for `Judge.judge`."""
        if not chosen:
            return []
        judge, frame = self.judges.of(scope), readings.others[scope]
        if not judge.causes:
            return []
        seen = judge.observe(frame, chosen)
        states = judge.states(seen)
        return [judge.judge(seen, i, states, unknowns=unknowns) for i in chosen]
