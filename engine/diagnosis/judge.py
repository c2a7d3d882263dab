"""Judge: from words to a verdict for one entity of a frame.

Truths go to the inference engine, the causes that fired are ranked, and each becomes a
`Diagnosis` with the readings that decided it. What could not be decided is listed by the reading
that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.catalogue.types import AlternativeRule, Catalogue, CauseRule, NextStep, Pattern
from engine.diagnosis import explain, logwords
from engine.diagnosis.blocked import looks_of
from engine.diagnosis.core import core_of, fresh, missing_core
from engine.diagnosis.homes import home
from engine.diagnosis.observe import Observation, Observer, Trits
from engine.diagnosis.rank import Fired, Ranked, rank
from engine.diagnosis.states import States
from engine.diagnosis.words import step, steps
from engine.inference import Derived, make_inferrer
from engine.model import (
    Alternative,
    Class,
    Confidence,
    Coverage,
    Diagnosis,
    Entity,
    Kind,
    Severity,
    Unknown,
    Verdict,
)
from engine.samples import Frame
from engine.signals.labels import node_entity

_ORDER = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE)
_CAUSE = "cause/"
MAX_CLOCK = "max_sm_clock"
# Blind causes that mean that nothing is heard, and the symptoms of it.
_SILENT = frozenset({"stale_data", "exporter_down"})
_SILENCE = frozenset({"core_stale", "core_absent", "vanished"})
# What is well with a GPU is no comfort beside a fault.
_PRAISE = frozenset({"compute_bound", "memory_bound", "power_bound"})
# Blind causes that forbid "healthy" whatever the readings: visibly slow and nothing exported says
# why, and an exporter that has just stopped answering.
_NEVER_HEALTHY = frozenset({"metrics_missing", "exporter_down"})
# A mount without requests, beside others that have some: harmless, or it hangs, as the other tells.
_STANDS_STILL, _WAITED_FOR = "nfs_requests_stopped", "nfs_replies_owed"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said of one entity: the parts of a `Why` that do not depend on the source.

    ``blind`` are the blind causes that hold; ``unknown`` says the same to a reader.
    """

    entity: Entity
    verdict: Verdict
    diagnoses: tuple[Diagnosis, ...]
    notes: tuple[Diagnosis, ...]
    unknown: tuple[Unknown, ...]
    coverage: Coverage
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What the words of an entity tell by themselves, whatever its readings are.

    ``state`` says of each cause whether its patterns can hold: 1, 0 (cannot tell) or -1.
    """

    state: Mapping[str, int]
    derived: Sequence[Derived]
    coverage: Coverage


class Judge:
    """Rules compiled for judging the entities of one scope; used from one event loop.

    Args:
        catalogue: knowledge and rules.
        inference: ``auto``, ``durable_rules`` or ``reference`` (see `engine.inference`).
        scope: what is judged: GPUs with what their nodes say, or another scope of signals.
    """

    def __init__(
        self, catalogue: Catalogue, *, inference: str = "auto", scope: str = "gpu"
    ) -> None:
        self.catalogue = catalogue
        self.scope = scope
        rules = home(catalogue, scope)
        self.observer = Observer(rules)
        self.causes: Mapping[str, CauseRule] = rules.causes
        self.core = core_of(catalogue, scope)
        self.inferrer = make_inferrer(self.causes, prefer=inference)
        self._states = States(self.causes, self.observer.rules)
        # What tells a slowed GPU from one that runs as it should, beside its model's clock.
        slowed = self.observer.conditions.get("throttle_unknown")
        self.yardsticks = (*sorted(slowed.signals), MAX_CLOCK) if slowed else ()
        self.compared_in_job = self.observer.job_signals
        self.looks = looks_of(self.causes, self.observer.conditions)
        self._asked = _symptoms_of(self.causes.values())
        self._sighted = [c for c, rule in self.causes.items() if rule.class_ is not Class.BLIND]
        of_host = {name for name, rule in self.observer.rules.items() if rule.scope == "node"}
        self._of_host = frozenset(
            name
            for name, rule in self.causes.items()
            if all(of_host.intersection(pattern.all) for pattern in rule.patterns)
        )

    def told_by(self, signal: str) -> list[str]:
        """Return the causes for which a reading of this signal can speak, in alphabetical order."""
        reads = {name for name, c in self.observer.conditions.items() if signal in c.signals}
        return sorted(
            cause
            for cause, rule in self.causes.items()
            if rule.class_ not in {Class.BLIND, Class.BENIGN}
            and any(reads & {*pattern.all, *pattern.any} for pattern in rule.patterns)
        )

    def observe(self, frame: Frame, only: Sequence[int] | None = None) -> Observation:
        """Turn a frame into words (see `Observer.observe`)."""
        return self.observer.observe(frame, only)

    def states(self, seen: Observation) -> dict[str, Trits]:
        """Return for every cause whether its patterns can hold: 1, 0 (cannot tell) or -1."""
        return self._states.of(seen.truth)

    def judge(
        self, seen: Observation, i: int, states: Mapping[str, Trits], *, unknowns: bool = True
    ) -> Judgement:
        """Judge entity i. ``unknowns`` False leaves out the list of what was not seen (sweeps)."""
        entity = seen.frame.entities[i]
        told = self._told(seen, i, states)
        fired = [self._fired(d, seen, i) for d in told.derived]
        ranked = rank(fired)
        blind = [f for f in fired if f.class_ is Class.BLIND]
        acting = [r for r in ranked if _acts(r)]
        mute = any(f.cause in _SILENT for f in blind) or _nothing(seen.frame, i)
        past = [r for r in acting if mute and not self._outlasts_silence(r, seen, i)]
        diagnoses = [self._diagnosis(r, seen, i, states) for r in acting if r not in past]
        harmed = any(d.class_ in {Class.FAULT, Class.LIMIT} for d in diagnoses)
        notes = [
            self._diagnosis(r, seen, i, states)
            for r in ranked
            if _benign(r) and not (harmed and r.fired.cause in _PRAISE) and not mute
        ]
        missing = explain.unknowns(self, seen, i, states) if unknowns and not mute else ()
        verdict = self._verdict(seen, i, diagnoses, notes, blind)
        coverage = told.coverage
        if verdict is Verdict.HEALTHY and not coverage.checked and self._saw_nothing(seen, i):
            verdict = (
                Verdict.UNKNOWN
            )  # nothing could be checked: that nothing was found says nothing
        unmeasured = verdict is Verdict.HEALTHY and self._no_yardstick(seen, i)
        undecided = verdict is Verdict.HEALTHY and self._undecided(seen, i)
        torn = self._torn(seen.frame, i)
        if unmeasured or undecided or (torn and verdict is not Verdict.DEGRADED):
            verdict = Verdict.UNKNOWN
        return Judgement(
            entity=entity,
            verdict=verdict,
            diagnoses=tuple(diagnoses),
            notes=tuple(notes),
            unknown=explain.blind(
                self,
                seen,
                i,
                blind,
                blocks=[c for c in self.causes if mute and told.state[c] == 0],
                last=[self.causes[r.fired.cause].title for r in past],
            )
            + ((explain.no_yardstick(self, entity),) if unmeasured else ())
            + ((explain.undecided(self, entity),) if undecided else ())
            + tuple(explain.contradicted(self, name, says) for name, says in torn.items())
            + tuple(missing),
            coverage=coverage,
            blind=tuple(f.cause for f in blind),
        )

    def _saw_nothing(self, seen: Observation, i: int) -> bool:
        """Return whether not a single symptom could be decided."""
        return all(seen.truth[s][i] == 0 for s in self._asked if s in seen.truth)

    def _no_yardstick(self, seen: Observation, i: int) -> bool:
        """Return whether a GPU works, and nothing tells how fast it should."""
        if not self.yardsticks or "busy" not in seen.truth or seen.truth["busy"][i] != 1:
            return False
        fact = seen.frame.attrs.get("max_sm_clock_mhz")
        known = fact is not None and not np.isnan(fact[i])
        return not known and not any(fresh(seen.frame, s, i) for s in self.yardsticks)

    def _torn(self, frame: Frame, i: int) -> dict[str, str]:
        """Return the core readings that two exporters contradict each other on."""
        said = frame.contradicted.get(i, {})
        return {name: said[name] for group in self.core for name in group if name in said}

    @staticmethod
    def _undecided(seen: Observation, i: int) -> bool:
        """Return whether a mount stands still, and nothing tells whether requests wait."""
        stopped, owed = (seen.truth.get(s) for s in (_STANDS_STILL, _WAITED_FOR))
        return stopped is not None and stopped[i] == 1 and owed is not None and owed[i] == 0

    def _outlasts_silence(self, ranked: Ranked, seen: Observation, i: int) -> bool:
        """Return whether a cause still stands when the readings have stopped.

        What explains the silence does, and what rests on events (an Xid came, and is not undone by
        the readings that stopped later); a temperature or a throttle bit of then says nothing now.
        """
        rule = self.causes[ranked.fired.cause]
        if _SILENCE & set(rule.explains):
            return True
        proof = [s for s in _proof(rule, seen, i) if seen.truth[s][i] == 1]
        signals = {s for name in proof for s in self.observer.conditions[name].signals}
        return bool(signals) and all(
            self.catalogue.signals[s].kind in {"code", "enum"} for s in signals
        )

    def _told(self, seen: Observation, i: int, states: Mapping[str, Trits]) -> Told:
        """Return what the words of entity i tell; of many entities each row of words once."""
        row = b"" if seen.few else seen.row(i)
        told = seen.told.get(row) if row else None
        if told is None:
            state = {cause: trits.item(i) for cause, trits in states.items()}
            derived = self._infer(seen, i, state)
            told = Told(state, derived, self._coverage(state, {d.cause for d in derived}))
            if row:
                seen.told[row] = told
        return told

    def _infer(self, seen: Observation, i: int, state: Mapping[str, int]) -> Sequence[Derived]:
        if 1 not in state.values():
            return ()  # no pattern's own symptoms hold, so nothing can be derived either
        return self.inferrer.infer(seen.words(i, self._asked))

    def _fired(self, derived: Derived, seen: Observation, i: int) -> Fired:
        rule = self.causes[derived.cause]
        held = [rule.patterns[k] for k in derived.patterns]
        confidence = min((self._confidence(p, seen, i) for p in held), key=_ORDER.index)
        true = {s for s in rule.explains if s in seen.truth and seen.truth[s][i] == 1}
        for pattern in held:
            true |= {
                s for s in pattern.all + pattern.any if s in seen.truth and seen.truth[s][i] == 1
            }
        return Fired(
            cause=rule.id,
            class_=Class.BENIGN if all(p.note for p in held) else rule.class_,
            severity=Severity.INFO if all(p.note for p in held) else rule.severity,
            confidence=confidence,
            explains=frozenset(true),
            effects=rule.effects,
            entity=self.scope_entity(rule, seen.frame.entities[i]),
            seats=(seen.frame.entities[i],),
        )

    def _confidence(self, pattern: Pattern, seen: Observation, i: int) -> Confidence:
        """Return the pattern's word, or ``possible`` if any symptom it needs is weak."""
        needed = [s for s in pattern.all if s in seen.weak]
        some = [s for s in pattern.any if s in seen.truth and seen.truth[s][i] == 1]
        weak = any(seen.weak[s][i] for s in needed)
        weak = weak or bool(some and all(seen.weak[s][i] for s in some))
        return Confidence.POSSIBLE if weak else pattern.confidence

    def scope_entity(self, rule: CauseRule, entity: Entity) -> Entity:
        """Return what a cause is said of: what its scope says, as far as the entity tells."""
        match rule.scope:
            case "node" | "rack" if entity.host:
                return node_entity(entity.host, entity.cluster)
            case "job" if entity.job:
                return Entity(Kind.JOB, f"job/{entity.job}", entity.cluster, job=entity.job)
            case "job" if entity.kind is Kind.GPU and entity.host and rule.id in self._of_host:
                return node_entity(entity.host, entity.cluster)  # a job that no label names
            case "filesystem" if entity.kind is Kind.GPU and entity.host:
                return node_entity(entity.host, entity.cluster)  # some mount, not known which
            case "fabric":
                return Entity(Kind.FABRIC, "fabric", entity.cluster)
        return entity

    def _diagnosis(
        self, ranked: Ranked, seen: Observation, i: int, states: Mapping[str, Trits]
    ) -> Diagnosis:
        fired = ranked.fired
        rule = self.causes[fired.cause]
        proof = [s for s in _proof(rule, seen, i) if seen.truth[s][i] == 1]
        evidence = explain.evidence(self, seen, i, proof)
        return Diagnosis(
            cause=rule.id,
            title=rule.title,
            class_=fired.class_,
            entity=fired.entity,
            severity=fired.severity,
            confidence=fired.confidence,
            says=logwords.says(rule, seen.frame, i, self.catalogue, evidence),
            evidence=evidence,
            against=explain.evidence(
                self, seen, i, [s for s in rule.against if seen.truth[s][i] == 1]
            ),
            effects=ranked.effects,
            alternatives=tuple(
                self._alternative(a, seen.frame, i)
                for a in rule.alternatives
                if a.cause not in states or states[a.cause][i] == 0
            ),
            next=steps(rule.next, seen.frame, i, self.catalogue),
            since=None if fired.class_ is Class.BENIGN else self._since(seen, i, proof),
            rule=rule.name,
            references=rule.references,
        )

    def _alternative(self, rule: AlternativeRule, frame: Frame, i: int) -> Alternative:
        filled = step(NextStep("", rule.command), frame, i, self.catalogue)
        return Alternative(rule.cause, rule.told_apart_by, filled.command)

    def _since(self, seen: Observation, i: int, proof: Iterable[str]) -> float | None:
        for symptom in proof:
            return self.observer.since(seen, i, symptom)
        return None

    def _coverage(self, state: Mapping[str, int], fired: set[str]) -> Coverage:
        unseen = sum(1 for c in self._sighted if state[c] == 0 and c not in fired)
        return Coverage(
            rules=len(self._sighted),
            checked=len(self._sighted) - unseen,
            fired=sum(1 for c in self._sighted if c in fired),
            unseen=unseen,
        )

    def _verdict(
        self,
        seen: Observation,
        i: int,
        diagnoses: Sequence[Diagnosis],
        notes: Sequence[Diagnosis],
        blind: Sequence[Fired],
    ) -> Verdict:
        if diagnoses:
            return Verdict.DEGRADED
        if any(b.cause in _NEVER_HEALTHY for b in blind) or missing_core(seen.frame, i, self.core):
            return Verdict.UNKNOWN
        if any(n.cause == "idle" for n in notes):
            return Verdict.IDLE
        return Verdict.HEALTHY


