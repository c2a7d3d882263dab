"""Recording rules: every signal under one name, in one unit, without DCGM's blank values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.condition.selectors import constant, selector
from engine.export.names import ENTITY, GPU_INFO, NODE, PREFIX, by, normalised, recorded_name
from engine.samples import Matcher
from engine.signals.clean import FP64_BLANK, INT32_BLANK
from engine.signals.mig import UNMEASURED

# How long a GPU that has gone is still judged: the usual window of a diagnosis.
SEEN = "15m"

Matchers = tuple[Matcher, ...]

_SEEN_NOW = f"{PREFIX}:gpu:seen"
# A pod called like an exporter is the exporter's own, unless Prometheus renamed the workload's.
_EXPORTER = "(?:.*[-_])?exporter(?:[-_].*)?"


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule: the series, what it holds, and labels to add."""

    record: str
    expr: str
    labels: dict[str, str] = field(default_factory=dict)


def readings(signal: Signal, matchers: Matchers = ()) -> str:
    """Return the readings of a signal under all its spellings, labels untouched."""
    return " or ".join(reading(signal, spelling, matchers) for spelling in signal.spellings)


def reading(signal: Signal, spelling: Spelling, matchers: Matchers = ()) -> str:
    """Return one spelling in the signal's unit, without blanks and impossible values."""
    series = series_of(spelling, matchers)
    blanks = [FP64_BLANK + k for k in range(4)]
    if signal.kind != "counter":  # a counter may pass through the 32-bit marker by counting
        blanks += [INT32_BLANK + k for k in range(4)]
    for blank in blanks:
        if _inside(signal, blank * spelling.scale):
            series += f" != {constant(blank)}"
    if spelling.scale != 1:
        series = f"({series})" if "!=" in series else series
        series += f" * {constant(spelling.scale)}"
    low = "" if signal.low is None else f" >= {constant(signal.low)}"
    high = "" if signal.high is None else f" <= {constant(signal.high)}"
    return f"({series}{low}{high})"


def series_of(spelling: Spelling, matchers: Matchers = ()) -> str:
    """Return the selector of a spelling."""
    match = [Matcher(k, "=", v) for k, v in sorted(spelling.match.items())]
    return selector(spelling.name, [*match, *matchers])


DERIVED = ("pods", "mig_instances")


def of_gpus(vector: Callable[[Matchers], str], function: str = "max") -> str:
    """Return one value for each GPU, with the labels under which the GPU is known.

    Args:
        vector: makes the vector, with matchers added to every selector in it.
        function: how series of one GPU are merged.

    Most series have the label ``UUID``: no label of theirs is rewritten, which is what would cost.
    """
    other = vector((Matcher("UUID", "=", ""),))
    merged = f"{function} by (UUID)"
    found = f"{merged} ({vector(())}) or {merged} ({normalised(f'({other})', ('UUID',))})"
    return f"({found}) * on (UUID) group_right () {GPU_INFO}"


def _inside(signal: Signal, value: float) -> bool:
    return (signal.low is None or value >= signal.low) and (
        signal.high is None or value <= signal.high
    )


def signal_rules(catalogue: Catalogue) -> Iterator[Recording]:
    """Yield the recording rules of all signals, those that others build on first."""
    core = [s for s in catalogue.signals.values() if s.core and s.scope == "gpu"]
    names = "|".join(sorted({sp.name for s in core for sp in s.spellings}))
    yield Recording(_SEEN_NOW, _grouped("group", _any(names)))
    yield Recording(GPU_INFO, f"group {by(ENTITY)} (last_over_time({_SEEN_NOW}[{SEEN}]))")
    derived = (_pods(names), _slices(names))
    for name, expr in zip(DERIVED, derived, strict=True):
        if name in catalogue.signals:
            yield Recording(recorded_name(catalogue.signals[name]), expr)
    for signal in catalogue.signals.values():
        if not has_series(signal) or signal.id in DERIVED:
            continue
        if signal.id == "exporter_up":
            yield Recording(recorded_name(signal), _exporter_up(names))
        else:
            yield Recording(recorded_name(signal), _recorded(signal, catalogue))


def has_series(signal: Signal) -> bool:
    """Whether a signal is recorded: one of GPUs or nodes that is found as it is.

    What is derived from several series, or added up over them, is known to local evaluation alone.
    """
    return (
        signal.scope in {"gpu", "node"} and bool(signal.spellings) and signal.combine == "max"
    ) or signal.id in DERIVED


def _any(names: str, *matchers: Matcher) -> str:
    return selector("", (Matcher("__name__", "=~", names), *matchers))


def _grouped(function: str, vector: str, labels: tuple[str, ...] = ENTITY) -> str:
    return f"{function} {by(labels)} ({normalised(vector, labels)})"


def _recorded(signal: Signal, catalogue: Catalogue) -> str:
    if signal.scope == "node":
        return _grouped("max", f"({readings(signal)})", NODE)
    if signal.id == "xid_count":
        # What it counts is told by a label.
        return _grouped("max", f"({readings(signal)})", (*ENTITY, "xid"))
    expr = of_gpus(lambda matchers: readings(signal, matchers))
    if signal.id in UNMEASURED and "mig_instances" in catalogue.signals:
        # Under MIG a zero stands for "not measured".
        sliced = f"{recorded_name(catalogue.signals['mig_instances'])} > 0"
        expr = f"{expr} unless on (UUID) ({expr} == 0 and on (UUID) {sliced})"
    return expr


def _pods(names: str) -> str:
    """Count the workload pods of a GPU; where it is cut, of the slice that has most."""
    none, some = Matcher("exported_pod", "=", ""), Matcher("pod", "!=", "")
    own = Matcher("pod", "!~", _EXPORTER)
    renamed = _any(names, Matcher("exported_pod", "!=", ""))
    plain = _any(names, none, some, own)
    joined = (
        f'label_join({renamed}, "workload", "/", "exported_namespace", "exported_pod")'
        f' or label_join({plain}, "workload", "/", "namespace", "pod")'
    )
    each = f"group by (UUID, GPU_I_ID, workload) ({joined})"
    most = f"max by (UUID) (count by (UUID, GPU_I_ID) ({each}))"
    return f"{most} * on (UUID) group_right () {GPU_INFO}"


def _slices(names: str) -> str:
    """Count the MIG instances of a GPU, 0 where it is whole."""
    each = f"group by (UUID, GPU_I_ID) ({_any(names, Matcher('GPU_I_ID', '!=', ''))})"
    counted = f"count by (UUID) ({each}) * on (UUID) group_right () {GPU_INFO}"
    return f"{counted} or {GPU_INFO} * 0"


def _exporter_up(names: str) -> str:
    """Give every host the ``up`` of the scrape target that its GPUs' series came from."""
    # last_over_time keeps what the target serves in mind while it does not answer.
    target = ("instance", "node", "hostname", "Hostname", "cluster")
    serving = normalised(f"group {by(target)} ({_seen(names)})", NODE)
    return f"max {by(NODE)} ({serving} * on (instance) group_left () max by (instance) (up))"


def spread(record: str) -> str:
    """Give a node's reading to each of its GPUs."""
    return f"{GPU_INFO} * on (cluster, host) group_left () {record}"


def _seen(names: str) -> str:
    return f"last_over_time({_any(names)}[{SEEN}])"
