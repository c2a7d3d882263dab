"""Everything else: acknowledged, so that Slack does not send it again and again."""

from __future__ import annotations

import re

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.surfaces.slack.port import Service

_ANY = re.compile(r".*", re.DOTALL)


def register(app: AsyncApp, service: Service) -> None:
    """Register what takes events nobody asked for and buttons of messages from before."""
    del service

    async def ignore(ack: AsyncAck) -> None:
        await ack()

    app.event(_ANY)(ignore)
    app.action(_ANY)(ignore)
    app.shortcut(_ANY)(ignore)