class Judges:
    """The judges of all scopes, each made when it is first needed.

    Args:
        catalogue: knowledge and rules.
        inference: as for `Judge`.
    """

    def __init__(self, catalogue: Catalogue, inference: str = "auto") -> None:
        self._catalogue = catalogue
        self._inference = inference
        self._made: dict[str, Judge] = {}

    def of(self, scope: str) -> Judge:
        """Return the judge of a scope."""
        if scope not in self._made:
            self._made[scope] = Judge(self._catalogue, inference=self._inference, scope=scope)
        return self._made[scope]


def _nothing(frame: Frame, i: int) -> bool:
    return not any(frame.count(s, i) for s in frame.columns)


def _symptoms_of(rules: Iterable[CauseRule]) -> tuple[str, ...]:
    return tuple(
        sorted(
            {r for rule in rules for p in rule.patterns for r in p.refs if not r.startswith(_CAUSE)}
        )
    )


def _proof(rule: CauseRule, seen: Observation, i: int) -> list[str]:
    """Return the symptoms that decided, those of the patterns that hold first, in rule order."""
    names: dict[str, None] = {}
    for pattern in rule.patterns:
        wanted = [s for s in pattern.all + pattern.any if s in seen.truth]
        if all(seen.truth[s][i] == 1 for s in pattern.all if s in seen.truth):
            names.update(dict.fromkeys(wanted))
    names.update(dict.fromkeys(s for s in rule.explains if s in seen.truth))
    return list(names)


def _acts(ranked: Ranked) -> bool:
    return ranked.fired.class_ not in {Class.BENIGN, Class.BLIND}


def _benign(ranked: Ranked) -> bool:
    return ranked.fired.class_ is Class.BENIGN
