"""One request from a sentence in plain language, or none."""

from __future__ import annotations

import re
from typing import NamedTuple

from bot.request import Json
from bot.router import codes, moments, targets
from bot.router.clauses import Clause, clauses
from bot.router.intents import RULES
from bot.router.intents.manner import forbids, settles, thanks, withdraws
from bot.router.selectors import mark_selectors
from bot.router.spans import Marked
from bot.router.vocabulary import KNOWN, POLITE

# Nobody asks in more letters than this; longer prose is a report.
_LONGEST = 600
_SHOUTED_WORDS = 3
_PHRASES = (
    (re.compile(r"\bnsight[ -]?systems?\b", re.IGNORECASE), "nsys"),
    (re.compile(r"\bnsight[ -]?compute\b", re.IGNORECASE), "ncu"),
)
_QUOTATION = re.compile(r"\"([^\"\n]*)\"|(?<!\w)'([^'\n]{0,200})'(?!\w)")
_DECODE = re.compile(
    r"(?:(?:please|pls|hey|hi|gpuwhy|can you|could you)\W+)*decode:?\s+`?"
    r"(?!(?:it|this|that|these|those|the|a|an|my|for|me|what|why)\b)"
    r"(?P<what>[^\s`?!]+(?: [^\s`?!]+){0,3}?)`?(?: please)?[\s.?!]*",
    re.IGNORECASE,
)


class Said(NamedTuple):
    """A command and its arguments."""

    command: str
    args: dict[str, Json]


def read_sentence(prose: str) -> Said | None:
    """Return what prose asks for; None if it asks nothing, two things, or nothing clear.

    Args:
        prose: text without Slack's forms (`bot.router.slacktext.Message.prose`).
    """
    if len(prose) > _LONGEST:
        return None
    marked = mark_all(_calm(prose))
    said = clauses(marked)
    if any(withdraws(clause) for clause in said):
        return None
    asked = [found for clause in said if (found := _asked(clause))]
    if asked and any(settles(clause) for clause in said[1:]):
        return None
    if not asked and (plain := _DECODE.fullmatch(prose)):
        return Said("decode", {"text": plain["what"]})
    chosen = _one(asked)
    if chosen is None or (chosen.command == "capture" and not _nothing_else(said)):
        return None
    if chosen.command not in {"why", "sweep"}:
        return chosen
    times = _times(marked)
    return None if times is None else Said(chosen.command, {**chosen.args, **times})


def _calm(prose: str) -> str:
    """Return shouted prose in lower case; a name alone in capitals is left as it is."""
    if not prose.isupper():
        return prose
    words = re.findall(r"[a-z]{2,}", prose.lower())
    return prose.lower() if sum(word in KNOWN for word in words) >= _SHOUTED_WORDS else prose


def mark_all(prose: str) -> Marked:
    """Return prose with everything marked that it names."""
    for phrase, word in _PHRASES:
        prose = phrase.sub(word, prose)
    marked = Marked(prose)
    mark_selectors(marked)
    marked.text = _QUOTATION.sub(_unquoted, marked.text)
    targets.mark_explicit(marked)
    moments.mark_times(marked)
    codes.mark_codes(marked)
    targets.mark_spoken(marked)
    moments.mark_spans(marked)
    targets.mark_hosts(marked)
    codes.mark_reasons(marked)
    return marked


def _unquoted(found: re.Match[str]) -> str:
    """Keep a quotation that names a thing; anything longer is somebody else's words."""
    inside = (found[1] if found[1] is not None else found[2]).strip()
    return inside if len(inside.split()) <= 1 else " "


def _asked(clause: Clause) -> Said | None:
    if forbids(clause) or thanks(clause):
        return None
    for command, rule in RULES:
        args = rule(clause)
        if args is not None:
            return Said(command, args)
    return None


def _one(asked: list[Said]) -> Said | None:
    """Return the one thing that is asked; a question about a target outweighs one about all."""
    different = [found for i, found in enumerate(asked) if found not in asked[:i]]
    for general in ("help", "sweep"):
        if len(different) > 1:
            different = [found for found in different if found.command != general] or different
    return different[0] if len(different) == 1 else None


def _nothing_else(said: list[Clause]) -> bool:
    """Return whether nothing but courtesies is said beside an order to capture."""
    others = [clause for clause in said if "TARGET" not in clause.tokens]
    return len(said) - len(others) == 1 and all(set(other.tokens) <= POLITE for other in others)


def _times(marked: Marked) -> dict[str, Json] | None:
    """Return ``at`` and ``window``, or None if the time asked about cannot be told."""
    told = {kind: [m.value for m in marked.marks if m.kind == kind] for kind in _TIME_KINDS}
    moments_told = len(told["AT"]) + len(told["BETWEEN"])
    if told["THEN"] or moments_told > 1 or len(told["WINDOW"]) > 1:
        return None
    times: dict[str, Json] = {}
    if told["WINDOW"]:
        times["window"] = told["WINDOW"][0]
    if told["AT"]:
        times["at"] = told["AT"][0]
    if told["BETWEEN"]:
        times["at"], times["window"] = moments.period(str(told["BETWEEN"][0]))
    return times


_TIME_KINDS = ("AT", "BETWEEN", "WINDOW", "THEN")
