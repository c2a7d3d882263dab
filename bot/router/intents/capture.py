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

_AROUND = word_set(
    "again bot by for from gpuwhy hello hey hi in just kindly now of on please pls plz quick",
    "quickly short through using via with",
)
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
    if target in {None, "fleet"} or foreign or len(spans) > 1:
        return None
    profilers = {PROFILERS[word] for word in clause.words if word in PROFILERS}
    if len(profilers) > 1 or not _is_order(clause, named=bool(profilers)):
        return None
    return {
        "profiler": profilers.pop() if profilers else DEFAULT_PROFILER,
        "target": target,
        "duration_s": spans[0] if spans else DEFAULT_DURATION_S,
    }


def _is_order(clause: Clause, *, named: bool) -> bool:
    """Return whether all words are an order; a slip in it needs a profiler's name beside it."""
    words = [word for word in clause.words if word not in PROFILERS and word not in _AROUND]
    if not words:
        return named and not clause.question
    exact = named or bool(set(clause.typed) & (v.CAPTURE | v.RECORDING))
    return exact and bool(_ORDER.fullmatch(" ".join(words)))
