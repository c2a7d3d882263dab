"""One answer out of the judgements of many entities: what brings about what, across all of them.

A GPU, its node, ports, mounts, pod and ranks are judged each by itself. Here the effects of one
are hung beneath the cause at another: a power brake on node-7 halves a clock, which makes a rank
slow, for which the others wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.catalogue.types import CauseRule
from engine.diagnosis.combine import combine, order
from engine.diagnosis.judge import Judgement
from engine.diagnosis.rank import Fired, Key, rank
from engine.model import Coverage, Diagnosis, Effect, Entity, Kind, Verdict, Why

# A file system that is nearly full does not slow a GPU: told only beside what it brings about.
_ONLY_WITH_EFFECTS = frozenset({Kind.FILESYSTEM})
_WITH_FILESYSTEMS = frozenset({Kind.FILESYSTEM, Kind.NODE, Kind.RACK, Kind.FLEET})


@dataclass(slots=True)
class _Found:
    """A cause as it was found at one or more entities; an effect alone has no diagnosis."""

    cause: str
    entity: Entity
    diagnosis: Diagnosis | None
    parent: Key | None
    seats: list[Entity] = field(default_factory=list)


def compose(
    entity: Entity,
    main: Sequence[Judgement],
    side: Sequence[Judgement],
    causes: Mapping[str, CauseRule],
    *,
    alone: bool,
) -> Judgement:
    """Return the judgement of a target out of those of what it is made of.

    Args:
        entity: the target.
        main: of what decides on health: a GPU, all GPUs of a node or job, the engines of a service.
        side: of what belongs to it.
        causes: all rules of causes.
        alone: ``main`` is the target itself.
    """
    own = main[0] if alone else combine(entity, main)
    told = [answer for answer in side if answer.diagnoses]
    if alone and not told:
        return own
    first = {key_of(d): k for k, d in enumerate(own.diagnoses)}
    pairs = [(a.entity, d) for a in main for d in a.diagnoses]
    pairs += [(a.entity, d) for a in told for d in a.diagnoses]
    roots = hang(pairs, causes, [a.entity for a in (*main, *side)])
    if entity.kind not in _WITH_FILESYSTEMS:
        roots = [r for r in roots if r.entity.kind not in _ONLY_WITH_EFFECTS or r.effects]
    if alone:
        roots.sort(key=lambda d: (not _takes(d, own), first.get(key_of(d), len(first)), order(d)))
    else:
        roots.sort(key=order)
    verdict = Verdict.DEGRADED if roots else own.verdict
    coverage = with_found(own, (d for answer in told for d in answer.diagnoses))
    return replace(own, verdict=verdict, diagnoses=tuple(roots), coverage=coverage)


def with_found(own: Judgement | Why, more: Iterable[Diagnosis]) -> Coverage:
    """Return the coverage of an answer in which causes that were found elsewhere stand as well."""
    known = {d.cause for d in (*own.diagnoses, *own.notes)}
    new = {d.cause for d in more} - known
    return replace(own.coverage, fired=own.coverage.fired + len(new))


def hang(
    found: Iterable[tuple[Entity, Diagnosis]],
    causes: Mapping[str, CauseRule],
    judged: Iterable[Entity] = (),
) -> list[Diagnosis]:
    """Hang effects beneath causes at other entities; each (cause, entity) comes once.

    Args:
        found: (the entity judged, what was found) pairs; of a cause given twice for an entity the
            first counts.
        causes: all rules of causes.
        judged: all that was looked at, the healthy too: GPUs say for which job their host works.
    """
    known: dict[Key, _Found] = {}
    jobs = _jobs(judged)
    for seat, diagnosis in found:
        _add(known, diagnosis.cause, diagnosis.entity, seat, diagnosis=diagnosis)
        if seat.kind is Kind.NODE and (job := jobs.get((seat.cluster, seat.host))):
            _add(known, diagnosis.cause, diagnosis.entity, job)
        for effect, parent in _tree(diagnosis.effects, key_of(diagnosis)):
            _add(known, effect.cause, effect.entity, seat, parent=parent)
    fired = [_fired(one, known, causes) for one in known.values() if one.cause in causes]
    roots: dict[Key, Diagnosis] = {}
    strays: list[tuple[Key, Effect]] = []
    for ranked in rank(fired):
        one = known[ranked.fired.key]
        if one.diagnosis is not None:
            roots[ranked.fired.key] = replace(one.diagnosis, effects=ranked.effects)
        elif one.parent is not None:
            strays.append((one.parent, Effect(one.cause, one.entity, ranked.effects)))
    for key, effect in strays:
        if key in roots:
            roots[key] = replace(roots[key], effects=(*roots[key].effects, effect))
    return [_unchanged(d, known) for d in roots.values()]


def _jobs(judged: Iterable[Entity]) -> dict[tuple[str | None, str | None], Entity]:
    """Return the job of each host whose GPUs work for one only: what its links do concerns it."""
    of_host: dict[tuple[str | None, str | None], set[str]] = {}
    for one in judged:
        if one.host and one.job:
            of_host.setdefault((one.cluster, one.host), set()).add(one.job)
    return {
        (cluster, host): Entity(Kind.JOB, f"job/{min(jobs)}", cluster, job=min(jobs))
        for (cluster, host), jobs in of_host.items()
        if len(jobs) == 1
    }


def _unchanged(diagnosis: Diagnosis, known: Mapping[Key, _Found]) -> Diagnosis:
    """Return the very diagnosis that was given, where nothing was hung beneath it."""
    before = known[key_of(diagnosis)].diagnosis
    return before if before is not None and before == diagnosis else diagnosis


def _add(
    known: dict[Key, _Found],
    cause: str,
    entity: Entity,
    seat: Entity,
    *,
    diagnosis: Diagnosis | None = None,
    parent: Key | None = None,
) -> None:
    one = known.setdefault((cause, entity.key), _Found(cause, entity, None, parent))
    one.diagnosis = one.diagnosis or diagnosis
    if seat not in one.seats:
        one.seats.append(seat)


def _tree(effects: Iterable[Effect], parent: Key) -> Iterable[tuple[Effect, Key]]:
    for effect in effects:
        yield effect, parent
        yield from _tree(effect.effects, (effect.cause, effect.entity.key))


def below(effects: Iterable[Effect]) -> Iterable[Effect]:
    """Yield all effects of a tree."""
    for effect in effects:
        yield effect
        yield from below(effect.effects)


def _fired(one: _Found, known: Mapping[Key, _Found], causes: Mapping[str, CauseRule]) -> Fired:
    rule = causes[one.cause]
    sure: _Found | None = one
    while sure is not None and sure.diagnosis is None:  # an effect is as sure as its cause
        sure = known.get(sure.parent) if sure.parent else None
    diagnosis = sure.diagnosis if sure else None
    return Fired(
        cause=one.cause,
        entity=one.entity,
        class_=rule.class_,
        severity=rule.severity,
        confidence=diagnosis.confidence if diagnosis else rule.patterns[0].confidence,
        explains=frozenset({f"{one.cause} {' '.join(one.entity.key)}"}),
        effects=rule.effects,
        seats=tuple(one.seats),
    )


def _takes(diagnosis: Diagnosis, own: Judgement) -> bool:
    """Whether what the target itself shows hangs beneath a cause elsewhere."""
    keys = {key_of(d) for d in own.diagnoses}
    below = _tree(diagnosis.effects, key_of(diagnosis))
    return key_of(diagnosis) not in keys and any((e.cause, e.entity.key) in keys for e, _ in below)


def key_of(diagnosis: Diagnosis) -> Key:
    """Return cause and entity of a diagnosis, which identify it."""
    return (diagnosis.cause, diagnosis.entity.key)
