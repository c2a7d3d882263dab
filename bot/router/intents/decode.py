"""A question what one code, mask, field or name means."""

from __future__ import annotations

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, narrates
from bot.router.intents.subject import has_target, unknown
from bot.router.spans import shape, word_set

_ASKS_WHAT = shape(
    r"\bwhat (?:\w+ )?(?:is|are|was|does|do) (?:(?:an?|the|this|that|these) )?(?:\w+ )?",
    r"(?:CODE|REASON)\b",
    r"|\b(?:why|what)\b.*\b(?:get|got|getting|see|seeing|have|having|say|says|there)\b",
    r"|\bCODE (?:is |are )?what\b|\btell (?:me )?about\b|\babout (?:the )?CODE$",
)
_NUMBER_ASKED = shape(
    r"(?:so )?what (?:is|does) (?:(?:a|an|the|code|value|number) ){0,2}(?P<number>\d{1,20})",
    r"(?: mean| stand for)?|(?:please )?decode (?P<other>\d{1,20})(?: please)?",
)
_KNOWN = v.COMMON | v.SEVERITY
# Words beside a code alone: "got xid 13 errors in dmesg".
_BESIDE = v.FILLER | word_set(
    "bit bits code console dmesg error errors journal log logs mask reason reasons syslog value"
)
_SELECTS = word_set("any which who")


def decode(clause: Clause) -> dict[str, Json] | None:
    """Return what a clause asks the meaning of."""
    codes = clause.values("CODE")
    if not codes:
        return _reason(clause) or _number(clause)
    return {"text": codes[0]} if len(codes) == 1 and _fits(clause) else None


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
    return words <= _BESIDE and not _SELECTS & words


def _reason(clause: Clause) -> dict[str, Json] | None:
    """Return a throttle reason said in words; those are also met in complaints."""
    reasons = clause.values("REASON")
    asked = bool(v.DEFINE & set(clause.words)) or bool(_ASKS_WHAT.search(clause.shape))
    fits = len(reasons) == 1 and asked and not has_target(clause) and unknown(clause, _KNOWN) <= 1
    return {"text": reasons[0]} if fits else None


def _number(clause: Clause) -> dict[str, Json] | None:
    found = _NUMBER_ASKED.fullmatch(clause.shape)
    return {"text": found["number"] or found["other"]} if found else None
