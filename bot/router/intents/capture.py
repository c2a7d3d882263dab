"""An order to record one target.

A capture disturbs a program: every word of the clause must belong to the order, and neither a
question about captures nor a wish with conditions is one.
"""

from __future__ import annotations

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.subject import one_target
from bot.router.profilers import DEFAULT_DURATION_S, DEFAULT_PROFILER, PROFILERS
from bot.router.spans import shape, word_set
from bot.router.targets import is_host

_AROUND = word_set(
    "again bot by for from gpuwhy hello hey hi in just kindly now of on please pls plz quick",
    "quickly short through using via with",
)
_ACTS = v.CAPTURE | v.RECORDING | PROFILERS.keys() | {"run", "start"}
_RECORDING = r"(?:an? |the )?(?:systems? |timeline )?(?:profile|trace|capture|recording)"
_ORDER = shape(
    r"(?:(?:can|could|would|will) you |(?:i|we) (?:want|need|would like)(?: you)? (?:to )?)?",
    r"(?:(?:take|grab|get|run|start|do|make|collect|record|capture|give|have)(?: me| us)? ",
    rf"{_RECORDING}|{_RECORDING}|profile|capture|trace|record|run|start)",
)


def capture(clause: Clause) -> dict[str, Json] | None:
    """Return profiler, target and duration (s) that a clause orders to record."""
    target = one_target(clause)
    spans = [mark.value for mark in clause.marks if mark.kind == "SPAN"]
    foreign = {mark.kind for mark in clause.marks} - {"TARGET", "SPAN"}
    if target is None or target == "fleet" or foreign or len(spans) > 1:
        return None
    profilers = {PROFILERS[word] for word in clause.words if word in PROFILERS}
    if len(profilers) > 1 or not _is_order(clause, named=bool(profilers), timed=bool(spans)):
        return None
    # A host is told by its looks only: "trace route-66" is no order.
    if is_host(target) and not profilers and not spans:
        return None
    return {
        "profiler": profilers.pop() if profilers else DEFAULT_PROFILER,
        "target": target,
        "duration_s": spans[0] if spans else DEFAULT_DURATION_S,
    }


def _is_order(clause: Clause, *, named: bool, timed: bool) -> bool:
    """Return whether all words are an order, what to do before what to do it to.

    A slip in the order needs a profiler's name beside it; one without a verb ("nsys node-3:5 10s")
    needs a duration, too; a question is an order only if it asks somebody to do it.
    """
    before = clause.tokens[: clause.tokens.index("TARGET")]
    words = [word for word in clause.words if word not in PROFILERS and word not in _AROUND]
    if not _ACTS & set(before) or (clause.question and "you" not in words):
        return False
    if not words:
        return named and timed
    exact = named or bool(set(clause.typed) & (v.CAPTURE | v.RECORDING))
    return exact and bool(_ORDER.fullmatch(" ".join(words)))
