"""Conditions over recorded series: what PromQL cannot say of raw series is recorded first.

A recorded signal is one series for each GPU, written at every evaluation of the rule group. That
makes exact what is only bounded otherwise: shares of samples with a bit set become averages of a
0/1 series, rates have samples at both ends of their window, and a change of a code is an event of
its own. `Rewriter` turns the tree of a condition into one of the same meaning over such series and
collects the rules that record them.
"""

from __future__ import annotations

from dataclasses import replace

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.condition.promql import LabelProfile, Pushdown, pushdown
from engine.condition.selectors import duration
from engine.condition.tree import (
    LOOKBACK,
    Absolute,
    Age,
    And,
    Attr,
    Binary,
    ChangedTo,
    Coalesce,
    Compare,
    Negative,
    Not,
    Number,
    Numeric,
    Or,
    PastNumber,
    PastTruth,
    PeerCount,
    Peers,
    Presence,
    Reading,
    Share,
    Truthy,
    signals_of,
)
from engine.export.codes import change_rule, event_rule
from engine.export.models import attribute_expr
from engine.export.names import GPU_INFO, PREFIX, recorded_name
from engine.export.recorded import (
    SEEN,
    Matchers,
    Recording,
    of_gpus,
    reading,
    series_of,
    spread,
)

PROFILE = LabelProfile(entity=("UUID",), host="host", model="modelName", one_series=True)

# The sample of this evaluation, and no older one: rules run in order, at one moment.
_NOW_S = 1
_INFO = "gpu_info"
# PromQL gives 0 for a window with a single sample, where nothing can be known.
_NEEDS_TWO = frozenset({"changes", "stddev"})
_DERIVED = frozenset({"rate", "increase", *_NEEDS_TWO})


