"""Explain: the readings behind a verdict, and what could not be seen.

Evidence is written by the conditions themselves. What is missing is grouped by signal: why there
is no reading, the line or setting that would bring it, and which causes stay undecided without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.condition.memo import Memo
from engine.condition.single import MIN_PEERS
from engine.diagnosis.blocked import Blocks, blocked_many, blocked_one
from engine.diagnosis.core import fresh, missing_core
from engine.diagnosis.logged import moment, without_log
from engine.diagnosis.words import sentence, steps, vendor_of
from engine.model import Entity, Evidence, Truth, Unknown
from engine.model import Number as Value
from engine.samples import LOOKBACK_S
from engine.units import duration

if TYPE_CHECKING:
    from engine.catalogue.types import Signal, SymptomRule
    from engine.condition import Term
    from engine.diagnosis.judge import Judge
    from engine.diagnosis.observe import Lack, Observation, Trits
    from engine.diagnosis.rank import Fired

_PROFILING_FIELDS = range(1001, 1100)
_TELLING = ("throttle_reasons", "sm_active")
_TELLING_AMD = ("amd_ppt_share", "gr_engine_active")
_NO_EXPORT = "no public exporter is known to carry it"


def evidence(
    judge: Judge, seen: Observation, i: int, symptoms: Iterable[str]
) -> tuple[Evidence, ...]:
    """Return the readings that made some symptoms true for entity i, in rule order.

    One reading (a signal, its value, its window) stands once, with the first threshold it met.
    """
    out: list[Evidence] = []
    known: set[tuple[str, str, str]] = set()
    entity = seen.frame.entities[i]
    bare = without_log(seen.frame) if i in seen.frame.logged else seen.frame
    memo = seen.memo if bare is seen.frame else Memo(bare)
    codes: list[Value] = []
    for symptom in symptoms:
        rule = judge.observer.rules[symptom]
        condition = judge.observer.conditions[symptom]
        for found in condition.explain(seen.frame, i, seen.memo):
            term: Term | None = found
            if found.signal == "xid" and found.truth is Truth.TRUE and bare is not seen.frame:
                # What the gauge does not show is said of the log alone, below.
                term = _of_gauge(condition.explain(bare, i, memo), found)
                codes.append(found.value if term is None else term.value)
            if term is None:
                continue
            reading = (term.signal, str(term.value), str(term.window_s))
            # The same share over three windows, any of which would do, is one reading to a reader.
            sort = (symptom, term.signal, term.function)
            if term.truth is not Truth.TRUE or known & {reading, sort}:
                continue
            if term.op == "missing":
                continue  # that a reading is not there proves nothing to the one who asks
            known |= {reading, sort}
            query = condition.query_for(seen.frame, i, term)
            alone = term.window_s and bare.count(term.signal, i) == 1
            one = " (one sample)" if alone else ""
            out.append(
                Evidence(
                    signal=term.signal,
                    says=term.says + one,
                    value=term.value,
                    unit=term.unit,
                    op=term.op,
                    threshold=term.threshold,
                    window_s=term.window_s,
                    query=query,
                    source=_source(judge, rule, term),
                    entity=entity,
                )
            )
    return (*out, *_logged(seen, i, codes))


def _of_gauge(terms: Iterable[Term], wanted: Term) -> Term | None:
    """Return what a gauge shows by itself of a term that a log took part in, None for nothing."""
    same = (t for t in terms if t.signal == wanted.signal and t.op == wanted.op)
    return next((t for t in same if t.truth is Truth.TRUE), None)


def _logged(seen: Observation, i: int, codes: Iterable[Value]) -> Iterator[Evidence]:
    """Yield what the kernel log says of the Xids that are evidence: when, how often, where."""
    entries = seen.frame.logged.get(i, ())
    for code in dict.fromkeys(codes):
        times = sorted((when, where) for when, xid, where in entries if xid == code)
        if not times:
            continue
        first, last = times[0][0], times[-1][0]
        often = f", {len(times)} times since {moment(first)}" if len(times) > 1 else ""
        yield Evidence(
            signal="xid",
            says=f"the kernel log has Xid {code:g} at {moment(last)}{often}",
            value=code,
            unit="code",
            op="logged",
            threshold=None,
            window_s=seen.frame.window_s,
            query="",
            source=times[-1][1],
            entity=seen.frame.entities[i],
        )


def _source(judge: Judge, rule: SymptomRule, term: Term) -> str:
    """Say where the threshold of a term comes from: its limits' origins, else the rule's words."""
    limits = judge.catalogue.limits
    return "; ".join(limits[name].origin for name in term.limits) or rule.threshold


def unknowns(
    judge: Judge, seen: Observation, i: int, states: Mapping[str, Trits]
) -> tuple[Unknown, ...]:
    """Return what entity i lacks: an entry a signal, core readings first, then by blocks."""
    core = missing_core(seen.frame, i, judge.core)
    signals = judge.catalogue.signals
    vendor = vendor_of(seen.frame, i, judge.catalogue)
    maker = "amd" if vendor == "amd" else "nvidia"
    # These tell most and are off in a stock exporter: named even when nothing hangs on them now.
    telling = (_TELLING_AMD if maker == "amd" else _TELLING) if judge.scope == "gpu" else ()
    named = tuple(n for n in telling if n in signals and not fresh(seen.frame, n, i))
    blocks = _blocked(judge, seen, i, states)
    key = (maker, core, named, tuple(blocks.items()))
    lacks = seen.lacks.get(key)
    if lacks is None:
        lacks = seen.lacks[key] = _lacks(judge, seen, maker, core, named, blocks)
    return tuple(
        entry or _unknown(judge, seen, i, name, causes, maker) for name, causes, entry in lacks
    )


def contradicted(judge: Judge, signal: str, says: str) -> Unknown:
    """Return the entry for a core reading of which two exporters say different things."""
    title = judge.catalogue.signals[signal].title
    why = f"two exporters contradict each other on {title}, both as fresh: {says}"
    fix = "read it on the host (nvidia-smi), and stop the exporter that is wrong"
    return Unknown("metrics_missing", signal, why, fix)


def _line_for(judge: Judge, signal: str) -> str:
    """Return the exporter line that brings a signal."""
    known = judge.catalogue.signals.get(signal)
    return known.export if known else _NO_EXPORT


def no_yardstick(judge: Judge, entity: Entity) -> Unknown:
    """Return the entry for a GPU that works, where nothing tells how fast it should."""
    name = "max_sm_clock"
    model = f"this GPU model ({entity.model})" if entity.model else "the GPU model"
    fix = _line_for(judge, name)
    return Unknown(
        cause="metrics_missing",
        needs=name,
        why=f"{model} is not known, and neither its highest clock nor throttling is exported:"
        " nothing tells whether it runs as fast as it should.",
        fix=fix,
    )


def undecided(judge: Judge, entity: Entity) -> Unknown:
    """Return the entry for a mount that stands still, where nothing tells whether requests wait."""
    name = "nfs_received"
    where = f" on {entity.host}" if entity.host else ""
    fix = _line_for(judge, name)
    return Unknown(
        cause="metrics_missing",
        needs=f"{name}, nfs_sent",
        why=f"requests of {entity.name} stopped{where} while other hosts go on, and nothing tells"
        " whether some wait for a reply: the work there has ended, or the mount hangs.",
        fix=fix,
        blocks=("storage_slow",),
    )


def _lacks(
    judge: Judge,
    seen: Observation,
    maker: str,
    core: Sequence[str],
    named: Sequence[str],
    blocks: Blocks,
) -> tuple[Lack, ...]:
    """Return the missing readings in order, each with its entry if that is of the whole frame."""
    signals = judge.catalogue.signals
    blocked = dict.fromkeys((*core, *named), ()) | {
        name: causes
        for name, causes in blocks.items()
        if name in core or _given_by(signals.get(name), maker)
    }
    out: list[Lack] = []
    for name in sorted(blocked, key=lambda n: (n not in core, -len(blocked[n]), n)):
        entry = None
        nowhere = name not in seen.frame.columns and name not in seen.memo.dropped
        if name in signals and nowhere:
            export = _export(signals[name], maker) or _NO_EXPORT
            entry = _not_exported(name, export, blocked[name])
        out.append((name, blocked[name], entry))
    return tuple(out)


def _blocked(judge: Judge, seen: Observation, i: int, states: Mapping[str, Trits]) -> Blocks:
    """Return, for each reading that entity i lacks, the causes that stay undecided."""
    conditions = judge.observer.conditions
    if seen.few:
        return blocked_one(judge.looks, conditions, seen, states, i)
    if seen.blocked is None:
        seen.blocked = blocked_many(judge.looks, conditions, seen, states)
    return seen.blocked.of(i)


def _export(signal: Signal, maker: str) -> str:
    """Return the line or setting that brings a signal, for the exporter of a maker's GPUs."""
    if maker == "amd" and signal.scope == "gpu":
        names = [s.name for s in signal.spellings if s.vendor == maker]
        return f"device-metrics-exporter, field {names[0].upper()} in its fields" if names else ""
    return signal.export


