"""Messages that are no answers: progress, a plan to be approved, and what became of it.

Each function returns a payload for the Web API (``text`` and ``blocks``), checked against the
limits of Block Kit. What people typed and what a machine said goes in as text, never as markup.
"""

from __future__ import annotations

import re
from typing import Any

from bot.answer import Answer
from bot.render import mrkdwn, slack
from bot.render.blockkit import sendable
from bot.request import Actor, ActorKind
from bot.times import utc

APPROVE = "job_approve"
DENY = "job_deny"

_SLACK_USER = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_SHOWN = 200
_NAME = 80
_Json = dict[str, Any]


def answer(answer: Answer) -> tuple[_Json, ...]:
    """Return an answer: the first message, and those that go in its thread."""
    return tuple(sendable(message.payload()) for message in slack.render(answer))


def progress(asker: Actor, question: str, state: str = "looking") -> _Json:
    """Return the message that stands where the answer will be.

    Args:
        asker: who asked; named, so that a channel sees whose question it is.
        question: what was asked, as typed.
        state: what is being done, in a word or two.
    """
    shown = " ".join(question.split())
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    asked = f"{person(asker)} asks {mrkdwn.code(shown)}" if shown else person(asker)
    said = slack.notice(f"{state} …")
    blocks = [slack.section(f"\u23f3 {said}"), slack.context(asked)]
    return sendable({"text": said, "blocks": blocks})


def unattached() -> _Json:
    """Return the message that stands where a file could not be attached."""
    said = (
        "The answer goes on, but the file with all of it could not be attached: give the Slack "
        "app the scope files:write, or ask on the command line."
    )
    return sendable({"text": said, "blocks": [slack.context(said)]})


def plan(
    answer: Answer, job_id: str, asker: Actor, *, expires_at: float | None = None
) -> tuple[_Json, ...]:
    """Return a plan with buttons to approve or deny it.

    The buttons carry the opaque id of the job and nothing of the plan: what may run is looked up
    when somebody decides.

    Args:
        answer: the plan: target, commands, duration, what it disturbs.
        job_id: id of the job.
        asker: who asked for it.
        expires_at: when the plan lapses (Unix seconds).
    """
    first, *more = slack.render(answer)
    until = f"; decide before {utc(expires_at)}" if expires_at is not None else ""
    asked = slack.context(f"{person(asker)} asks for this{until}")
    blocks = [*first.blocks, asked, _buttons(job_id)]
    payloads = [{"text": first.text, "blocks": blocks}, *(message.payload() for message in more)]
    return tuple(sendable(payload) for payload in payloads)


def decided(answer: Answer, by: Actor | None, outcome: str, *, at: float) -> tuple[_Json, ...]:
    """Return a plan without its buttons, with what became of it and who decided.

    Args:
        answer: the plan.
        by: who decided; None if nobody did in time.
        outcome: "approved", "denied" or "expired".
        at: when (Unix seconds).
    """
    first, *more = slack.render(answer)
    who = f" by {person(by)}" if by is not None else ""
    said = slack.section(f"{mrkdwn.strong(outcome[:_NAME])}{who} at {utc(at)}")
    payloads = [
        {"text": slack.notice(f"{outcome} at {utc(at)}"), "blocks": [*first.blocks, said]},
        *(message.payload() for message in more),
    ]
    return tuple(sendable(payload) for payload in payloads)


def person(actor: Actor) -> str:
    """Return somebody as markup: a Slack user as a mention, anybody else by name."""
    if actor.kind is ActorKind.SLACK and _SLACK_USER.fullmatch(actor.id):
        return f"<@{actor.id}>"
    return mrkdwn.code((actor.name or actor.id)[:_NAME]) or "somebody"


def _buttons(job_id: str) -> _Json:
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": APPROVE,
                "style": "primary",
                "text": _plain("Approve"),
                "value": job_id,
                "confirm": {
                    "title": _plain("Run this?"),
                    "text": _plain(
                        "It runs on the target as the plan says. The first decision counts."
                    ),
                    "confirm": _plain("Approve"),
                    "deny": _plain("Not yet"),
                },
            },
            {
                "type": "button",
                "action_id": DENY,
                "style": "danger",
                "text": _plain("Deny"),
                "value": job_id,
            },
        ],
    }


def _plain(text: str) -> _Json:
    return {"type": "plain_text", "text": text}
