"""The words of a slash command: ``why node-3:5 --window 5m``, ``capture nsys node-3:5 10s``."""

from __future__ import annotations

import re

from bot.request import Request
from bot.router.arguments import COMMANDS, PARSERS, no_command
from bot.router.options import split_words
from bot.router.pasted import pasted_text
from bot.router.questions import free_question
from bot.router.sentence import Said, read_sentence
from bot.router.slacktext import Message, read_message
from engine.catalogue.nearest import nearest
from engine.errors import UsageError


def parse_words(words: str) -> Request:
    """Read the words of a slash command; nothing at all asks for help.

    Plain sentences are understood too where no command is near ("is node-3 ok?").

    Args:
        words: what follows ``/gpu``, as Slack sends it.

    Raises:
        UsageError: an unknown command (with the nearest one), a missing or unreadable argument, an
            unknown option.
    """
    message = read_message(words)
    said = read_words(message)
    return Request(said.command, said.args, message.excerpt)


def read_words(message: Message) -> Said:
    """Read a message as the words of a command.

    Raises:
        UsageError: as `parse_words`.
    """
    text = message.prose.removeprefix("/gpu ").removeprefix("gpuwhy ").strip()
    if text in {"", "?", "/gpu", "gpuwhy"} and not message.fences and not message.quoted:
        return Said("help", {})
    first = text.split(maxsplit=1)[0] if text else ""
    rest = text[len(first) :].strip()
    command = first.strip("`:*_").lower()
    if command == "read":
        return Said("read", {"text": _paste(message)})
    if command not in PARSERS:
        return _unknown(command, text, message)
    taken, read = PARSERS[command]
    return Said(command, read(split_words(command, rest, taken)))


def _paste(message: Message) -> str:
    after = re.split(r"\bread\b:?", message.raw, maxsplit=1, flags=re.IGNORECASE)[-1]
    text = "\n".join(message.fences) if message.fences else after.strip()
    if not text.strip():
        raise UsageError(
            "read needs text", hint="paste a log, nvidia-smi output or metrics after it"
        )
    return text


def _unknown(command: str, text: str, message: Message) -> Said:
    """Read words that begin with no command: pasted output, or a sentence."""
    paste = pasted_text(message)
    if paste is not None:
        return Said("read", {"text": paste})
    if not nearest(command, COMMANDS, 1):
        said = read_sentence(text)
        if said is not None:
            return said
        question = free_question(text)
        if question is not None and " " in text:
            return Said(question.command, dict(question.args))
    raise no_command(command)
