"""One request from a sentence in plain language, or none."""

from __future__ import annotations

import re
from typing import NamedTuple

from bot.request import Json
from bot.router import codes, moments, targets
from bot.router.clauses import Clause, clauses
from bot.router.intents import RULES
from bot.router.intents.manner import forbids, settles, thanks, withdraws
from bot.router.profilers import abbreviated
from bot.router.selectors import mark_selectors
from bot.router.spans import Marked
from bot.router.spelling import KNOWN
from bot.router.vocabulary import POLITE

# Nobody asks in more letters than this; longer prose is a report.
_LONGEST = 600
_SHOUTED_WORDS = 3
# Commands that a message asks for alone: an act, and words that many a sentence begins with.
_ALONE = frozenset({"capture", "help", "rules"})
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
    asked = [_asked(clause) for clause in said]
    if not any(asked):
        named = _DECODE.fullmatch(prose)
        return Said("decode", {"text": named["what"]}) if named else None
    chosen = _one([one for one in asked if one])
    if chosen is None or any(settles(clause) for clause in said[1:]):
        return None
    if chosen.command == "capture" and '"' in prose:
        return None  # whose words those are cannot be told
    others = [clause for clause, one in zip(said, asked, strict=True) if one != chosen]
    if chosen.command in _ALONE and not all(set(other.tokens) <= POLITE for other in others):
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
    marked = Marked(abbreviated(prose))
    mark_selectors(marked)
    targets.mark_quoted(marked)
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


def _times(marked: Marked) -> dict[str, Json] | None:
    """Return ``at`` and ``window``, or None if the time asked about cannot be told."""
    at, window, period = (marked.values(kind) for kind in ("AT", "WINDOW", "BETWEEN"))
    if marked.values("THEN") or len(at) + len(period) > 1 or len(window) > 1:
        return None
    times: dict[str, Json] = {}
    if window:
        times["window"] = window[0]
    if at:
        times["at"] = at[0]
    if period:
        times["at"], times["window"] = moments.period(str(period[0]))
    return times
