"""The Bolt app: one set of listeners for Socket Mode and HTTP.

A request is acknowledged after the service has stored it, never before: what Slack believes to be
taken is answered, even if the process is killed the moment after. Storing takes milliseconds.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import SecretStr
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.serversettings import Slack
from bot.surfaces.slack import listeners
from bot.surfaces.slack.port import Service
from bot.surfaces.slack.quiet import quiet_logger, redacted
from bot.surfaces.slack.signature import Signature
from engine.errors import GpuwhyError

log = logging.getLogger(__name__)


def build_app(
    settings: Slack, service: Service, *, now: Callable[[], float] = time.time
) -> AsyncApp:
    """Return the app with all listeners.

    Args:
        settings: the workspace.
        service: takes the questions.
        now: Unix seconds; what the age of a signature is counted from.
    """
    token = revealed(settings.bot_token)
    logger = quiet_logger()

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        # No call to Slack, which Bolt would make at the first event: listeners need none, and
        # Slack's API may be away while its events come in.
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, bot_token=token)

    app = AsyncApp(
        name="gpuwhy",
        logger=logger,
        client=AsyncWebClient(base_url=settings.api_url, logger=logger),
        authorize=authorize,
        process_before_response=True,
        request_verification_enabled=False,
        before_authorize=Verification(Signature(revealed(settings.signing_secret), now)),
    )
    app.error(_broken)
    listeners.register(app, service)
    return app


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's value, None for an empty one."""
    return (secret.get_secret_value() if secret else None) or None


class Verification(AsyncMiddleware):
    """Turns away requests over HTTP that are not signed by Slack, and says nothing about them."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature

    async def async_process(
        self,
        *,
        req: AsyncBoltRequest,
        resp: BoltResponse,
        next: Callable[[], Awaitable[BoltResponse]],  # noqa: A002 - Bolt's name for it
    ) -> BoltResponse | None:
        """Let a request pass, or answer it with 401."""
        del resp
        if req.mode == "socket_mode" or self._signature.is_valid(
            req.raw_body,
            _header(req, "x-slack-request-timestamp"),
            _header(req, "x-slack-signature"),
        ):
            return await next()
        log.warning("a request with a wrong or old signature was refused")
        return BoltResponse(status=401, body={"error": "invalid request"})


def _header(request: AsyncBoltRequest, name: str) -> str | None:
    found: Any = request.headers.get(name)
    return str(found[0]) if found else None


async def _broken(error: Exception) -> BoltResponse:
    """Note an error in a listener; without an acknowledgement Slack sends the request again."""
    expected = isinstance(error, GpuwhyError | TimeoutError)
    said = [f"{type(error).__name__}: {error}"] if expected else traceback.format_exception(error)
    log.error("a Slack request broke: %s", redacted("".join(said)))
    return BoltResponse(status=500, body="")
