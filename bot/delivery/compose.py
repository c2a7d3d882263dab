"""From answers to deliveries: what is put in the queue for a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.answer import Answer
from bot.delivery.messenger import Message
from bot.delivery.parcel import Attached, Parcel
from bot.render import plain, slackcards
from bot.request import Actor, Request
from bot.store import DeliveryKind, NewDelivery, Question

_ROUTE = "route"
# So many further messages are read in a thread; what is longer goes on in a file.
_UNFOLDED = 1
_FILE = 1_000_000


@dataclass(frozen=True, slots=True)
class Route:
    """How an answer gets to whoever asked.

    Attributes:
        channel: Slack channel.
        thread: message under which it goes; None: in the channel.
        name: of the message that is posted first and then edited, in the queue.
        user: who sees it, if it is for nobody else.
        response_url: where it goes if the bot is not in the channel.
        reason: why policy allowed the question.
    """

    channel: str
    thread: str | None
    name: str
    user: str = ""
    response_url: str | None = field(default=None, repr=False)
    reason: str = ""

    def into(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored request with what the question's own columns do not hold."""
        kept = {"user": self.user, "response_url": self.response_url, "reason": self.reason}
        return {**request, _ROUTE: kept}

    @classmethod
    def of(cls, question: Question) -> Route:
        """Return the route of a stored question."""
        kept: Any = question.request.get(_ROUTE) or {}
        return cls(
            channel=question.channel,
            thread=question.thread,
            name=question.dedupe_key,
            user=kept.get("user") or "",
            response_url=kept.get("response_url"),
            reason=kept.get("reason") or "",
        )


def progress(
    route: Route, actor: Actor, request: Request, *, running_s: float = 0.0
) -> NewDelivery:
    """Return the message that says that a question is worked on, and for how long it has been."""
    kind = DeliveryKind.UPDATE if running_s else DeliveryKind.POST
    parcel = Parcel(_working(actor, request, running_s), response_url=route.response_url)
    return _delivery(route, kind, parcel)


def final(route: Route, actor: Actor, request: Request, answer: Answer) -> NewDelivery:
    """Return the answer: an edit of the progress message, or a message to one user alone."""
    first, *more = slackcards.answer(answer)
    if route.user:
        parcel = Parcel(first, user=route.user, response_url=route.response_url)
        return _delivery(route, DeliveryKind.EPHEMERAL, parcel)
    parcel = Parcel(
        first,
        more=more,
        file=_whole(request, answer) if len(more) > _UNFOLDED else None,
        placeholder=_working(actor, request, 0.0),
        response_url=route.response_url,
    )
    return _delivery(route, DeliveryKind.UPDATE, parcel)


def _whole(request: Request, answer: Answer) -> Attached:
    """Return a long answer as a text file for the thread."""
    text = plain.render(answer)
    if len(text) > _FILE:
        end = text.rindex("\n", 0, _FILE) + 1
        left = text.count("\n", end)
        text = f"{text[:end]}… {left} more lines: ask on the command line for all of them\n"
    return Attached(
        name=f"gpuwhy-{request.command}.txt",
        text=text,
        after=_UNFOLDED,
        otherwise=slackcards.unattached(),
    )


def _delivery(route: Route, kind: DeliveryKind, parcel: Parcel) -> NewDelivery:
    return NewDelivery(
        kind, route.channel, parcel.to_json(), thread=route.thread, coalesce_key=route.name
    )


def _working(actor: Actor, request: Request, running_s: float) -> Message:
    words = request.text or request.command
    state = f"still looking after {running_s:.0f} s" if running_s else "looking"
    return slackcards.progress(actor, words, state)
