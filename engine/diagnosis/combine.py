"""Combining the judgements of several GPUs into one: a node's, a pod's, a job's, the fleet's.

A cause that is said of the node is said once, with the evidence of its first GPU; a cause of one
GPU keeps that GPU as its entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.diagnosis.judge import Judgement
from engine.model import (
    Class,
    Coverage,
    Diagnosis,
    Entity,
    Severity,
    Unknown,
    Verdict,
)

_CLASSES = list(Class)
_SEVERITIES = list(Severity)


def combine(entity: Entity, answers: Sequence[Judgement]) -> Judgement:
    """Return one judgement for the entity that several others make up.

    Without any, because no rule looks at them, nothing is known of it.
    """
    if not answers:
        return Judgement(entity, Verdict.UNKNOWN, (), (), (), Coverage(0, 0, 0, 0))
    verdicts = {a.verdict for a in answers}
    if Verdict.DEGRADED in verdicts:
        verdict = Verdict.DEGRADED
    elif Verdict.UNKNOWN in verdicts:
        verdict = Verdict.UNKNOWN
    elif verdicts == {Verdict.IDLE}:
        verdict = Verdict.IDLE
    else:
        verdict = Verdict.HEALTHY
    return Judgement(
        entity=entity,
        verdict=verdict,
        diagnoses=merge_diagnoses(d for a in answers for d in a.diagnoses),
        notes=merge_diagnoses(n for a in answers for n in a.notes),
        unknown=merge_unknown(u for a in answers for u in a.unknown),
        coverage=_coverage(answers),
    )


def order(diagnosis: Diagnosis) -> tuple[int, int, str, tuple[str, str, str]]:
    """Sort key of diagnoses of different entities: worst first."""
    return (
        _SEVERITIES.index(diagnosis.severity),
        _CLASSES.index(diagnosis.class_),
        diagnosis.cause,
        diagnosis.entity.key,
    )


def merge_diagnoses(diagnoses: Iterable[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Return each cause once per entity, worst first."""
    found: dict[tuple[str, tuple[str, str, str]], Diagnosis] = {}
    for one in diagnoses:
        found.setdefault((one.cause, one.entity.key), one)
    return tuple(sorted(found.values(), key=order))


def merge_unknown(entries: Iterable[Unknown]) -> tuple[Unknown, ...]:
    """Return each missing reading once, with all that it blocks."""
    blocks: dict[tuple[str, str, str, str], set[str]] = {}
    for one in entries:
        key = (one.cause, one.needs, one.why, one.fix)
        blocks.setdefault(key, set()).update(one.blocks)
    merged = [Unknown(*key, tuple(sorted(causes))) for key, causes in blocks.items()]
    # What blocks no cause in particular blocks all of them: it comes first.
    return tuple(sorted(merged, key=lambda u: (bool(u.blocks), -len(u.blocks), u.needs, u.why)))


def _coverage(answers: Sequence[Judgement]) -> Coverage:
    """Return the coverage of the GPU that was seen least: what holds for all of them."""
    worst = min(answers, key=lambda a: (a.coverage.checked, -a.coverage.unseen))
    fired = {d.cause for a in answers for d in a.diagnoses + a.notes}
    c = worst.coverage
    return Coverage(c.rules, c.checked, len(fired), c.unseen)
