"""Calls of Slack's Web API, with every way to fail told apart.

slack_sdk's client repeats by itself or not at all, and breaks on an answer that is plain text,
which is what a proxy in between sends when Slack is away. Here each call is one request, and its
failure says whether the call may have had its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from bot.delivery.messenger import AwayError, LimitedError, RejectedError

_LONGEST_WAIT_S = 600.0
# Slack's words for trouble of its own.
_PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
# And for a token that somebody has to put right: nothing is lost meanwhile.
NOT_LET_IN = frozenset({
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "missing_scope",
})  # fmt: skip
_LIMITED = frozenset({"ratelimited", "rate_limited"})


class WebApi:
    """One token's connection to the Web API; made inside the running loop at the first call.

    Args:
        token: bot token, ``xoxb-…``.
        base_url: base address of the Web API, with a slash at the end.
        timeout_s: longest wait for an answer (s).
    """

    def __init__(self, token: str, base_url: str, timeout_s: float) -> None:
        self._token = token
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: str, arguments: Mapping[str, Any], *, form: bool = False
    ) -> Mapping[str, Any]:
        """Call a method and return its answer.

        Args:
            method: such as ``chat.postMessage``.
            arguments: those that are None are left out.
            form: send a form, as the methods that only read want it; else JSON.

        Raises:
            MessengerError: see `bot.delivery.messenger`.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        headers = {"Authorization": f"Bearer {self._token}"}
        if form:
            body: dict[str, Any] = {"data": {n: _as_form(v) for n, v in given.items()}}
        else:
            headers["Content-Type"] = "application/json; charset=utf-8"
            body = {"data": orjson.dumps(given)}
        status, retry_after, raw = await self._send(self._base_url + method, headers, body)
        answer = _object(raw)
        if answer is None:
            judge(status, retry_after, "")
            raise AwayError(f"Slack answers {method} with no JSON", uncertain=True)
        if answer.get("ok") is not True:
            said = str(answer.get("error") or "unknown_error")
            judge(status, retry_after, said)
            raise RejectedError(said)
        return answer

    async def send(self, url: str, document: Mapping[str, Any]) -> None:
        """Send JSON to an address that Slack gave out.

        Raises:
            RejectedError: the address is not Slack's.
            MessengerError: as `call`.
        """
        if not self._is_slack(url):
            raise RejectedError("address_elsewhere")
        headers = {"Content-Type": "application/json"}
        body = {"data": orjson.dumps(document)}
        status, retry_after, raw = await self._send(url, headers, body)
        judge(status, retry_after, raw.decode("utf-8", "replace").strip()[:80])

    async def upload(self, url: str, raw: bytes) -> None:
        """Send the bytes of a file to the address that Slack gave for it.

        Raises:
            RejectedError: the address is not Slack's.
            MessengerError: as `call`.
        """
        if not self._is_slack(url):
            raise RejectedError("address_elsewhere")
        headers = {"Content-Type": "application/octet-stream"}
        status, retry_after, answer = await self._send(url, headers, {"data": raw})
        judge(status, retry_after, answer.decode("utf-8", "replace").strip()[:80])

    async def download(self, url: str, most: int, *, html: bool = False) -> bytes | None:
        """Return the bytes at an address of Slack's, None if there are more than ``most``.

        ``html``: a page is what the file is.

        Raises:
            RejectedError: the address is not Slack's, or there is a page instead of the file.
            MessengerError: as `call`.
        """
        if not self._is_slack(url):
            raise RejectedError("address_elsewhere")
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
                judge(response.status, response.headers.get("Retry-After", ""), "")
                # Without the scope Slack sends its sign-in page.
                if response.content_type == "text/html" and not html:
                    raise RejectedError("no_permission")
                found = bytearray()
                async for chunk in response.content.iter_chunked(1 << 16):
                    found += chunk
                    if len(found) > most:
                        return None
                return bytes(found)
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            said = f"Slack does not send the file: {type(problem).__name__}"
            raise AwayError(said, uncertain=False) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(
        self, url: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> tuple[int, str, bytes]:
        try:
            async with self._opened().post(
                url, headers=headers, allow_redirects=False, **body
            ) as response:
                raw = await response.read()
                return response.status, response.headers.get("Retry-After", ""), raw
        except aiohttp.ClientConnectorError:
            hint = "check the network and slack.api_url"
            raise AwayError("Slack cannot be reached", uncertain=False, hint=hint) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            said = f"Slack does not answer: {type(problem).__name__}"
            raise AwayError(said, uncertain=True) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _is_slack(self, url: str) -> bool:
        """Return whether an address is Slack's, or where its API was said to be."""
        try:
            asked, api = urlsplit(url), urlsplit(self._base_url)
            host, port = asked.hostname or "", asked.port
        except ValueError:
            return False
        if (asked.scheme, asked.netloc) == (api.scheme, api.netloc):
            return True
        return asked.scheme == "https" and host.endswith(".slack.com") and port is None


def judge(status: int, retry_after: str, said: str) -> None:
    """Raise what an answer means; return if it is neither trouble nor a refusal by status.

    Raises:
        LimitedError, AwayError, RejectedError: see `bot.delivery.messenger`.
    """
    if status == 429 or said in _LIMITED:
        raise LimitedError(_seconds(retry_after))
    if status >= 500 or said in _PASSING:
        raise AwayError(f"Slack answers {said or status}", uncertain=True)
    if said in NOT_LET_IN:
        hint = "check slack.bot_token and the scopes of the app"
        message = f"Slack does not let us in: {said}"
        raise AwayError(message, uncertain=False, hint=hint, code=said)
    if status >= 300:
        raise RejectedError(said or f"status_{status}")


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.5), _LONGEST_WAIT_S)
    except ValueError:
        return 1.0


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def _as_form(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
