"""Who holds a job back, and who waits: the slow GPU of a job that the target waits for.

A GPU that waits in collectives is a victim. Which of its peers it waits for shows in the few
readings that are compared within a job; that one is then fetched and judged in full, so that the
narrower cause at it stands first, and what the target shows hangs beneath it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from engine.diagnosis.judge import Judge, Judgement
from engine.model import Diagnosis, Effect, Entity, Kind
from engine.samples import Frame

SLOW: Final = "straggler"
WAITS: Final = "waiting_on_straggler"
HANGS: Final = "collective_hang"
# More slow GPUs than these are no stragglers but the state of the job.
MOST: Final = 8
_NAMED = 4


def suspects(
    judge: Judge, frame: Frame, chosen: Sequence[int], answers: Sequence[Judgement]
) -> list[int]:
    """Return the GPUs that hold a job back for which some of the target's GPUs wait.

    Args:
        judge: the rules of GPUs.
        frame: readings of the target and, compared signals only, of its peers.
        chosen: the GPUs of the target, which are not returned.
        answers: their judgements.
    """
    jobs = {(a.entity.cluster, a.entity.job) for a in answers if a.entity.job and _shows(a, WAITS)}
    peers = [
        i
        for i, e in enumerate(frame.entities)
        if (e.cluster, e.job) in jobs and i not in set(chosen)
    ]
    if not peers or SLOW not in judge.causes:
        return []
    state = judge.states(judge.observe(frame, peers))[SLOW]
    return [i for i in peers if state[i] == 1][:MOST]


def without_strangers(
    diagnoses: Iterable[Diagnosis], own: Iterable[Judgement], others: Iterable[Judgement]
) -> tuple[Diagnosis, ...]:
    """Leave out what was found beside a slow peer only, and does not make it slow.

    Args:
        diagnoses: of the target with all that belongs to it.
        own: judgements of the target and of what belongs to it.
        others: judgements of the slow peers and of what belongs to them.
    """
    mine = {(d.cause, d.entity.key) for a in own for d in a.diagnoses}
    strange = {(d.cause, d.entity.key) for a in others for d in a.diagnoses} - mine
    return tuple(
        d for d in diagnoses if (d.cause, d.entity.key) not in strange or SLOW in _causes(d)
    )


def named(diagnoses: Iterable[Diagnosis], judged: Iterable[Judgement]) -> tuple[Diagnosis, ...]:
    """Add to each cause that holds a job back who is slow by it, and who waits or is missing."""
    all_ = list(judged)
    diagnoses = [_missed(d, all_) if d.cause == HANGS else d for d in diagnoses]
    slow = [a for a in all_ if _shows(a, SLOW)]
    waiting = [a.entity for a in all_ if _shows(a, WAITS)]
    return tuple(_named(d, slow, waiting) if SLOW in _causes(d) else d for d in diagnoses)


def _missed(diagnosis: Diagnosis, judged: Sequence[Judgement]) -> Diagnosis:
    """Name the GPUs of a job that hangs on which no kernel runs: the others wait for these."""
    job = diagnosis.entity.job
    away = [a.entity for a in judged if job and a.entity.job == job and _rests(a)]
    if not 0 < len(away) <= MOST:
        return diagnosis
    return replace(diagnosis, says=f"{diagnosis.says} No kernel runs on {_names(away)}.")


def _rests(answer: Judgement) -> bool:
    return answer.entity.kind is Kind.GPU and any(n.cause == "idle" for n in answer.notes)


def _named(diagnosis: Diagnosis, slow: Sequence[Judgement], waiting: Sequence[Entity]) -> Diagnosis:
    key = (diagnosis.cause, diagnosis.entity.key)
    by_it = [a.entity for a in slow if key in {(d.cause, d.entity.key) for d in a.diagnoses}]
    culprits = by_it or [
        a.entity for a in slow if a.entity.host and a.entity.host == diagnosis.entity.host
    ]
    jobs = {e.job for e in culprits}
    victims = [e for e in waiting if e.job in jobs and e not in culprits]
    if not culprits:
        return diagnosis
    text = f" Slow in {_jobs(culprits)}: {_names(culprits)}"
    if victims:
        text += f"; waiting for it: {_names(victims)}"
    return replace(diagnosis, says=f"{diagnosis.says}{text}.")


def _names(entities: Iterable[Entity]) -> str:
    names = list(dict.fromkeys(e.name for e in entities))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _jobs(entities: Iterable[Entity]) -> str:
    return ", ".join(dict.fromkeys(f"job/{e.job}" if e.job else "its job" for e in entities))


def _shows(answer: Judgement, cause: str) -> bool:
    return any(cause in _causes(d) for d in answer.diagnoses)


def _causes(diagnosis: Diagnosis) -> set[str]:
    return {diagnosis.cause, *_below(diagnosis.effects)}


def _below(effects: Iterable[Effect]) -> Iterable[str]:
    for effect in effects:
        yield effect.cause
        yield from _below(effect.effects)
