"""Bad links at other hosts of a job: what a GPU waits for that no GPU of the job shows.

A slow link makes all ranks wait alike: none is behind the others, each is busy all the time at
little power. Whoever asks about one of them is told of the link, wherever in the job it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalogue.types import CauseRule
from engine.diagnosis.compose import hang
from engine.diagnosis.explain import evidence
from engine.diagnosis.fetch import Fetched
from engine.diagnosis.gathered import gathered
from engine.diagnosis.judge import Judge, Judgement
from engine.diagnosis.railpeers import spread
from engine.errors import SourceError
from engine.model import Class, Diagnosis, Entity, Kind
from engine.signals.normalise import Readings
from engine.sources.port import Source
from engine.topology import Target

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# Busy all the time at little power, as kernels of collectives are that wait for their peers.
SIGN = "spins"
_EFFECT = "communication_bound"
# Of larger jobs so many hosts are asked about, evenly over all: what is common is found there too.
MOST_HOSTS = 64
_NAMED = 4
_ASKED = frozenset({Kind.GPU, Kind.NODE, Kind.POD, Kind.RANK})
_TELLING = frozenset({Class.FAULT, Class.LIMIT})


async def bad_links(
    engine: Engine,
    target: Target,
    source: Source,
    got: Fetched,
    readings: Readings,
    chosen: Sequence[int],
    answers: Sequence[Judgement],
) -> list[Diagnosis]:
    """Look for bad links at other hosts of a job whose GPUs wait without a reason at their own.

    Args:
        engine: rules and what they need.
        target: what was asked about; of a job all links are looked at anyway.
        source: where readings come from; without its answer there is only a warning.
        got: what was fetched; what comes is added.
        readings: of that.
        chosen: the GPUs of the target.
        answers: their judgements.
    """
    waits = _waiting(engine.judge, target, readings, chosen, answers)
    away = _hosts(readings, waits)
    if not away:
        return []
    fetcher, causes = engine.fetcher, engine.catalogue.causes
    names = fetcher.names.others["port"]
    try:
        await fetcher.ask(source, got, fetcher.hosts_own(away, got.window_s, names))
    except SourceError as error:
        got.warnings.append(error.one_line())
        return []
    more = fetcher.frame(got)
    ports = more.others["port"].entities if "port" in more.others else ()
    there = [i for i, port in enumerate(ports) if port.host in away]
    judged = engine.judge_other(more, "port", there)
    together = gathered(hang(_bad(judged, causes), causes), judged, engine.site.racks, away)
    return [_told(one.diagnosis, engine.judge, readings, waits) for one in together]


def _waiting(
    judge: Judge,
    target: Target,
    readings: Readings,
    chosen: Sequence[int],
    answers: Sequence[Judgement],
) -> list[int]:
    """Return the GPUs of a target that seem to wait for something which is not at their host."""
    if target.kind not in _ASKED or SIGN not in judge.observer.rules:
        return []
    if any(d.class_ in _TELLING for answer in answers for d in answer.diagnoses):
        return []
    entities = readings.frame.entities
    mine = [i for i in chosen if entities[i].job and entities[i].host]
    if not _hosts(readings, mine):
        return []
    truth = judge.observe(readings.frame, mine).truth[SIGN]
    return [i for i in mine if truth[i] == 1]


def _hosts(readings: Readings, mine: Sequence[int]) -> list[str]:
    """Return the other hosts of the jobs of some GPUs, the first `MOST_HOSTS` spread over all."""
    entities = readings.frame.entities
    jobs = {(entities[i].cluster, entities[i].job) for i in mine}
    own = {entities[i].host for i in mine}
    found = {e.host for e in entities if e.host and (e.cluster, e.job) in jobs}
    return spread(sorted(host for host in found if host not in own), MOST_HOSTS)


def _bad(
    judged: Sequence[Judgement], causes: Mapping[str, CauseRule]
) -> Iterator[tuple[Entity, Diagnosis]]:
    """Yield what was found at ports that makes a job wait, with the port."""
    for answer in judged:
        for diagnosis in answer.diagnoses:
            if _EFFECT in causes[diagnosis.cause].effects:
                yield answer.entity, diagnosis


def _told(found: Diagnosis, judge: Judge, readings: Readings, waits: Sequence[int]) -> Diagnosis:
    """Return a diagnosis of a link that also says who waits for it, and how that shows."""
    entities = [readings.frame.entities[i] for i in waits]
    names = ", ".join(e.name for e in entities[:_NAMED])
    if len(entities) > _NAMED:
        names += f" and {len(entities) - _NAMED} more"
    jobs = ", ".join(dict.fromkeys(f"job/{e.job}" for e in entities))
    seen = judge.observe(readings.frame, waits[:1])
    return replace(
        found,
        says=(
            f"{found.says} {names} works for {jobs}, which spans this link, and is busy all the"
            " time at little power, as kernels are that wait in collectives."
        ),
        evidence=(*found.evidence, *evidence(judge, seen, waits[0], [SIGN])),
    )
