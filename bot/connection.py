"""The port by which the server is connected to a chat service; Slack's is in `bot.surfaces.slack`.

The server only starts it, asks whether it is up, and stops it: what comes in goes to the service.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web


class Connection(Protocol):
    """A way for questions to come in."""

    def mount(self, app: web.Application) -> None:
        """Add the pages that the chat service calls, if it calls any."""
        ...

    async def start(self) -> None:
        """Begin to take questions; it may be connected only some time later."""
        ...

    async def ping(self) -> None:
        """Make sure that it is connected; raises `GpuwhyError` if it is not."""
        ...

    async def stop(self) -> None:
        """Take no more questions; returns once those that have come in are with the service."""
        ...
