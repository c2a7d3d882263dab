"""A question about one target, or a complaint about it."""

from __future__ import annotations

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, narrates, speaks_of_others, states
from bot.router.intents.subject import one_target, unknown
from bot.router.profilers import PROFILERS
from bot.router.spans import any_of, shape
from bot.router.targets import is_host

_CAUSES = any_of("why", "diagnose troubleshoot triage investigate diagnosis explain")
_WHAT = any_of(
    "wrong matter problem problems issue issues reason cause status state health condition up on"
)
_DOES = any_of(
    "happen happens happened happening ails slows slowing makes making causes causing limits",
    "limiting throttles throttling holding holds",
)
_ASKS_WHY = shape(
    rf"\b(?:{_CAUSES}|how come|for what reason|root cause|no idea what",
    rf"|what (?:\w+ ){{0,3}}?{_WHAT}|what (?:(?:is|has|just|be) )*{_DOES})\b",
)
_ASKS_HOW = shape(
    r"\b(?:how (?:is|are|about|healthy|bad|slow|hot)|what about|status|state|health)\b"
)
_WHY = shape(r"\b(?:why|how come|what makes)\b")
# Who, where and when are other questions; a selector is the fleet's; a code may be what is meant.
_ASKS_ELSE = shape(
    r"^(?:\w+ )?(?:who|whose|where|when)\b|SELECTOR|\bwhat (?:is|does|are) (?:\w+ )?CODE"
)
# How many unknown words a clause may hold: about a mere host, about a GPU, pod or job.
_ODD_IN_QUESTION = (0, 6)
_ODD_IN_CHECK = (0, 1)
_ODD_IN_COMPLAINT = (0, 2)


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
        return odd <= _ODD_IN_QUESTION[sure] + (complains and not sure)
    if (v.SETTLED | v.RECORDING | PROFILERS.keys()) & words:
        return False
    speaks = any(word not in v.FILLER for word in words)
    if asks(clause):
        told = (
            complains or bool((v.HEALTH | v.LOOK) & words) or bool(_ASKS_HOW.search(clause.shape))
        )
        return odd <= _ODD_IN_CHECK[sure] and (told or not speaks)
    if narrates(clause):
        return False
    if v.LOOK & words:
        return odd <= _ODD_IN_CHECK[sure]
    if complains:
        return odd <= _ODD_IN_COMPLAINT[sure] and (unwell or not _denies(words))
    named_only = not speaks or bool(_ASKS_HOW.search(clause.shape))
    return named_only and odd == 0 and not states(clause)


def _denies(words: set[str]) -> bool:
    """Return whether a complaint is denied: "not slow", "no longer throttling"."""
    return bool({"not", "no", "never"} & words) and not {"working", "boosting"} & words
