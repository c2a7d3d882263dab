"""Slack as the server's connection: one app, over Socket Mode or over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.http import route
from bot.surfaces.slack.socket import SocketMode
from engine.errors import SourceError

if TYPE_CHECKING:
    from slack_bolt.app.async_app import AsyncApp

    from bot.connection import Connection
    from bot.serversettings import Slack
    from bot.service import Service
    from bot.settings import Settings


def connect(settings: Settings, service: Service) -> Connection:
    """Return the connection that the settings ask for; nothing is contacted yet.

    Raises:
        UsageError: a secret that the mode needs is missing.
    """
    slack = settings.slack
    app = build_app(slack, service)
    return Called(app, slack) if slack.mode == "http" else Calling(app, slack)


class Called:
    """Slack calls us."""

    def __init__(self, app: AsyncApp, slack: Slack) -> None:
        self._route = route(app, slack)

    def mount(self, app: web.Application) -> None:
        """Add the page that Slack calls."""
        app.router.add_routes([self._route])

    async def start(self) -> None:
        """Nothing to do: it is the HTTP server that takes requests."""

    async def ping(self) -> None:
        """Nothing to ask: whether Slack calls is not in our hands."""

    async def stop(self) -> None:
        """Nothing to do: the HTTP server has stopped taking requests."""


class Calling:
    """We are connected to Slack, which needs no address of ours."""

    def __init__(self, app: AsyncApp, slack: Slack) -> None:
        self._socket = SocketMode(app, slack)

    def mount(self, app: web.Application) -> None:
        """Nothing to add: Slack calls no page."""

    async def start(self) -> None:
        """Begin to connect."""
        await self._socket.start()

    async def ping(self) -> None:
        """Make sure that requests can come in.

        Raises:
            SourceError: they cannot.
        """
        if not await self._socket.connected():
            hint = "check slack.app_token and the network"
            raise SourceError("Slack is not connected", hint=hint, code="slack_unreachable")

    async def stop(self) -> None:
        """Take no more requests, and finish those begun."""
        await self._socket.aclose()
