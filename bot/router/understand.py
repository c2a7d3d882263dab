"""From free text to a request: what a mention or a direct message asks for, if anything."""

from __future__ import annotations

import re

from bot.request import Json, Request
from bot.router import codes, moments, targets
from bot.router.clauses import Clause, clauses
from bot.router.intents import RULES, forbidden, withdrawn
from bot.router.pasted import is_pasted
from bot.router.selectors import mark_selectors
from bot.router.slacktext import Message, read_message
from bot.router.spans import Marked
from bot.router.words import COMMANDS, parse_words
from engine.errors import UsageError

# Nobody asks in more words than this; longer prose is a report.
_LONGEST = 600
_QUOTATION = re.compile(r"\"([^\"\n]*)\"|(?<!\w)'([^'\n]{0,200})'(?!\w)")
_TYPED_COMMAND = re.compile(r"/gpu\b\s*(.*)", re.DOTALL)
_FLAGGED = re.compile(rf"(?:gpuwhy\s+)?((?:{'|'.join(COMMANDS)})\b.*\s--(?:at|window|where)\b.*)", re.DOTALL)
# How gpuwhy's own answers begin.
_OWN_WORDS = re.compile(
    r"\bis (?:degraded: |(?:healthy|idle) (?:at|from|in|over|for|\d)[^?]*: )|\bhas no verdict\b"
    r"|\b(?:\d+ incidents?|no incident) among \d|\bnothing could be checked\b"
    r"|\bnone of the \d+ causes\b",
    re.IGNORECASE,
)
_ASKS_TO_READ = re.compile(
    r"\b(?:read|look at|check|explain|decode|analy[sz]e|interpret|what|mean|why|help|see)\b", re.IGNORECASE
)
_DECODE = re.compile(
    r"(?:(?:please|pls|hey|hi|gpuwhy|can you|could you)\W+)*decode:?\s+`?(?!(?:it|this|that|these|those|the|a|an|my|for|me|what|why)\b)"
    r"(?P<what>[^\s`?!]+(?: [^\s`?!]+){0,3}?)`?(?: please)?[\s.?!]*",
    re.IGNORECASE,
)


def understand(text: str) -> Request | None:
    """Return what a message asks for, or None if it is no clear question; never raises.

    Args:
        text: a message as Slack sends it.
    """
    message = read_message(text)
    pasted = _pasted(message)
    if pasted is not None:
        return Request("read", {"text": pasted}, message.raw)
    prose = message.prose
    if not prose or len(prose) > _LONGEST or _OWN_WORDS.search(prose):
        return None
    found = _as_command(prose) or _as_sentence(prose)
    return None if found is None else Request(found[0], found[1], message.raw)


def _pasted(message: Message) -> str | None:
    """Return pasted output, or None if there is none."""
    for fence in message.fences:
        if is_pasted(fence):
            return "\n".join(message.fences)
    if is_pasted(message.quoted):
        return message.quoted
    if is_pasted(message.prose):
        return message.raw
    large = [fence for fence in message.fences if "\n" in fence]
    return "\n".join(large) if large and _ASKS_TO_READ.search(message.prose[:_LONGEST]) else None


def _as_command(prose: str) -> tuple[str, dict[str, Json]] | None:
    """Read what is written as on the command line: "/gpu why node-3:5", or with options."""
    typed = _TYPED_COMMAND.fullmatch(prose) or _FLAGGED.fullmatch(prose)
    if not typed:
        return None
    try:
        request = parse_words(typed[1])
    except UsageError:
        return None
    return request.command, dict(request.args)


def _as_sentence(prose: str) -> tuple[str, dict[str, Json]] | None:
    marked = mark(prose)
    said = clauses(marked)
    if any(withdrawn(clause) for clause in said):
        return None
    asked = [found for clause in said if (found := _asked(clause))]
    if not asked and (plain := _DECODE.fullmatch(prose)):
        return "decode", {"text": plain["what"]}
    chosen = _one(asked)
    if chosen is None or not _only(chosen[0], said):
        return None
    command, args = chosen
    if command in {"why", "sweep"}:
        times = _times(marked)
        return None if times is None else (command, {**args, **times})
    return command, args


def mark(prose: str) -> Marked:
    """Return prose with everything marked that it names."""
    marked = Marked(_QUOTATION.sub(_unquoted, prose))
    mark_selectors(marked)
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


def _asked(clause: Clause) -> tuple[str, dict[str, Json]] | None:
    if forbidden(clause):
        return None
    for command, rule in RULES:
        args = rule(clause)
        if args is not None:
            return command, args
    return None


def _one(asked: list[tuple[str, dict[str, Json]]]) -> tuple[str, dict[str, Json]] | None:
    """Return the one thing that is asked; a question about a target outweighs one about all."""
    different = [found for i, found in enumerate(asked) if found not in asked[:i]]
    for general in ("help", "sweep"):
        if len(different) > 1:
            different = [found for found in different if found[0] != general] or different
    return different[0] if len(different) == 1 else None


def _only(command: str, said: list[Clause]) -> bool:
    """Return whether nothing else is said beside an order to capture."""
    if command != "capture":
        return True
    from bot.router.vocabulary import POLITE

    others = [clause for clause in said if "TARGET" not in clause.tokens]
    return len(said) - len(others) == 1 and all(set(c.tokens) <= POLITE for c in others)


def _times(marked: Marked) -> dict[str, Json] | None:
    """Return ``at`` and ``window``, or None if the time asked about cannot be told."""
    kinds = [mark.kind for mark in marked.marks]
    if "THEN" in kinds or kinds.count("AT") + kinds.count("BETWEEN") > 1 or kinds.count("WINDOW") > 1:
        return None
    times: dict[str, Json] = {}
    for mark_ in marked.marks:
        if mark_.kind == "AT":
            times["at"] = mark_.value
        elif mark_.kind == "WINDOW":
            times["window"] = mark_.value
        elif mark_.kind == "BETWEEN":
            times["at"], times["window"] = moments.period(str(mark_.value))
    return times
