"""The message shortcut "Diagnose this": reads the message that it is used on."""

from __future__ import annotations

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.response import BoltResponse

from bot.attachments import refs_of
from bot.inbound import Inbound, Outcome, Surface
from bot.request import Request
from bot.router.slacktext import read_message
from bot.surfaces.slack import who
from bot.surfaces.slack.listeners.handover import answered, submit
from bot.surfaces.slack.messagetext import words
from bot.surfaces.slack.port import Service

CALLBACK = "diagnose_message"
_TEXT = "read the message above"


def register(app: AsyncApp, service: Service) -> None:
    """Register the shortcut."""

    async def shortcut(ack: AsyncAck, shortcut: dict[str, Any]) -> BoltResponse:
        channel = str(shortcut["channel"]["id"])
        message, user = shortcut["message"], shortcut["user"]
        ticket = await submit(
            service,
            Inbound(
                dedupe_key=who.trigger_key(shortcut, "shortcut"),
                surface=Surface.SHORTCUT,
                actor=who.actor(user["id"], channel, user.get("name") or user.get("username", "")),
                channel=channel,
                text=Request("read", {"text": read_message(words(message)).raw}, text=_TEXT),
                thread=message.get("thread_ts") or message["ts"],
                response_url=shortcut.get("response_url"),
                files=refs_of(message),
            ),
        )
        return answered(ticket) if ticket.outcome is Outcome.BUSY else await ack()

    app.shortcut({"type": "message_action", "callback_id": CALLBACK})(shortcut)
