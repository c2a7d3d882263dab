"""Bad links of a job: what a GPU waits for that no GPU of the job shows.

A slow link makes all ranks wait alike: none is behind the others, and each is busy all the time.
Whoever asks about one of them is told of the link, wherever in the job it is.
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
from engine.samples import Frame
from engine.signals.normalise import Readings
from engine.sources.port import Source
from engine.topology import Target

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_BUSY = "full_busy"
# Bound by its own memory, as when it decodes: little power, and no wait for a link.
_ELSEWHERE = frozenset({"memory_bound"})
# At its power limit: whoever draws that computes, and waits for nobody.
_FULL = "power_near_limit"
# Busy all the time at little power, as kernels of collectives are that wait for their peers.
_WAITS = "spins"
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
    """Look for bad links of the job for which some GPUs work, where nothing is wrong with them.

    With the same ports of its other hosts at hand those of the own host are compared along their
    rails, too.

    Args:
        engine: rules and what they need.
        target: what was asked about; of a job all links are looked at anyway.
        source: where readings come from; without its answer there is only a warning.
        got: what was fetched; what comes is added.
        readings: of that.
        chosen: the GPUs of the target.
        answers: their judgements.
    """
    works = _working(engine.judge, target, readings, chosen, answers)
    own, away = _hosts(readings, works)
    if not away:
        return []
    fetcher, causes = engine.fetcher, engine.catalogue.causes
    names = fetcher.names.others["port"]
    try:
        await fetcher.ask_own(source, got, away, names, got.window_s)
    except SourceError as error:
        got.warnings.append(error.one_line())
        return []
    more = fetcher.frame(got)
    ports = more.others["port"].entities if "port" in more.others else ()
    clusters = {readings.frame.entities[i].cluster for i in works}
    there = [
        i
        for i, port in enumerate(ports)
        if (port.host in own or port.host in away)
        and port.cluster in {None, *clusters}
        and _carries(more.others["port"], i)
    ]
    judged = engine.judge_other(more, "port", there)
    together = gathered(hang(_bad(judged, causes), causes), judged, engine.site.racks)
    return [_told(one.diagnosis, engine.judge, readings, works) for one in together]


def _working(
    judge: Judge,
    target: Target,
    readings: Readings,
    chosen: Sequence[int],
    answers: Sequence[Judgement],
) -> list[int]:
    """Return the GPUs of a target that work for a job, with nothing wrong where they are."""
    if target.kind not in _ASKED or not judge.observer.rules.keys() >= {_BUSY, _FULL}:
        return []
    found = [d for answer in answers for d in (*answer.diagnoses, *answer.notes)]
    if any(d.class_ in _TELLING or d.cause in _ELSEWHERE for d in found):
        return []
    mine = [i for i in chosen if readings.frame.entities[i].job]
    if not mine:
        return []
    truth = judge.observe(readings.frame, mine).truth
    return [i for i in mine if truth[_BUSY][i] == 1 and truth[_FULL][i] != 1]


def _carries(ports: Frame, i: int) -> bool:
    """Return whether a port is one of RDMA: collectives go over no other where there is one."""
    return bool(ports.samples("port_state", i)[0].size)


def _hosts(readings: Readings, mine: Sequence[int]) -> tuple[set[str], list[str]]:
    """Return the hosts of some GPUs, and the other hosts of their jobs.

    Of those at most `MOST_HOSTS`, spread over all.
    """
    entities = readings.frame.entities
    jobs = {(entities[i].cluster, entities[i].job) for i in mine}
    own = {host for i in mine if (host := entities[i].host)}
    found = {e.host for e in entities if e.host and (e.cluster, e.job) in jobs}
    return own, spread(sorted(found - own), MOST_HOSTS)


def _bad(
    judged: Sequence[Judgement], causes: Mapping[str, CauseRule]
) -> Iterator[tuple[Entity, Diagnosis]]:
    """Yield what was found at ports that makes a job wait, with the port."""
    for answer in judged:
        for diagnosis in answer.diagnoses:
            if _EFFECT in causes[diagnosis.cause].effects:
                yield answer.entity, diagnosis


def _told(found: Diagnosis, judge: Judge, readings: Readings, works: Sequence[int]) -> Diagnosis:
    """Return a diagnosis of a link that also says who waits for it, and whether that shows."""
    entities = [readings.frame.entities[i] for i in works]
    names = ", ".join(e.name for e in entities[:_NAMED])
    if len(entities) > _NAMED:
        names += f" and {len(entities) - _NAMED} more"
    jobs = ", ".join(dict.fromkeys(f"job/{e.job}" for e in entities))
    says = f"{found.says} It is a link of {jobs}, for which {names} works"
    seen = judge.observe(readings.frame, works)
    waits = [i for i in works if _WAITS in seen.truth and seen.truth[_WAITS][i] == 1][:1]
    if waits:
        says += " and waits: busy all the time at little power, as kernels of collectives are."
    else:
        says += ": a synchronous job goes at the pace of its slowest link."
    proof = evidence(judge, seen, waits[0], [_WAITS]) if waits else ()
    return replace(found, says=says, evidence=(*found.evidence, *proof))