def _given_by(signal: Signal | None, maker: str) -> bool:
    """Whether any exporter gives a reading of this maker's GPUs; what none does is not missing.

    None stands for a fact of the GPU model.
    """
    if signal is None or signal.scope != "gpu" or not signal.spellings:
        return True
    return any(spelling.vendor == maker for spelling in signal.spellings)


def _unknown(
    judge: Judge, seen: Observation, i: int, name: str, blocks: tuple[str, ...], maker: str
) -> Unknown:
    frame = seen.frame
    if name.startswith("gpu."):
        model = frame.entities[i].model or "not named by the exporter"
        return Unknown(
            cause="metrics_missing",
            needs=name,
            why=f"no known {name[4:]} for this GPU model ({model})",
            fix="add the model to knowledge/gpu_models.yaml in an overlay folder",
            blocks=blocks,
        )
    count, newest = frame.count(name, i), frame.newest(name, i)
    stale = newest is not None and frame.timed and frame.at - newest > LOOKBACK_S
    if count > 1 and frame.timed and not stale:
        return _not_compared(judge, seen, i, name, blocks)
    signal = judge.catalogue.signals[name]
    export = _export(signal, maker) or _NO_EXPORT
    dropped = frame.dropped.get((name, i))
    if not count and dropped:
        reasons = ", ".join(f"{n} x {why}" for why, n in dropped.counts.items())
        profiling = signal.field in _PROFILING_FIELDS
        return Unknown(
            cause="profiling_paused" if profiling else "metrics_missing",
            needs=name,
            why=f"exported, but blank ({reasons})",
            fix="dcgmi profile --resume, once no other profiler holds the counters"
            if profiling
            else f"the exporter has no value for this GPU; see its log, and: {export}",
            blocks=blocks,
        )
    if not count:
        return _not_exported(name, export, blocks)
    if newest is not None and stale:
        age = duration(frame.at - newest)
        return Unknown(
            cause="stale_data",
            needs=name,
            why=f"newest sample is {age} old",
            fix="check that the exporter runs and is scraped",
            blocks=blocks,
        )
    return Unknown(
        cause="metrics_missing",
        needs=name,
        why="one sample only: no rate, change or hold time can be told",
        fix="ask a Prometheus server, or give a file with several timestamps a series",
        blocks=blocks,
    )


