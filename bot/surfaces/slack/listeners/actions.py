"""The buttons under a plan: Approve and Deny."""

from __future__ import annotations

import asyncio
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.response import BoltResponse

from bot.render.slackcards import APPROVE, DENY
from bot.surfaces.slack import who
from bot.surfaces.slack.listeners.handover import WITHIN_S
from bot.surfaces.slack.port import Service


def register(app: AsyncApp, service: Service) -> None:
    """Register both buttons."""

    async def decide(ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> BoltResponse:
        """Hand the decision over; whether the actor may decide is the service's business."""
        user = body["user"]
        channel = str((body.get("channel") or {}).get("id", ""))
        actor = who.actor(user["id"], channel, user.get("name") or user.get("username", ""))
        async with asyncio.timeout(WITHIN_S):
            await service.decide(str(action["value"]), actor, action["action_id"] == APPROVE)
        return await ack()

    app.action(APPROVE)(decide)
    app.action(DENY)(decide)
