"""A question about one target, or a complaint about it."""

from __future__ import annotations

import re

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, narrates, speaks_of_others, states
from bot.router.intents.subject import one_target, unknown
from bot.router.targets import is_host

_ASKS_WHY = re.compile(
    r"\b(?:why|how come|for what reason|root cause|no idea what"
    r"|what (?:\w+ ){0,3}?(?:wrong|matter|problem|problems|issue|issues|reason|cause|status|state|health"
    r"|condition|up|on)"
    r"|what (?:is |has |just |be )*(?:happen|happens|happened|happening|ails|slows|slowing|makes|making"
    r"|causes|causing|limits|limiting|throttles|throttling|holding|holds)"
    r"|diagnose|troubleshoot|triage|investigate|diagnosis|explain)\b"
)
_ASKS_HOW = re.compile(
    r"\b(?:how (?:is|are|about|healthy|bad|slow|hot)|what about|status|state|health)\b"
)
_WHY = re.compile(r"\b(?:why|how come|what makes)\b")
# Who, where and when are other questions; a selector is the fleet's; a code may be what is meant.
_ASKS_ELSE = re.compile(
    r"^(?:\w+ )?(?:who|whose|where|when)\b|SELECTOR|\bwhat (?:is|does|are) (?:\w+ )?CODE"
)
# How many unknown words a question may hold: (about a mere host, about a GPU, pod or job).
_LOOSE, _CLOSE, _COMPLAINT = (0, 6), (0, 1), (0, 2)


def why(clause: Clause) -> dict[str, Json] | None:
    """Return the target that a clause asks about or complains of."""
    target = one_target(clause)
    if target is None or speaks_of_others(clause) or _ASKS_ELSE.search(clause.shape):
        return None
    if target == "fleet" and not _WHY.search(clause.shape):
        return None
    return {"target": target} if _fits(clause, sure=not is_host(target)) else None


def _fits(clause: Clause, *, sure: bool) -> bool:
    words = set(clause.words)
    odd = unknown(clause, v.COMMON | v.SETTLED)
    unwell = "not" in words and bool(v.HEALTH & words) and not v.COMPLAINT & words
    complains = unwell or bool(v.COMPLAINT & words) or bool({"CODE", "REASON"} & set(clause.tokens))
    if v.REPORTED & words:
        return False
    if _ASKS_WHY.search(clause.shape):
        return odd <= _LOOSE[sure] + (complains and not sure)
    if (v.SETTLED | v.RECORDING | v.PROFILERS.keys()) & words:
        return False
    speaks = any(word not in v.FILLER for word in words)
    if asks(clause):
        told = complains or bool(v.HEALTH & words) or bool(v.LOOK & words)
        return odd <= _CLOSE[sure] and (told or not speaks or bool(_ASKS_HOW.search(clause.shape)))
    if narrates(clause):
        return False
    if v.LOOK & words:
        return odd <= _CLOSE[sure]
    if complains:
        return odd <= _COMPLAINT[sure] and (unwell or not _denies(words))
    named_only = not speaks or bool(_ASKS_HOW.search(clause.shape))
    return named_only and odd == 0 and not states(clause)


def _denies(words: set[str]) -> bool:
    """Return whether a complaint is denied: "not slow", "no longer throttling"."""
    return bool({"not", "no", "never"} & words) and not {"working", "boosting"} & words
