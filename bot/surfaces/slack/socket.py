"""Slack over Socket Mode: the server connects to Slack, and needs no address of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.serversettings import Slack
from bot.surfaces.slack.app import revealed
from bot.surfaces.slack.quiet import quiet_logger
from engine.errors import UsageError

_PING_S = 5.0
_TIMEOUT_S = 15
_DRAIN_S = 3.0


class SocketMode:
    """The connection to Slack, kept up until it is closed.

    Args:
        app: takes the requests.
        settings: holds the app token.

    Raises:
        UsageError: there is no app token.
    """

    def __init__(self, app: AsyncApp, settings: Slack) -> None:
        token = revealed(settings.app_token)
        if token is None:
            hint = "set GPUWHY_SLACK_APP_TOKEN (xapp-…), or slack.mode to http"
            raise UsageError("Socket Mode needs an app token", hint=hint, code="config")
        self._token = token
        self._app = app
        self._api_url = settings.api_url
        self._client: SocketModeClient | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._handling: set[asyncio.Task[Any]] = set()
        self._closing = False

    async def start(self) -> None:
        """Begin to connect, and return at once; `connected` tells when that has worked."""
        logger = quiet_logger()
        self._client = SocketModeClient(
            app_token=self._token,
            logger=logger,
            web_client=AsyncWebClient(base_url=self._api_url, timeout=_TIMEOUT_S, logger=logger),
            ping_interval=_PING_S,
        )
        self._client.socket_mode_request_listeners.append(self._handle)
        connecting: Coroutine[Any, Any, None] = self._client.connect()  # type: ignore[no-untyped-call]
        self._connecting = asyncio.create_task(connecting, name="slack socket")

    async def connected(self) -> bool:
        """Return whether requests can come in now."""
        return self._client is not None and bool(await self._client.is_connected())

    async def aclose(self) -> None:
        """Take no more requests, finish those begun, and disconnect.

        Requests that are not taken are not acknowledged: Slack sends them to another connection.
        """
        self._closing = True
        if self._handling:
            await asyncio.wait(self._handling, timeout=_DRAIN_S)
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._client is not None:
            await self._client.close()  # type: ignore[no-untyped-call]
            self._client = None

    async def _handle(self, client: Any, request: SocketModeRequest) -> None:
        task = asyncio.current_task()
        if self._closing or task is None:
            return
        self._handling.add(task)
        try:
            started = time.time()
            response = await run_async_bolt_app(self._app, request)
            await send_async_response(client, request, response, started)
        finally:
            self._handling.discard(task)
