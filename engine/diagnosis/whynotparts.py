"""One rule looked at closely for one entity: every reference of every pattern, with its numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from engine.catalogue.types import Pattern
from engine.diagnosis import explain
from engine.diagnosis.judge import Judge
from engine.diagnosis.observe import Observation, Trits
from engine.diagnosis.whynotmodel import (
    Decided,
    Lack,
    Outcome,
    Part,
    PatternCheck,
    RuleCheck,
)
from engine.errors import SourceError
from engine.model import Class, Truth
from engine.units import duration

_CAUSE = "cause/"
_TRUTH = {1: Truth.TRUE, 0: Truth.UNKNOWN, -1: Truth.FALSE}
_MET, _BLOCKS, _OPEN = "met", "blocks", "open"


class Examiner:
    """Looks at rules of one judge on what it observed.

    Args:
        judge: the rules of a scope.
        seen: what was observed.
        states: of `Judge.states`, for the same observation.
        failed: metric names whose query failed; an empty name is any.
    """

    def __init__(
        self,
        judge: Judge,
        seen: Observation,
        states: Mapping[str, Trits],
        failed: Mapping[str, SourceError],
    ) -> None:
        self._judge = judge
        self._seen = seen
        self._states = states
        self._failed = failed

    def symptom(self, name: str, i: int) -> RuleCheck:
        """Return how a symptom came out for entity i."""
        entity = self._seen.frame.entities[i]
        part = self._part("itself", name, i, self._lacks(self._judge.causes, i))
        state = {_MET: "holds", _BLOCKS: "blocked", _OPEN: "open"}[part.state]
        patterns = (PatternCheck(1, None, state, (part,)),)
        if self._foreign([name], i):
            return RuleCheck(entity, Outcome.NOT_APPLICABLE, self._vendor(i), patterns)
        match part.truth:
            case Truth.TRUE:
                outcome, says = Outcome.FIRED, "It is true."
            case Truth.FALSE:
                outcome, says = Outcome.QUIET, "It is false."
            case _:
                outcome, says = Outcome.UNKNOWN, f"It is unknown: {_missing(patterns)}."
        return RuleCheck(entity, outcome, says, patterns)

    def cause(self, name: str, i: int, *, told: bool, above: str) -> RuleCheck:
        """Return how a cause came out for entity i.

        Args:
            name: its id.
            i: the entity.
            told: whether the answer of `why` names it there.
            above: the cause beneath which it is told; empty for none.
        """
        entity = self._seen.frame.entities[i]
        rule = self._judge.causes[name]
        words = self._seen.words(i, self._seen.truth)
        held = {d.cause: d.patterns for d in self._judge.inferrer.infer(words)}
        lacks = self._lacks((name,), i)
        patterns = tuple(
            self._pattern(number, pattern, i, held, lacks, holds=number in held.get(name, ()))
            for number, pattern in enumerate(rule.patterns)
        )
        if told and name in held:
            if above:
                says = f"It holds, and is told as an effect of {above}."
                return RuleCheck(entity, Outcome.FOLLOWS, says, patterns)
            where = "among what is not seen" if rule.class_ is Class.BLIND else "in the answer"
            return RuleCheck(entity, Outcome.FIRED, f"It did fire, and stands {where}.", patterns)
        if name in held:
            return RuleCheck(entity, Outcome.HELD_BACK, self._held_back(i), patterns)
        if all(self._foreign(pattern.all, i) for pattern in rule.patterns):
            return RuleCheck(entity, Outcome.NOT_APPLICABLE, self._vendor(i), patterns)
        if self._states[name][i] == 0 or any(p.state == _OPEN for p in patterns):
            says = f"It cannot be decided: {_missing(patterns)}."
            return RuleCheck(entity, Outcome.UNKNOWN, says, patterns)
        return RuleCheck(
            entity, Outcome.QUIET, f"It does not hold: {_blocked(patterns)}.", patterns
        )

    def _held_back(self, i: int) -> str:
        judged = self._judge.judge(self._seen, i, self._states, unknowns=False)
        if judged.blind:
            return (
                "A pattern holds by the last readings, but they have stopped "
                f"({', '.join(judged.blind)}): it is told as what they last showed."
            )
        return (
            "A pattern holds, but beside a fault or limit it is no comfort that this is well, or "
            "another cause at the same place stands for it."
        )

    def _pattern(
        self,
        number: int,
        pattern: Pattern,
        i: int,
        held: Mapping[str, tuple[int, ...]],
        lacks: Mapping[str, Lack],
        *,
        holds: bool,
    ) -> PatternCheck:
        roles = (
            ("all", pattern.all),
            ("any", pattern.any),
            ("none", pattern.none),
            ("unless", pattern.unless),
        )
        parts = tuple(
            self._cause_part(role, ref, i, held)
            if ref.startswith(_CAUSE)
            else self._part(role, ref, i, lacks)
            for role, refs in roles
            for ref in refs
        )
        needed = [p.state for p in parts if p.role != "any"]
        either = [p.state for p in parts if p.role == "any"]
        if either:
            needed.append(next((s for s in (_MET, _OPEN) if s in either), _BLOCKS))
        state = "blocked" if _BLOCKS in needed else "open" if _OPEN in needed else "holds"
        return PatternCheck(number + 1, pattern.confidence, "holds" if holds else state, parts)

    def _cause_part(self, role: str, ref: str, i: int, held: Mapping[str, tuple[int, ...]]) -> Part:
        name = ref.removeprefix(_CAUSE)
        truth = Truth.TRUE if name in held else Truth.FALSE
        if truth is Truth.FALSE and name in self._states and self._states[name][i] == 0:
            truth = Truth.UNKNOWN
        # For a cause it only matters whether it was derived: one that cannot be told was not.
        derived = Truth.TRUE if truth is Truth.TRUE else Truth.FALSE
        note = "cannot be decided itself" if truth is Truth.UNKNOWN else ""
        return Part(role, ref, truth, _state(role, derived), note)

    def _part(self, role: str, name: str, i: int, lacks: Mapping[str, Lack]) -> Part:
        seen, judge = self._seen, self._judge
        condition, rule = judge.observer.conditions[name], judge.observer.rules[name]
        truth = _TRUTH[int(seen.truth[name][i])]
        note = ""
        now = int(condition.evaluate(seen.frame, seen.memo, [i])[i])
        if now == 1 and truth is Truth.FALSE:
            note = f"true now, but not all through the {duration(rule.hold_s)} that it must hold"
        elif truth is Truth.TRUE and bool(seen.weak[name][i]):
            note = "true by one sample, or for an unproven time: no more than possible"
        limits = judge.catalogue.limits
        decided = tuple(
            Decided(
                signal=term.signal,
                says=term.says,
                truth=term.truth,
                value=term.value,
                unit=term.unit,
                op=term.op,
                threshold=term.threshold,
                window_s=term.window_s,
                query=condition.query_for(seen.frame, i, term),
                source="; ".join(limits[n].origin for n in term.limits) or rule.threshold,
            )
            for term in condition.explain(seen.frame, i, seen.memo)
        )
        missing = sorted(condition.missing(seen.frame, i, seen.memo)) if now == 0 else []
        return Part(
            role,
            name,
            truth,
            _state(role, truth),
            note,
            decided,
            tuple(self._lack(signal, lacks) for signal in missing),
        )

    def _lacks(self, causes: Collection[str], i: int) -> dict[str, Lack]:
        """Return what entity i lacks for some causes, by signal, as `why` would say it."""
        n = len(self._seen.frame)
        open_, shut = np.zeros(n, dtype=np.int8), np.full(n, -1, dtype=np.int8)
        only = {name: open_ if name in causes else shut for name in self._judge.causes}
        found = explain.unknowns(self._judge, self._seen, i, only)
        return {u.needs: Lack(u.needs, u.why, u.fix) for u in found}

    def _lack(self, name: str, lacks: Mapping[str, Lack]) -> Lack:
        signal = self._judge.catalogue.signals.get(name)
        spelled = [s.name for s in signal.spellings] if signal else []
        error = next((self._failed[n] for n in (*spelled, "") if n in self._failed), None)
        if error is not None:
            return Lack(name, f"its query failed: {error.message}", error.hint)
        if name in lacks:
            return lacks[name]
        return Lack(name, "not read", signal.export if signal else "")

    def _foreign(self, symptoms: Sequence[str], i: int) -> bool:
        """Return whether some symptom reads only signals that exporters of this vendor lack."""
        catalogue, entity = self._judge.catalogue, self._seen.frame.entities[i]
        model = catalogue.model_for(entity.model)
        if model is None:
            return False
        for name in symptoms:
            condition = self._judge.observer.conditions.get(name)
            signals = [catalogue.signals[s] for s in condition.signals] if condition else []
            vendors = [{sp.vendor for sp in s.spellings} for s in signals if s.scope == "gpu"]
            if vendors and all(v and model.vendor not in v for v in vendors):
                return True
        return False

    def _vendor(self, i: int) -> str:
        model = self._judge.catalogue.model_for(self._seen.frame.entities[i].model)
        vendor = model.vendor if model else "this vendor"
        return f"It does not apply: no exporter for GPUs of {vendor} has the readings it needs."


def _state(role: str, truth: Truth) -> str:
    match role, truth:
        case ("all" | "any" | "itself", Truth.TRUE) | ("none", Truth.FALSE):
            return _MET
        case "unless", Truth.TRUE:
            return _BLOCKS
        case "unless", _:
            return _MET
        case _, Truth.UNKNOWN:
            return _OPEN
        case _:
            return _BLOCKS


def _missing(patterns: tuple[PatternCheck, ...]) -> str:
    """Say which readings are missing in the patterns that are open, else in any."""
    parts = [p for c in patterns if c.state == _OPEN for p in c.parts if p.state == _OPEN]
    signals = dict.fromkeys(lack.signal for p in parts for lack in p.lacks)
    if signals:
        return f"no usable reading of {', '.join(signals)}"
    refs = dict.fromkeys(p.ref for p in parts)
    return f"{', '.join(refs)} cannot be told" if refs else "what it rests on cannot be told"


def _blocked(patterns: tuple[PatternCheck, ...]) -> str:
    """Say for each pattern what speaks against it."""
    said = []
    for check in patterns:
        refs = [
            f"{p.ref} is {'true' if p.role in {'none', 'unless'} else 'not true'}"
            for p in check.parts
            if p.state == _BLOCKS
            and (p.role != "any" or all(o.state == _BLOCKS for o in check.parts if o.role == "any"))
        ]
        if refs:
            name = f"pattern {check.number}: " if len(patterns) > 1 else ""
            said.append(f"{name}{', '.join(refs)}")
    return "; ".join(said) or "no pattern does"
