"""Some rules of one version, judged at one moment as a sweep would judge them.

Only these rules are evaluated, with the symptoms and causes that their patterns refer to, and with
what says that readings have stopped: a rule fires where its own test would say ``fires``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.catalogue.types import Catalogue
from engine.diagnosis.judge import Judge, Judgement, Judges
from engine.diagnosis.observe import Observation, Trits
from engine.diagnosis.present import current, silent
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.history.episodes import Fire, Key
from engine.history.replaymodel import Ended
from engine.model import Effect, Entity
from engine.samples import Batch, Frame, RawSeries
from engine.signals.entities import SCOPES
from engine.signals.labels import node_entity
from engine.signals.normalise import Readings, build_frame

# What says that readings have stopped; a diagnosis that rests on them is then one of the past.
_SILENCE = ("stale_data", "exporter_down")
_CAUSE = "cause/"
# Read wherever Xids are: the counters by code tell repeats (`engine.signals.events`).
_WITH_XID = "xid_count"


@dataclass(slots=True)
class Tally:
    """How often a rule was looked at, and how often it could not be decided."""

    looks: int = 0
    unknown: int = 0


@dataclass(slots=True)
class Look:
    """What fires at a moment, and what cannot be decided."""

    fired: dict[Key, Fire] = field(default_factory=dict)
    unknown: set[Key] = field(default_factory=set)
    there: set[tuple[str, str, str]] = field(default_factory=set)

    def why_not(self, key: Key) -> Ended:
        """Return why a rule that fired before does not at this moment."""
        if key in self.unknown:
            return Ended.UNKNOWN
        return Ended.OVER if key[1] in self.there else Ended.GONE


def readings_at(
    series: list[RawSeries], catalogue: Catalogue, at: float, window_s: float
) -> Readings:
    """Normalise what a question about a moment gets, over a day if some GPU has fallen silent."""
    readings = build_frame(Batch(series, at, 0), catalogue, at=at, window_s=window_s)
    if any(silent(readings.frame, i) for i in range(len(readings.frame))):
        return build_frame(Batch(series, at, 0), catalogue, at=at, window_s=LOOKBACK_LOST_S)
    return readings


class Panel:
    """Rules compiled for replaying.

    Args:
        catalogue: all knowledge and rules of a version.
        names: ids of the causes and symptoms that are asked about; what the version lacks is left
            out.
    """

    def __init__(self, catalogue: Catalogue, names: Iterable[str]) -> None:
        self.catalogue = catalogue
        wanted = dict.fromkeys(names)
        self.causes = tuple(sorted(n for n in wanted if n in catalogue.causes))
        self.symptoms = tuple(sorted(n for n in wanted if n in catalogue.symptoms))
        self._subset = _needed(catalogue, self.causes, self.symptoms)
        judges = Judges(self._subset)
        found = {scope: judges.of(scope) for scope in ("gpu", "node", *SCOPES)}
        self.judges = {s: j for s, j in found.items() if j.observer.rules}
        self.inference = judges.of("gpu").inferrer.name
        self.tallies = {name: Tally() for name in (*self.causes, *self.symptoms)}

    @property
    def signals(self) -> frozenset[str]:
        """Every signal that is read."""
        read = frozenset().union(*(j.observer.signals for j in self.judges.values()))
        core = {s.id for s in self.catalogue.signals.values() if s.core}
        more = {_WITH_XID} if "xid" in read and _WITH_XID in self.catalogue.signals else set()
        return read | core | more

    @property
    def window_s(self) -> float:
        """How far back the conditions look (s)."""
        return max((j.observer.window_s for j in self.judges.values()), default=0.0)

    def look(self, readings: Readings) -> Look:
        """Judge every entity at the moment of some readings."""
        out = Look()
        for scope, judge in self.judges.items():
            frame = readings.frame if scope == "gpu" else readings.others.get(scope)
            if frame is None or not len(frame):
                continue
            chosen = list(range(len(frame)))
            if scope == "gpu":
                chosen = current(readings, chosen)
            seen = judge.observe(frame)
            states = judge.states(seen) if judge.causes else {}
            for name in self.causes:
                if name in states:
                    self._look_at_cause(out, judge, name, states, frame, chosen)
            for i in _suspects(states, self.causes, chosen):
                answer = judge.judge(seen, i, states, unknowns=False)
                out.fired |= dict(self._fires(judge, answer))
            for name in self.symptoms:
                if name in seen.truth:
                    self._look_at_symptom(out, name, seen, chosen)
        # What holds in one scope is no less true for being unknown in another.
        out.unknown -= out.fired.keys()
        return out

    def _look_at_cause(
        self,
        out: Look,
        judge: Judge,
        name: str,
        states: dict[str, Trits],
        frame: Frame,
        chosen: Sequence[int],
    ) -> None:
        rule, tally = judge.causes[name], self.tallies[name]
        tally.looks += len(chosen)
        for i in chosen:
            key = judge.scope_entity(rule, frame.entities[i]).key
            out.there.add(key)
            if states[name][i] == 0:
                tally.unknown += 1
                out.unknown.add((name, key))

    def _look_at_symptom(
        self, out: Look, name: str, seen: Observation, chosen: Sequence[int]
    ) -> None:
        scope, tally = self.catalogue.symptoms[name].scope, self.tallies[name]
        tally.looks += len(chosen)
        truth = seen.truth[name]
        for i in chosen:
            entity = _said_of(scope, seen.frame.entities[i])
            out.there.add(entity.key)
            if truth[i] == 1:
                out.fired[name, entity.key] = Fire(entity, None)
            elif truth[i] == 0:
                tally.unknown += 1
                out.unknown.add((name, entity.key))

    def _fires(self, judge: Judge, answer: Judgement) -> Iterator[tuple[Key, Fire]]:
        """Yield the causes asked about that an answer names, as roots or as effects."""
        for found in (*answer.diagnoses, *answer.notes):
            if found.cause in self.causes:
                yield (found.cause, found.entity.key), Fire(found.entity, found.confidence)
            for effect in _all(found.effects):
                if effect.cause in self.causes:
                    yield (effect.cause, effect.entity.key), Fire(effect.entity, None)
        for name in answer.blind:
            if name in self.causes:
                entity = judge.scope_entity(judge.causes[name], answer.entity)
                yield (name, entity.key), Fire(entity, None)


def _needed(catalogue: Catalogue, causes: Sequence[str], symptoms: Sequence[str]) -> Catalogue:
    """Return a catalogue with some rules, and those that they refer to."""
    names = dict.fromkeys(causes)
    if names:
        names |= dict.fromkeys(n for n in _SILENCE if n in catalogue.causes)
    refs = dict.fromkeys(symptoms)
    waiting = list(names)
    while waiting:
        rule = catalogue.causes[waiting.pop()]
        for ref in (r for pattern in rule.patterns for r in pattern.refs):
            other = ref.removeprefix(_CAUSE)
            if ref == other:
                refs[ref] = None
            elif other in catalogue.causes and other not in names:
                names[other] = None
                waiting.append(other)
    return replace(
        catalogue,
        causes={n: catalogue.causes[n] for n in sorted(names)},
        symptoms={n: catalogue.symptoms[n] for n in sorted(refs) if n in catalogue.symptoms},
    )


def _suspects(states: dict[str, Trits], causes: Sequence[str], chosen: Sequence[int]) -> list[int]:
    """Return the entities at which the patterns of some cause asked about can hold."""
    rows = [states[name] for name in causes if name in states]
    if not rows:
        return []
    some = np.maximum.reduce(rows) == 1
    return [i for i in chosen if some[i]]


def _said_of(scope: str, entity: Entity) -> Entity:
    """Return what a symptom is said of: the node for what is read of a node."""
    return node_entity(entity.host, entity.cluster) if scope == "node" and entity.host else entity


def _all(effects: Sequence[Effect]) -> Iterator[Effect]:
    for effect in effects:
        yield effect
        yield from _all(effect.effects)