def _not_compared(
    judge: Judge, seen: Observation, i: int, name: str, blocks: tuple[str, ...]
) -> Unknown:
    """Return the entry for a signal that is there, and is too little all the same."""
    frame = seen.frame
    jobless = name in judge.compared_in_job and not frame.entities[i].job
    host = frame.host.item(i)
    if jobless and host not in seen.mates:
        seen.mates[host] = int((frame.host == host).sum())
    jobless = jobless and seen.mates[host] >= MIN_PEERS
    key = (name, blocks, jobless)
    found = seen.alone.get(key)
    if found is None:
        why = "too few samples, or too few GPUs of this node to compare with"
        fix = "widen --window, or export it for all GPUs of the node"
        if jobless:
            why = "no job of it is known, so there is nobody to compare with"
            fix = "let exporters label the job (docs/configuration.md), or give a map of the site"
        found = seen.alone[key] = Unknown("metrics_missing", name, why, fix, blocks)
    return found


def _not_exported(name: str, export: str, blocks: tuple[str, ...]) -> Unknown:
    return Unknown("metrics_missing", name, "not exported", export, blocks)


def blind(
    judge: Judge,
    seen: Observation,
    i: int,
    fired: Sequence[Fired],
    *,
    blocks: Sequence[str] = (),
    last: Sequence[str] = (),
) -> tuple[Unknown, ...]:
    """Return an entry for every blind cause that fired: it says why nothing can be told.

    Args:
        judge: the rules.
        seen: the readings as words.
        i: the entity.
        fired: the blind causes.
        blocks: the causes that cannot be told because of it.
        last: titles of what the last readings showed, before they stopped.
    """
    before = f" The last readings showed: {', '.join(last)}." if last else ""
    out = []
    for one in fired:
        rule = judge.causes[one.cause]
        symptoms = [s for s in rule.explains if s in seen.truth and seen.truth[s][i] == 1]
        for pattern in rule.patterns:
            symptoms += [s for s in pattern.all + pattern.any if s in seen.truth]
        read = [s for name in symptoms for s in sorted(judge.observer.conditions[name].signals)]
        lacking = [s for s in dict.fromkeys(read) if not fresh(seen.frame, s, i)]
        signals = sorted(lacking or read, key=lambda s: s not in _TELLING)
        fixes = steps(rule.next, seen.frame, i, judge.catalogue)
        out.append(
            Unknown(
                cause=rule.id,
                needs=", ".join(dict.fromkeys(signals)),
                why=sentence(rule.says, seen.frame, i, judge.catalogue) + before,
                fix=fixes[0].command or fixes[0].do if fixes else _NO_EXPORT,
                blocks=tuple(sorted(blocks)),
            )
        )
    return tuple(out)
