"""Symptoms and causes as recorded series: ``gpuwhy:symptom`` and ``gpuwhy:cause``.

A symptom has a sample where it is true (1); one that some cause needs to be known false has a
sample there too (0). A cause has one (1) where one of its patterns holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from engine.catalogue.types import Catalogue, CauseRule, Pattern, SymptomRule
from engine.condition import compile_condition
from engine.condition.selectors import duration
from engine.condition.tree import push_not
from engine.diagnosis.homes import home
from engine.export.names import CAUSE, GPU_INFO, SYMPTOM
from engine.export.recorded import Recording, has_series
from engine.export.rewrite import Rewriter
from engine.inference.strata import assign_strata, cause_of


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A cause that is not exported, or gives no alert, and why."""

    id: str
    reason: str


@dataclass(slots=True)
class Verdicts:
    """Recordings in the order in which they must be evaluated.

    Attributes:
        derived: what the conditions need.
        symptoms, causes: what was compiled.
        inexact: causes that PromQL cannot say exactly.
    """

    derived: list[Recording] = field(default_factory=list)
    symptoms: list[Recording] = field(default_factory=list)
    causes: dict[str, Recording] = field(default_factory=dict)
    inexact: list[LeftOut] = field(default_factory=list)


def verdict_rules(catalogue: Catalogue, interval_s: int) -> Verdicts:
    """Compile every symptom that a cause of GPUs refers to, and every such cause."""
    everything, catalogue = catalogue, _of_gpus(catalogue)
    rewriter = Rewriter(catalogue, interval_s)
    made = Verdicts(derived=rewriter.rules)
    negated = {ref for rule in catalogue.causes.values() for p in rule.patterns for ref in p.none}
    used = {ref for rule in catalogue.causes.values() for p in rule.patterns for ref in p.refs}
    reasons: dict[str, str] = {}
    for symptom in catalogue.symptoms.values():
        if symptom.id not in used:
            continue
        found = _symptom(symptom, catalogue, rewriter, both=symptom.id in negated)
        if isinstance(found, str):
            reasons[symptom.id] = f"symptom {symptom.id} {found}"
        else:
            made.symptoms += found
    known = {r.labels["symptom"] for r in made.symptoms}
    for cause in _in_order(catalogue):
        why = _reason(cause, known, made.causes, reasons)
        if why:
            made.inexact.append(LeftOut(cause.id, why))
            continue
        labels = {"cause": cause.id, "class": str(cause.class_), "severity": str(cause.severity)}
        patterns = " or on (UUID) ".join(_pattern(p, negated) for p in cause.patterns)
        expr = f"{GPU_INFO} and on (UUID) ({patterns})"
        made.causes[cause.id] = Recording(CAUSE, expr, labels)
    made.inexact += [
        LeftOut(name, _unshown(cause, everything.symptoms))
        for name, cause in sorted(everything.causes.items())
        if name not in catalogue.causes
    ]
    return made


def _unshown(cause: CauseRule, symptoms: Collection[str]) -> str:
    """Say why a cause is none of a GPU."""
    for ref in (ref for pattern in cause.patterns for ref in pattern.refs):
        if cause_of(ref) is None and ref not in symptoms:
            return f"there is no symptom {ref}"
    return "is judged on what is no GPU, which the exported rules do not know"


def _of_gpus(catalogue: Catalogue) -> Catalogue:
    rules = home(catalogue, "gpu")
    return replace(catalogue, symptoms=rules.symptoms, causes=rules.causes)


def _in_order(catalogue: Catalogue) -> Iterable[CauseRule]:
    """Return the causes so that each comes after those that it refers to."""
    strata = assign_strata(catalogue.causes)
    done: dict[str, CauseRule] = {}

    def settle(rule: CauseRule) -> None:
        if rule.id in done:
            return
        for pattern in rule.patterns:
            for ref in pattern.refs:
                other = catalogue.causes.get(cause_of(ref) or "")
                if other is not None:
                    settle(other)
        done[rule.id] = rule

    for rule in sorted(catalogue.causes.values(), key=lambda r: (strata[r.id], r.id)):
        settle(rule)
    return done.values()


def _symptom(
    symptom: SymptomRule, catalogue: Catalogue, rewriter: Rewriter, *, both: bool
) -> list[Recording] | str:
    """Return the recordings of a symptom, or why there are none."""
    condition = compile_condition(symptom.when, catalogue, symptom.when_place)
    labels = {"symptom": symptom.id}
    for name in sorted(condition.signals):
        if not has_series(catalogue.signals[name]):
            return f"reads {name}, for which there is no recorded series"
    true = rewriter.compile(condition.tree, symptom.id)
    if not true.exact:
        return "has no exact form in PromQL"
    expr = f"group by (UUID) ({true.query})"
    if symptom.hold_s:
        if both:
            return "has a hold time and must be known to be false somewhere"
        # True at every evaluation of the span, whose first moment belongs to it or not.
        now, span = f'{SYMPTOM}_now{{symptom="{symptom.id}"}}', duration(symptom.hold_s)
        least = max(1, int(symptom.hold_s // rewriter.interval_s))
        held = f"count_over_time({now}[{span}]) >= bool {least} > 0"
        return [Recording(f"{SYMPTOM}_now", expr, labels), Recording(SYMPTOM, held, labels)]
    if both:
        false = rewriter.compile(push_not(condition.tree, negate=True), symptom.id)
        if not false.exact:
            return "cannot be known to be false in PromQL"
        expr += f" or on (UUID) group by (UUID) ({false.query}) * 0"
    return [Recording(SYMPTOM, expr, labels)]


def _reason(
    cause: CauseRule,
    symptoms: set[str],
    causes: dict[str, Recording],
    reasons: dict[str, str],
) -> str:
    for pattern in cause.patterns:
        for ref in pattern.refs:
            other = cause_of(ref)
            if other is None and ref not in symptoms:
                return reasons.get(ref, f"there is no symptom {ref}")
            if other is not None and other not in causes:
                return f"it rests on the cause {other}, which is left out"
    return ""


def _pattern(pattern: Pattern, negated: set[str]) -> str:
    def true(ref: str) -> str:
        cause = cause_of(ref)
        if cause is not None:
            return f'{CAUSE}{{cause="{cause}"}}'
        series = f'{SYMPTOM}{{symptom="{ref}"}}'
        return f"({series} == 1)" if ref in negated else series

    parts = [true(ref) for ref in pattern.all]
    if pattern.any:
        choice = " or on (UUID) ".join(true(ref) for ref in pattern.any)
        parts.append(f"({choice})")
    parts += [f'({SYMPTOM}{{symptom="{ref}"}} == 0)' for ref in pattern.none]
    text = " and on (UUID) ".join(parts)
    for ref in pattern.unless:
        text += f" unless on (UUID) {true(ref)}"
    return f"({text})"
