"""A question what one code, mask, field or name means."""

from __future__ import annotations

import re

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, narrates
from bot.router.intents.subject import has_target, unknown

_ASKS_WHAT = re.compile(
    r"\bwhat (?:\w+ )?(?:is|are|was|does|do) (?:(?:an?|the|this|that|these) )?(?:\w+ )?(?:CODE|REASON)"
    r"|\b(?:why|what)\b.*\b(?:get|got|getting|see|seeing|have|having|say|says|there)\b"
    r"|\bCODE (?:is |are )?what\b|\btell (?:me )?about\b|\babout (?:the )?CODE$"
)
_NUMBER_ASKED = re.compile(
    r"(?:so )?what (?:is|does) (?:(?:a|an|the|code|value|number) ){0,2}(?P<number>\d{1,20})(?: mean| stand for)?"
    r"|(?:please )?decode (?P<other>\d{1,20})(?: please)?"
)
_KNOWN = v.COMMON | v.SEVERITY
_FILLER = (
    v.FILLER
    | {"error", "errors", "code", "reason", "reasons", "bit", "bits", "mask", "value"}
    | {"log", "logs", "dmesg", "journal", "syslog", "console"}
)


def decode(clause: Clause) -> dict[str, Json] | None:
    """Return what a clause asks the meaning of."""
    codes = clause.values("CODE")
    if not codes:
        return _reason(clause) or _number(clause)
    fits = len(codes) == 1 and "CAPTURE" not in clause.tokens and _fits(clause)
    return {"text": codes[0]} if fits else None


def _fits(clause: Clause) -> bool:
    words = set(clause.words)
    odd = unknown(clause, _KNOWN)
    if has_target(clause):
        return bool(v.DEFINE & words) and odd <= 2
    if v.DEFINE & words or _ASKS_WHAT.search(clause.shape):
        return odd <= 3
    if narrates(clause):
        return False
    if asks(clause) and v.SEVERITY & words:
        return odd <= 2
    return words <= _FILLER and not {"any", "which", "who"} & words


def _reason(clause: Clause) -> dict[str, Json] | None:
    """Return a throttle reason said in words; those are also met in complaints."""
    reasons = clause.values("REASON")
    asked = bool(v.DEFINE & set(clause.words)) or bool(_ASKS_WHAT.search(clause.shape))
    fits = len(reasons) == 1 and asked and not has_target(clause) and unknown(clause, _KNOWN) <= 1
    return {"text": reasons[0]} if fits else None


def _number(clause: Clause) -> dict[str, Json] | None:
    found = _NUMBER_ASKED.fullmatch(clause.shape)
    return {"text": found["number"] or found["other"]} if found else None
