"""Running the tests that sit in rule files: synthetic readings in, verdict out.

The readings of a test go through the same evaluation, inference and ranking as real ones; only
the source is replaced. The window is 15 minutes of samples every 15 s, the times are fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.catalogue.types import Catalogue, CauseRule, RuleTest, SymptomRule
from engine.diagnosis.judge import Judge, Judges
from engine.errors import UsageError
from engine.model import Entity, Kind, Truth
from engine.samples import Column, Dropped, Floats, Frame

AT = 1764432000.0
STEP_S = 15.0
WINDOW_S = 900.0
_SAMPLES = int(WINDOW_S / STEP_S) + 1
_DEFAULT_MODEL = "NVIDIA H100 80GB HBM3"
_TRUTHS = {1: Truth.TRUE, 0: Truth.UNKNOWN, -1: Truth.FALSE}


@dataclass(frozen=True, slots=True)
class RuleTestResult:
    """How one test of one rule went; ``message`` says what came instead."""

    rule: str
    test: str
    ok: bool
    message: str


def run_rule_tests(catalogue: Catalogue, ids: Iterable[str] | None = None) -> list[RuleTestResult]:
    """Run the tests of all rules, or of some.

    Raises:
        UsageError: a rule id is not known.
    """
    rules: dict[str, SymptomRule | CauseRule] = {**catalogue.symptoms, **catalogue.causes}
    wanted = sorted(rules) if ids is None else list(ids)
    for name in wanted:
        if name not in rules:
            raise UsageError(f"no rule {name!r}", hint="gpuwhy rules list names them all")
    judges = Judges(catalogue)
    out = []
    for name in wanted:
        rule = rules[name]
        for test in rule.tests:
            judge = judges.of(scope_of(catalogue, rule, test))
            if isinstance(rule, SymptomRule):
                message = _check_symptom(judge, rule, test)
            else:
                message = _check_cause(judge, rule, test)
            out.append(RuleTestResult(name, test.name, not message, message))
    return out


def scope_of(catalogue: Catalogue, rule: SymptomRule | CauseRule, test: RuleTest) -> str:
    """Return what a test is about: the scope of its readings, GPUs where that is a node's.

    A test without readings is about what its rule is for.

    Raises:
        UsageError: the readings are of several scopes.
    """
    known = catalogue.signals
    scopes = {known[name].scope for name in test.given if name in known} - {"node"}
    if len(scopes) > 1:
        raise UsageError(
            f"rule test {test.name!r} gives readings of {' and '.join(sorted(scopes))}",
            hint="a rule looks at one kind of entity: give readings of that",
        )
    if scopes:
        return scopes.pop()
    if isinstance(rule, SymptomRule):
        return "gpu" if rule.scope == "node" else rule.scope
    own = [
        catalogue.symptoms[s].scope
        for p in rule.patterns
        for s in p.all + p.any
        if s in catalogue.symptoms
    ]
    return own[0] if own and own[0] != "node" else "gpu"


def _check_symptom(judge: Judge, rule: SymptomRule, test: RuleTest) -> str:
    seen = judge.observe(frame_of(judge.catalogue, test, judge.scope))
    got = _TRUTHS[int(seen.truth[rule.id][0])].value
    return "" if got == test.expect else f"expected {test.expect}, got {got}"


def _check_cause(judge: Judge, rule: CauseRule, test: RuleTest) -> str:
    if rule.id not in judge.causes:
        return f"gives readings of a {judge.scope}, which no pattern of the rule is about"
    seen = judge.observe(frame_of(judge.catalogue, test, judge.scope))
    states = judge.states(seen)
    answer = judge.judge(seen, 0, states)
    found = {d.cause: d for d in answer.diagnoses + answer.notes}
    below = {e for d in found.values() for e in _effects(d.effects)}
    fires = rule.id in found or rule.id in below or rule.id in answer.blind
    got = "fires" if fires else ("unknown" if states[rule.id][0] == 0 else "quiet")
    if got != test.expect:
        others = ", ".join(sorted(found)) or "nothing"
        return f"expected {test.expect}, got {got} (found: {others})"
    if test.confidence and rule.id in found and found[rule.id].confidence != test.confidence:
        return f"expected confidence {test.confidence}, got {found[rule.id].confidence}"
    return ""


def _effects(effects: Iterable[Any]) -> list[str]:
    return [name for e in effects for name in (e.cause, *_effects(e.effects))]


def frame_of(catalogue: Catalogue, test: RuleTest, scope: str = "gpu") -> Frame:
    """Build the frame of a test: entity 0 is the one asked about, then its siblings, then its rail.

    GPUs are all in one job, so that siblings are also peers.
    """
    siblings, rail = _others(test.siblings), _others(test.rail)
    model = test.model or _DEFAULT_MODEL
    givens = [test.given, *siblings, *rail]
    near = 1 + len(siblings)
    entities = [_entity(scope, k, model) for k in range(near)]
    entities += [_entity(scope, 0, model, host=f"node-{k + 2}") for k in range(len(rail))]
    known = catalogue.model_for(model) if scope == "gpu" else None
    attrs = {name: np.full(len(entities), v) for name, v in (known.attrs if known else {}).items()}
    frame = Frame(
        entities=entities,
        at=AT,
        timed=True,
        columns={},
        attrs=attrs,
        host=np.array([0] * near + list(range(1, len(rail) + 1)), dtype=np.int64),
        window_s=WINDOW_S,
        scope=scope,
        job=np.zeros(len(entities), dtype=np.int64),
        rail=np.array([0, *range(1, near), *[0] * len(rail)], dtype=np.int64),
    )
    for signal in sorted({name for given in givens for name in given}):
        if signal not in catalogue.signals:
            raise UsageError(f"rule test {test.name!r} gives an unknown signal {signal!r}")
        _add(frame, signal, [given.get(signal) for given in givens])
    return frame


def _others(group: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return what each of a group of peers reads, the odd one last."""
    if group is None:
        return []
    odd = group.get("odd")
    return [group["given"]] * int(group["count"]) + ([odd] if odd else [])


