"""Handing a question to the service, within the time that Slack waits."""

from __future__ import annotations

import asyncio

from slack_bolt.response import BoltResponse

from bot.failure import failed
from bot.inbound import Inbound, Outcome, Surface, Ticket
from bot.surfaces.slack.port import Service
from engine.errors import SourceError

# Slack gives up on a request after 3 s.
WITHIN_S = 2.5


async def submit(service: Service, inbound: Inbound) -> Ticket:
    """Return what became of a question; `Outcome.BUSY` if the service does not say in time.

    Slack repeats events, but not commands: whoever typed one is told.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            return await service.submit(inbound)
    except TimeoutError:
        slow = SourceError(
            "the question could not be kept in time",
            hint="ask again if there is no answer in a minute",
            code="busy",
        )
        is_typed = inbound.surface is Surface.COMMAND
        return Ticket(Outcome.BUSY, reply=failed(slow) if is_typed else None)


def answered(ticket: Ticket) -> BoltResponse:
    """Return the acknowledgement; a question that was not taken is not acknowledged.

    Slack then sends an event again, and tells the user of a command or shortcut that it failed.
    """
    status = 503 if ticket.outcome is Outcome.BUSY else 200
    return BoltResponse(status=status, body="")
