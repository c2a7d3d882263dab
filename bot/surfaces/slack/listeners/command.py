"""``/gpu``: the same words as on the command line."""

from __future__ import annotations

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.response import BoltResponse

from bot.inbound import Inbound, Surface
from bot.render import slackcards
from bot.surfaces.slack import who
from bot.surfaces.slack.listeners.handover import answered, submit
from bot.surfaces.slack.port import Service

COMMAND = "/gpu"


def register(app: AsyncApp, service: Service) -> None:
    """Register the slash command."""

    async def command(ack: AsyncAck, command: dict[str, Any]) -> BoltResponse:
        """Hand the words over; help, refusals and typos are told to the asker alone, at once."""
        channel = str(command["channel_id"])
        ticket = await submit(
            service,
            Inbound(
                dedupe_key=who.trigger_key(command, "command"),
                surface=Surface.COMMAND,
                actor=who.actor(command["user_id"], channel, command.get("user_name", "")),
                channel=channel,
                text=command.get("text") or "",
                response_url=command.get("response_url"),
            ),
        )
        if ticket.reply is None:
            return answered(ticket)
        first, *_ = slackcards.answer(ticket.reply)
        return await ack(response_type="ephemeral", **first)

    app.command(COMMAND)(command)
