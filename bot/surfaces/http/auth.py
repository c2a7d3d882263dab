"""API tokens: who sends a request."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from aiohttp import web
from pydantic import SecretStr

from bot.request import Actor, ActorKind
from engine.errors import UsageError


class UnauthorizedError(UsageError):
    """No token, or one that nobody has."""

    default_code = "unauthorized"


class TokenBook:
    """Knows tokens by their hash alone, so that none can be read from memory dumps or compared
    faster the more of it is right.

    Args:
        tokens: name of each to its token.
    """  # noqa: D205 - one sentence

    def __init__(self, tokens: Mapping[str, SecretStr]) -> None:
        self._names = {_digest(t.get_secret_value()): name for name, t in tokens.items()}

    def __len__(self) -> int:
        """Return how many tokens there are."""
        return len(self._names)

    def actor(self, request: web.Request) -> Actor:
        """Return whose token a request carries.

        Raises:
            UnauthorizedError: none, or one that nobody has.
        """
        if not self._names:
            raise UnauthorizedError(
                "this server has no API tokens", hint="set GPUWHY_SERVER_TOKENS on the server"
            )
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise UnauthorizedError(
                "no API token was sent", hint="set GPUWHY_TOKEN, or send Authorization: Bearer"
            )
        given = _digest(token.strip())
        found = ""
        for known, name in self._names.items():
            if hmac.compare_digest(known, given):
                found = name
        if not found:
            raise UnauthorizedError(
                "the server does not know this API token", hint="check GPUWHY_TOKEN"
            )
        return Actor(ActorKind.TOKEN, found, found)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
