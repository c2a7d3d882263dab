"""What a surface hands to the service, and what it gets back at once.

A surface only translates: it says who asks, where, and in which words, and gives a key by which
the same request is known again when it is delivered twice. See `bot.service`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.answer import Answer
from bot.attachments import FileRef
from bot.request import Actor, Request


class Surface(StrEnum):
    """How a question came in; decides how its words are read and where the answer goes.

    COMMAND: a slash command; words as on the command line, refusals go back with the
    acknowledgement. MENTION and DIRECT: plain words in a channel or a direct message, answered in
    the thread. SHORTCUT: a message to be read. API: the HTTP API.
    """

    COMMAND = "command"
    MENTION = "mention"
    DIRECT = "direct"
    SHORTCUT = "shortcut"
    API = "api"


@dataclass(frozen=True, slots=True)
class Inbound:
    """One question as it came in.

    Attributes:
        dedupe_key: the same for every delivery of the same request (event id, trigger id).
        surface: how it came in.
        actor: who asks.
        channel: where the answer goes (Slack channel id).
        text: what was typed, as Slack sends it; or a request that needs no reading.
        thread: the message under which the answer goes (Slack ``ts``); None: in the channel.
        response_url: where a slash command may be answered if the bot is not in the channel. It
            lets its holder post: never log it.
        files: what was attached; read where the words ask for nothing else.
    """

    dedupe_key: str
    surface: Surface
    actor: Actor
    channel: str
    text: str | Request
    thread: str | None = None
    response_url: str | None = None
    files: tuple[FileRef, ...] = ()


class Outcome(StrEnum):
    """What became of a question on arrival.

    ACCEPTED: stored; the answer comes later. DUPLICATE: it was there already. ANSWERED: ``reply``
    is the answer. REFUSED: policy says no. MISUNDERSTOOD: a command that cannot be read. IGNORED:
    no question at all, such as small talk. BUSY: too much waits, or the store is away.
    """

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    ANSWERED = "answered"
    REFUSED = "refused"
    MISUNDERSTOOD = "misunderstood"
    IGNORED = "ignored"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Ticket:
    """What the surface is told at once.

    Attributes:
        outcome: what became of the question.
        question_id: its id in the store, empty if it is not stored.
        reply: to be shown to the asker alone with the acknowledgement. Only set for
            `Surface.COMMAND`; on other surfaces the service has put it in the delivery queue.
    """

    outcome: Outcome
    question_id: str = ""
    reply: Answer | None = None
