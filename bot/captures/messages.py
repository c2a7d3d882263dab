"""What people are told about a capture, as deliveries into the conversation that asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.answer import Answer
from bot.commands.capture import plan_answer
from bot.delivery.compose import Route
from bot.delivery.messenger import Message
from bot.delivery.parcel import Parcel
from bot.failure import failed
from bot.render import mrkdwn, slack, slackcards
from bot.request import Actor
from bot.store import Delivery, DeliveryKind, NewDelivery, Question
from engine.capture import CapturePlan
from engine.errors import GpuwhyError


def planned(
    question: Question, asker: Actor, answer: Answer, job_id: str, expires_at: float
) -> NewDelivery:
    """Return a plan with its buttons, in the place of the progress message."""
    messages = slackcards.plan(answer, job_id, asker, expires_at=expires_at)
    return _edit(Route.of(question), messages, slackcards.progress(asker, str(answer.data["id"])))


def decided(
    question: Question, plan: CapturePlan, by: Actor | None, outcome: str, at: float
) -> NewDelivery:
    """Return a plan with what became of it instead of its buttons."""
    messages = slackcards.decided(plan_answer(plan), by, outcome, at=at)
    # What the plan has under it is there already.
    return _edit(Route.of(question), messages[:1], messages[0])


def finished(
    question: Question, sent: Sequence[Delivery], answer: Answer, link: str | None
) -> NewDelivery:
    """Return what came of a capture, in the thread of its plan."""
    route = Route.of(question)
    first, *more = slackcards.answer(answer)
    if link is not None:
        download = slack.section(f"<{mrkdwn.escape(link)}|Download the trace>")
        first = {**first, "blocks": [*first["blocks"], download]}
    plan = [d.message_ts for d in sent if d.coalesce_key == route.name and d.message_ts]
    parcel = Parcel(
        first,
        more=more,
        placeholder={"text": "The capture is over."},
        response_url=route.response_url,
    )
    return NewDelivery(
        DeliveryKind.POST,
        route.channel,
        parcel.to_json(),
        thread=route.thread or (plan[-1] if plan else None),
        coalesce_key=f"{route.name}/capture",
    )


def whisper(actor: Actor, error: GpuwhyError) -> NewDelivery:
    """Return what is told to one person alone, where they clicked."""
    first, *_ = slackcards.answer(failed(error))
    return NewDelivery(
        DeliveryKind.EPHEMERAL, actor.channel, Parcel(first, user=actor.id).to_json()
    )


def with_job(answer: Answer, job_id: str, expires_at: float) -> Answer:
    """Return a plan's answer with what is needed to decide on it."""
    return replace(answer, data={**answer.data, "job": job_id, "expires_at": expires_at})


def _edit(route: Route, messages: Sequence[Message], placeholder: Message) -> NewDelivery:
    first, *more = messages
    parcel = Parcel(first, more=more, placeholder=placeholder, response_url=route.response_url)
    return NewDelivery(
        DeliveryKind.UPDATE,
        route.channel,
        parcel.to_json(),
        thread=route.thread,
        coalesce_key=route.name,
    )