def _entity(scope: str, k: int, model: str, host: str = "node-1") -> Entity:
    match scope:
        case "port":
            name = f"mlx5_{k}/1"
            return Entity(Kind.NODE, f"{host} {name}", host=host, instance=name)
        case "filesystem":
            return Entity(Kind.FILESYSTEM, "fs/mnt/data", host=f"node-{k + 1}")
        case "pod":
            pod = f"worker-{k}"
            return Entity(Kind.POD, f"pod/ml/{pod}", host="node-1", namespace="ml", pod=pod)
        case "rank":
            return Entity(Kind.RANK, f"job/7/rank/{k}", host="node-1", job="7", rank=k)
        case "service":
            name = f"10.0.0.{k + 1}:8000"
            return Entity(
                Kind.SERVICE,
                f"svc/llama#{name}",
                host=f"10.0.0.{k + 1}",
                service="llama",
                instance=name,
            )
    return Entity(
        Kind.GPU,
        f"node-1:{k}",
        host="node-1",
        gpu=k,
        uuid=f"GPU-{k:08x}-0000-4000-8000-000000000000",
        pci=f"0000:{k + 16:02x}:00",
        model=model,
    )


def _add(frame: Frame, signal: str, values: list[Any]) -> None:
    times: list[Floats] = []
    numbers: list[Floats] = []
    offsets = [0]
    for i, value in enumerate(values):
        ts, vs = readings(value)
        if value == "blank":
            frame.dropped[(signal, i)] = Dropped({"INT64_BLANK": _SAMPLES}, 9.223372036854776e18)
        times.append(ts)
        numbers.append(vs)
        offsets.append(offsets[-1] + vs.size)
    if offsets[-1]:
        frame.columns[signal] = Column(
            np.concatenate(times), np.concatenate(numbers), np.array(offsets, dtype=np.int64)
        )


def readings(value: Any) -> tuple[Floats, Floats]:
    """Turn a ``given`` value of a rule test into (times, values)."""
    grid: Floats = AT - WINDOW_S + STEP_S * np.arange(_SAMPLES, dtype=np.float64)
    numbers: Floats = np.zeros(_SAMPLES)
    match value:
        case None | "blank":
            return grid[:0], numbers[:0]
        case bool() | int() | float():
            numbers += float(value)
        case list():
            grid = np.linspace(AT - WINDOW_S, AT, len(value)) if len(value) > 1 else grid[-1:]
            numbers = np.array(value, dtype=np.float64)
        case {"from": a, "to": b}:
            numbers = np.linspace(float(a), float(b), _SAMPLES)
        case {"was": was, "now": now, "ago": ago}:
            numbers = np.where(grid > AT - seconds(ago), float(now), float(was))
        case {"once": one}:
            grid, numbers = grid[-1:], numbers[-1:] + float(one)
        case {"stale": one, "ago": ago}:
            grid = grid[grid <= AT - seconds(ago)]
            numbers = numbers[: grid.size] + float(one)
        case _:
            raise UsageError(f"a rule test gives a value of unknown form: {value!r}")
    return grid, numbers


def seconds(text: str) -> float:
    """Read a duration such as ``90s``, ``5m``, ``1h``."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    try:
        return float(text[:-1]) * units[text[-1]]
    except (ValueError, KeyError, IndexError, TypeError):
        raise UsageError(f"not a duration: {text!r}", hint="write 90s, 5m, 1h or 2d") from None
