"""Slack over HTTP: the route that the server mounts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.serversettings import Slack
from bot.surfaces.slack.app import revealed
from bot.surfaces.slack.signature import Signature
from engine.errors import UsageError

PATH = "/slack/events"


def route(app: AsyncApp, settings: Slack, *, now: Callable[[], float] = time.time) -> web.RouteDef:
    """Return the route for events, commands, buttons and shortcuts.

    A body is parsed only after its signature was found good: 401 if not, 400 if it is good and the
    body is none that Slack sends.

    Raises:
        UsageError: there is no signing secret.
    """
    secret = revealed(settings.signing_secret)
    if secret is None:
        hint = "set GPUWHY_SLACK_SIGNING_SECRET, or slack.mode to socket"
        raise UsageError("Slack over HTTP needs a signing secret", hint=hint, code="config")
    signature = Signature(secret, now)

    async def handle(request: web.Request) -> web.Response:
        try:
            body = (await request.read()).decode("utf-8")
        except UnicodeDecodeError:
            return web.json_response({"error": "invalid request"}, status=401)
        stamp = request.headers.get("X-Slack-Request-Timestamp")
        if not signature.is_valid(body, stamp, request.headers.get("X-Slack-Signature")):
            return web.json_response({"error": "invalid request"}, status=401)
        headers: dict[str, str | Sequence[str]] = dict(request.headers)
        try:
            asked = AsyncBoltRequest(body=body, query=request.query_string, headers=headers)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return web.json_response({"error": "unreadable request"}, status=400)
        return await to_aiohttp_response(await app.async_dispatch(asked))

    return web.post(PATH, handle)
