"""Why a rule did not fire for a target: what each pattern needs, what was read, what is missing.

The question is asked as `why` asks it, and what came is looked at again with one rule in mind; so
the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.catalogue.nearest import did_you_mean
from engine.catalogue.types import Catalogue, SymptomRule
from engine.diagnosis.engine import DEFAULT_WINDOW_S, Engine
from engine.diagnosis.mapped import labelled
from engine.diagnosis.present import silent
from engine.diagnosis.related import beside
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.diagnosis.whynotmodel import Outcome, RuleCheck, WhyNot
from engine.diagnosis.whynotparts import Examiner
from engine.errors import SourceError, UsageError
from engine.model import Effect, Entity, Kind, Why
from engine.samples import Batch, Frame, RawSeries, Selection
from engine.signals.entities import SCOPES
from engine.signals.normalise import Readings, build_frame
from engine.sources.forwarding import Forwarding
from engine.sources.matching import series_key
from engine.sources.port import Source
from engine.topology import parse_target

_MOST_ENTITIES = 256
_SHARED = frozenset({Kind.RACK, Kind.FABRIC})
# The most telling first: of several entities the answer is that of the first found.
_TELLING = (
    Outcome.FIRED,
    Outcome.FOLLOWS,
    Outcome.HELD_BACK,
    Outcome.UNKNOWN,
    Outcome.QUIET,
    Outcome.NOT_APPLICABLE,
)
_OVERALL = {
    Outcome.FIRED: "It did fire.",
    Outcome.FOLLOWS: "It holds, and is told beneath its cause.",
    Outcome.HELD_BACK: "It holds, and is not told.",
    Outcome.UNKNOWN: "It cannot be decided: a reading is missing.",
    Outcome.QUIET: "It does not hold.",
    Outcome.NOT_APPLICABLE: "It does not apply.",
}


class _Recorder(Forwarding):
    """Keeps what came from a source: each series as the longest of it."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._series: dict[tuple[str, tuple[tuple[str, str], ...]], RawSeries] = {}
        self.failed: dict[str, SourceError] = {}
        self.written: float | None = None

    @property
    def series(self) -> list[RawSeries]:
        return list(self._series.values())

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        batch = await super().select(selections, at=at)
        self.failed |= batch.failed
        self.written = self.written or batch.written
        for one in batch.series:
            key = series_key(one.name, one.labels)
            before = self._series.get(key)
            if before is None or one.ts.size > before.ts.size:
                self._series[key] = one
        return batch


async def why_not(
    engine: Engine,
    rule: str,
    target: str,
    source: Source,
    *,
    at: float | None = None,
    window_s: float = DEFAULT_WINDOW_S,
) -> WhyNot:
    """Say why a cause or a symptom did not fire for a target, or that it did.

    Args:
        engine: the rules.
        rule: id of a cause or a symptom; ``cause/ID`` and ``ID@VERSION`` will do.
        target: as typed (`engine.topology.parse_target`).
        source: where readings come from; kernel logs take no part.
        at: the moment judged (Unix s); None is now, or a file's newest sample.
        window_s: how far back to look (s).

    Raises:
        UsageError: no such rule, or target.
        SourceError: the source does not answer.
    """
    catalogue = engine.catalogue
    name = rule.partition("@")[0].removeprefix("cause/")
    parsed = parse_target(target)
    if off := _disabled(engine, name, at, window_s):
        return off
    if name not in catalogue.causes and name not in catalogue.symptoms:
        known = (*catalogue.causes, *catalogue.symptoms)
        hint = did_you_mean(name, known, otherwise="gpuwhy rules list names them all")
        raise UsageError(f"no rule {name!r}", hint=hint, code="unknown_rule")
    recorder = _Recorder(source)
    why = await engine.why(target, recorder, at=at, window_s=window_s)
    readings = _readings(engine, recorder, why, window_s)
    wanted = {e.key for e in (why.target, *why.members)}
    mine = [i for i, e in enumerate(readings.frame.entities) if e.key in wanted]
    frames: dict[str, tuple[Frame, list[int]]] = {"gpu": (readings.frame, mine)}
    for scope, some in beside(parsed, readings, mine).items():
        frames[scope] = (readings.others[scope], some)
    checks = list(_checks(engine, name, frames, recorder.failed, why))[:_MOST_ENTITIES]
    outcome = min((c.outcome for c in checks), key=_TELLING.index, default=Outcome.NOT_APPLICABLE)
    says = _OVERALL[outcome]
    if not mine and not checks and why.target.kind is Kind.GPU:
        outcome = Outcome.UNKNOWN
        told = why.unknown[0].why if why.unknown else "no reading of it was found"
        says = f"It cannot be decided: {told.rstrip('.')}."
    elif not checks:
        says = f"It does not apply: {_nobody(name, catalogue, why.target)}."
    elif len(checks) == 1:
        says = checks[0].says
    found = catalogue.causes.get(name) or catalogue.symptoms[name]
    return WhyNot(
        rule=f"{name}@{found.version}",
        kind="cause" if name in catalogue.causes else "symptom",
        title=found.title,
        target=why.target,
        at=why.at,
        window_s=why.window_s,
        outcome=outcome,
        says=says,
        checks=tuple(checks),
        disabled_by="",
        goes_without=tuple(_without(name, catalogue)),
        engine=engine.info,
        queries=why.queries,
        warnings=why.warnings,
        members=tuple(dict.fromkeys(c.entity for c in checks)),
    )


