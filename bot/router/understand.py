"""From free text to a request: what a mention or a direct message asks for, if anything."""

from __future__ import annotations

import re

from bot.request import Request
from bot.router.arguments import COMMANDS
from bot.router.pasted import pasted_text
from bot.router.sentence import Said, read_sentence
from bot.router.slacktext import Message, read_message
from bot.router.words import read_words
from engine.errors import UsageError

_TYPED = re.compile(
    rf"/gpu(?:\s|$)|(?:gpuwhy\s+)?(?:{'|'.join(COMMANDS)})\b[^\n]{{0,300}}\s--(?:at|window|where)\b"
)
# How gpuwhy's own answers begin.
_OWN_WORDS = re.compile(
    r"\bis (?:degraded: |(?:healthy|idle) (?:at|from|in|over|for|\d)[^?]{0,80}: )"
    r"|\bhas no verdict\b|\bnone of the \d+ causes\b"
    r"|\b(?:\d+ incidents?|no incident) among \d|\bnothing could be checked\b",
    re.IGNORECASE,
)


def understand(text: str) -> Request | None:
    """Return what a message asks for, or None if it is no clear question; never raises.

    Args:
        text: a message as Slack sends it.
    """
    message = read_message(text)
    said = _understood(message)
    return None if said is None else Request(said.command, said.args, message.excerpt)


def _understood(message: Message) -> Said | None:
    pasted = pasted_text(message)
    if pasted is not None:
        return Said("read", {"text": pasted})
    if not message.prose or _OWN_WORDS.search(message.prose):
        return None
    if _TYPED.match(message.prose):
        try:
            return read_words(message)
        except UsageError:
            return None
    return read_sentence(message.prose)
