"""A direct message: plain words, each message the root of a thread of its own."""

from __future__ import annotations

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from bot.inbound import Surface
from bot.surfaces.slack.listeners.handover import answered, submit
from bot.surfaces.slack.listeners.mention import inbound, is_asked
from bot.surfaces.slack.port import Service

EVENT = "message"
# Kinds of messages that a person writes; edits, deletions, joins and the like have others.
_WRITTEN = frozenset({None, "file_share", "thread_broadcast"})


def register(app: AsyncApp, service: Service) -> None:
    """Register direct messages; in channels the bot only listens to mentions."""

    async def message(body: dict[str, Any], event: dict[str, Any]) -> BoltResponse | None:
        direct = event.get("channel_type") == "im" and event.get("subtype") in _WRITTEN
        if not (direct and is_asked(event)):
            return None
        return answered(await submit(service, inbound(body, event, Surface.DIRECT)))

    app.event(EVENT)(message)