def _disabled(engine: Engine, name: str, at: float | None, window_s: float) -> WhyNot | None:
    """Return the answer for a rule that is switched off; nothing need be read for it."""
    catalogue = engine.catalogue
    kinds = {"cause": f"rule/{name}", "symptom": f"symptom/{name}"}
    for kind, key in kinds.items():
        file = catalogue.disabled.get(key)
        if file is not None:
            info = catalogue.taxonomy.get(name) if kind == "cause" else None
            return WhyNot(
                rule=name,
                kind=kind,
                title=info.title if info else name,
                target=None,
                at=at,
                window_s=window_s,
                outcome=Outcome.DISABLED,
                says=f"It is switched off by {file}.",
                checks=(),
                disabled_by=file,
                goes_without=(),
                engine=engine.info,
                queries=0,
                warnings=catalogue.left_out,
            )
    return None


def _without(name: str, catalogue: Catalogue) -> Iterator[str]:
    for ref in catalogue.thinned.get(name, ()):
        cause = ref.startswith("cause/")
        key = f"rule/{ref.removeprefix('cause/')}" if cause else f"symptom/{ref}"
        yield f"{ref} ({catalogue.disabled.get(key, 'switched off by an earlier overlay')})"


def _readings(engine: Engine, recorder: _Recorder, why: Why, window_s: float) -> Readings:
    """Normalise what was read, over the last day if the target is silent in the window."""
    series = labelled(recorder.series, engine.site)
    batch = Batch(series, why.at, why.queries, written=recorder.written)
    span = max(window_s, engine.fetcher.window_s)
    readings = build_frame(batch, engine.catalogue, at=why.at, window_s=span)
    wanted = {e.key for e in (why.target, *why.members)}
    frame = readings.frame
    if frame.timed and any(
        silent(frame, i) for i, e in enumerate(frame.entities) if e.key in wanted
    ):
        return build_frame(batch, engine.catalogue, at=why.at, window_s=LOOKBACK_LOST_S)
    return readings


def _checks(
    engine: Engine,
    name: str,
    frames: Mapping[str, tuple[Frame, list[int]]],
    failed: Mapping[str, SourceError],
    why: Why,
) -> Iterator[RuleCheck]:
    """Yield how a rule came out at each entity of the frames in which it is at home."""
    for scope, (frame, chosen) in frames.items():
        judge = engine.judges.of(scope)
        if not chosen or (name not in judge.causes and name not in judge.observer.rules):
            continue
        seen = judge.observe(frame, chosen)
        states = judge.states(seen) if judge.causes else {}
        examiner = Examiner(judge, seen, states, failed)
        for i in chosen:
            if name not in judge.causes:
                yield examiner.symptom(name, i)
                continue
            told, above = _told(
                name, judge.scope_entity(judge.causes[name], frame.entities[i]), why
            )
            yield examiner.cause(name, i, told=told, above=above)


def _told(name: str, entity: Entity, why: Why) -> tuple[bool, str]:
    """Return whether an answer names a cause at an entity, and the cause that it hangs beneath."""
    for one in (*why.diagnoses, *why.notes):
        shared = one.entity.kind in _SHARED  # told once for many, of what they share
        if one.cause == name and (shared or one.entity.key == entity.key):
            return True, ""
        if any(e.cause == name and e.entity.key == entity.key for e in _all(one.effects)):
            return True, one.cause
    return any(u.cause == name for u in why.unknown), ""


def _all(effects: Sequence[Effect]) -> Iterator[Effect]:
    for effect in effects:
        yield effect
        yield from _all(effect.effects)


def _nobody(name: str, catalogue: Catalogue, target: Entity) -> str:
    """Say that nothing which the rule is about was found with a target."""
    scopes = {rule.scope for rule in _symptoms(name, catalogue)}
    about = " and ".join(sorted(scopes)) or "another scope"
    other = "" if scopes <= {"gpu", "node", *SCOPES} else " (no reading of that kind is known)"
    return f"it reads what is of {about}{other}, and nothing of that was found with {target.name}"


def _symptoms(name: str, catalogue: Catalogue) -> Iterator[SymptomRule]:
    if name in catalogue.symptoms:
        yield catalogue.symptoms[name]
        return
    for pattern in catalogue.causes[name].patterns:
        yield from (catalogue.symptoms[r] for r in pattern.refs if r in catalogue.symptoms)
