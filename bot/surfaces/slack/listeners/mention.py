"""A mention in a channel: plain words, answered in the thread."""

from __future__ import annotations

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from bot.attachments import refs_of
from bot.inbound import Inbound, Surface
from bot.surfaces.slack import who
from bot.surfaces.slack.listeners.handover import answered, submit
from bot.surfaces.slack.port import Service

EVENT = "app_mention"


def register(app: AsyncApp, service: Service) -> None:
    """Register the mention."""

    async def mention(body: dict[str, Any], event: dict[str, Any]) -> BoltResponse | None:
        if not is_asked(event):
            return None
        return answered(await submit(service, inbound(body, event, Surface.MENTION)))

    app.event(EVENT)(mention)


def is_asked(event: dict[str, Any]) -> bool:
    """Return whether a person wrote it, just now: no bot, no edit, no notice by Slack."""
    return bool(event.get("user")) and not (event.get("bot_id") or event.get("edited"))


def inbound(body: dict[str, Any], event: dict[str, Any], surface: Surface) -> Inbound:
    """Return a message as a question, to be answered in its thread."""
    channel = str(event["channel"])
    return Inbound(
        dedupe_key=who.message_key(body, event),
        surface=surface,
        actor=who.actor(event["user"], channel),
        channel=channel,
        text=event.get("text") or "",
        thread=event.get("thread_ts") or event["ts"],
        files=refs_of(event),
    )