class Rewriter:
    """Rewrites conditions; ``rules`` are the recordings that the rewritten ones need.

    ``interval_s`` is how often the rules are evaluated (s).
    """

    def __init__(self, catalogue: Catalogue, interval_s: int) -> None:
        self.rules: list[Recording] = []
        self._catalogue = catalogue
        self.interval_s = interval_s
        self._made: dict[str, str] = {}
        # Only what says that a GPU is there counts as usual: its info series.
        self._signals = {_INFO: _series(_INFO, GPU_INFO, core=True)}
        for signal in catalogue.signals.values():
            self._signals[signal.id] = _series(signal.id, self._name(signal.id))

    def compile(self, tree: Truthy, name: str) -> Pushdown:
        """Return the query for the GPUs for which a condition is true.

        Args:
            tree: the condition, every ``not`` at the leaves.
            name: what new series may be called after.
        """
        for signal in (self._catalogue.signals[s] for s in signals_of(tree)):
            if signal.scope == "node":
                self._record(self._name(signal.id), spread(recorded_name(signal)))
        return self._query(self._truth(tree, name))

    def _query(self, tree: Truthy) -> Pushdown:
        known = replace(self._catalogue, signals=dict(self._signals))
        return pushdown(tree, known, PROFILE)

    def _truth(self, node: Truthy, name: str) -> Truthy:
        match node:
            case Compare():
                return replace(
                    node, left=self._number(node.left, name), right=self._number(node.right, name)
                )
            case And() | Or():
                return replace(node, parts=tuple(self._truth(part, name) for part in node.parts))
            case Not() | PastTruth():
                return replace(node, operand=self._truth(node.operand, name))
            case ChangedTo():
                return self._changed_to(node, name)
            case Presence(state="missing", signal=signal):
                there = Binary("+", Binary("*", _last(signal), Number(0)), Number(1))
                return Compare("==", Coalesce((there, _everywhere(0))), Number(0))
            case Presence(state="blank", signal=signal):
                return Compare(">=", self._blank(signal), Number(1))
            case _:
                return node

    def _number(self, node: Numeric, name: str) -> Numeric:
        match node:
            case Reading(function=function) if function in _DERIVED:
                return self._window(node)
            case Share():
                return Reading("avg", self._bit(node), node.window_s)
            case Age(signal=signal):
                return self._age(signal)
            case Attr(name=attribute):
                record = f"{PREFIX}:model:{attribute}"
                return self._now(record, attribute_expr(self._catalogue, attribute))
            case Binary():
                return replace(
                    node, left=self._number(node.left, name), right=self._number(node.right, name)
                )
            case Negative() | Absolute() | Peers() | PastNumber():
                return replace(node, operand=self._number(node.operand, name))
            case Coalesce():
                return Coalesce(tuple(self._option(option, name) for option in node.options))
            case PeerCount(function="count"):
                return self._count(node, name)
            case PeerCount():
                return replace(node, operand=self._truth(node.operand, name))
            case _:
                return node

    def _option(self, node: Numeric, name: str) -> Numeric:
        return _everywhere(node.value) if isinstance(node, Number) else self._number(node, name)

    def _record(self, record: str, expr: str) -> str:
        """Record a derived series once, and return it as a signal's id."""
        if record not in self._made:
            self._made[record] = record
            self.rules.append(Recording(record, expr))
            self._signals[record] = _series(record, record)
        return record

    def _now(self, record: str, expr: str) -> Reading:
        return Reading("max", self._record(record, expr), _NOW_S)

    def _name(self, signal: str) -> str:
        """Return the series of a signal; each GPU has its own copy of a node's reading."""
        known = self._catalogue.signals[signal]
        if known.scope == "node":
            known = replace(known, id=f"{known.id}_of_gpu")
        return recorded_name(known)

    def _window(self, node: Reading) -> Reading:
        series, window = self._name(node.signal), duration(node.window_s)
        ranged = node.function if node.function in {"rate", "increase"} else ""
        expr = f"{ranged or _over_time(node.function)}({series}[{window}])"
        if node.function in _NEEDS_TWO:
            expr += f" and count_over_time({series}[{window}]) > 1"
        return self._now(f"{PREFIX}:{node.signal}:{node.function}{window}", expr)

    def _bit(self, node: Share) -> str:
        series = self._name(node.signal)
        bits = [1 << k for k in range(node.mask.bit_length()) if node.mask >> k & 1]
        each = " + ".join(f"floor({series} / {bit}) % 2" for bit in bits)
        expr = each if len(bits) == 1 else f"clamp_max({each}, 1)"
        return self._record(f"{PREFIX}:{node.signal}_{'_'.join(node.bits)}:bool", expr)

    def _age(self, signal: str) -> Reading:
        """Record when the newest reading was taken, and how old it is, up to 15 minutes."""
        known = self._catalogue.signals[signal]

        def taken(matchers: Matchers) -> str:
            return " or ".join(
                f"(timestamp({series_of(one, matchers)}) and {reading(known, one, matchers)})"
                for one in known.spellings
            )

        stamp = f"{PREFIX}:{signal}:timestamp_seconds"
        self._record(stamp, of_gpus(taken))
        age = f"time() - last_over_time({stamp}[{SEEN}])"
        return self._now(f"{PREFIX}:{signal}:age_seconds", age)

    def _blank(self, signal: str) -> Reading:
        """Record that samples came and none of them is a reading."""
        known = self._catalogue.signals[signal]
        came = of_gpus(
            lambda matchers: " or ".join(series_of(one, matchers) for one in known.spellings),
            "group",
        )
        expr = f"{came} unless on (UUID) last_over_time({self._name(signal)}[{SEEN}])"
        return self._now(f"{PREFIX}:{signal}:blank", expr)

    def _changed_to(self, node: ChangedTo, name: str) -> Compare:
        signal = self._catalogue.signals[node.signal]
        changes = change_rule(signal, self._catalogue, self.interval_s)
        self._record(changes.record, changes.expr)
        key = f"{node.signal} to {sorted(node.codes)}"
        if key not in self._made:
            record = f"{PREFIX}:{node.signal}_to_{name.removeprefix(f'{node.signal}_')}:event"
            self._made[key] = record
            event = event_rule(record, signal, node.codes)
            self._record(record, event.expr)
        return Compare(">=", Reading("max", self._made[key], node.window_s), Number(1))

    def _count(self, node: PeerCount, name: str) -> Numeric:
        """Record for every GPU for how many of its host something is true, 0 included."""
        found = self._query(self._truth(node.operand, name))
        if not found.exact:
            return node
        per_host = f"count by (cluster, host) ({GPU_INFO} and on (UUID) ({found.query}))"
        expr = f"{GPU_INFO} * on (cluster, host) group_left () {per_host} or {GPU_INFO} * 0"
        return self._now(f"{PREFIX}:siblings_{name}:count", expr)


def _over_time(function: str) -> str:
    return "changes" if function == "changes" else f"{function}_over_time"


def _everywhere(value: float) -> Numeric:
    """Return a constant that every GPU has."""
    return Binary("*", Reading("max", _INFO, _NOW_S), Number(value))


def _last(signal: str) -> Reading:
    return Reading("last", signal, LOOKBACK)


def _series(signal: str, record: str, *, core: bool = False) -> Signal:
    """Return a recorded series as a signal: one spelling, clean, of the GPU."""
    spelling = Spelling(name=record, unit="", exporter="gpuwhy")
    return Signal(signal, record, "", "gauge", "gpu", (spelling,), core=core)
