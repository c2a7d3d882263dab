"""HTTP as all sources use it: one pool, limits, redirects, and errors in one line."""

from __future__ import annotations

import email.utils
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
from yarl import URL

from engine.errors import SourceError
from engine.redact import redact
from engine.sources.httpoptions import HttpOptions, shown_url
from engine.sources.text import show
from engine.sources.weberrors import explain, hung_up, too_large

# Raw samples need so much: a sample is about 25 bytes of JSON, so ten metrics of 2,000 GPUs over
# 15 minutes, scraped every 5 s, are 90 MB in one answer; 512 MB leaves room for the largest fleets.
# Sources whose answers are small give a bound of their own.
MAX_BODY = 512 << 20
_CONNECTIONS = 16
_REDIRECTS = 3
_CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, read whole. ``date`` is the server's clock (Unix s), None if not told."""

    status: int
    body: bytes
    date: float | None


class WebClient:
    """One pool of connections; made inside the running loop at the first request.

    Attributes:
        sent: requests sent so far, redirects and repeats included.
    """

    def __init__(
        self, options: HttpOptions, *, max_body: int | None = None, too_large_hint: str = ""
    ) -> None:
        """Nothing is connected yet.

        Args:
            options: how to reach the servers.
            max_body: the most bytes of an answer, unpacked; `MAX_BODY` if not given.
            too_large_hint: what to do about a larger one.
        """
        self.options = options
        self._max_body = max_body
        self._too_large_hint = too_large_hint
        self.sent = 0
        self._secrets = options.secrets()
        self._session: aiohttp.ClientSession | None = None

    def redact(self, text: str) -> str:
        """Return text from a server without secrets: ours, which it may repeat, and others."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return redact(text)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        url: URL,
        *,
        form: Mapping[str, str] | None = None,
        accept: str = "application/json",
        where: str = "",
    ) -> Reply:
        """Send a request and read the answer, whatever its status.

        Args:
            method: ``GET`` or ``POST``.
            url: the address.
            form: the query; a body for POST, part of the address for GET.
            accept: the media types wanted.
            where: what messages call the server, if not the address.

        A redirect is followed only on the same host and never from https to http, so that
        credentials stay where they were meant for.

        Raises:
            SourceError: no answer, a redirect elsewhere, or one beyond the size limit.
        """
        for _ in range(_REDIRECTS + 1):
            reply, location = await self._send(method, url, form, accept, where or shown_url(url))
            if location is None:
                return reply
            url = self._follow(url, location, has_query=form is not None and method == "GET")
        raise SourceError(
            f"{shown_url(url)} redirects in circles", code="source_redirect", hint="check the URL"
        )

    async def _send(
        self, method: str, url: URL, form: Mapping[str, str] | None, accept: str, where: str
    ) -> tuple[Reply, str | None]:
        repeated = False
        while True:
            self.sent += 1
            try:
                async with self._open().request(
                    method,
                    url,
                    data=_encoded(form) if form and method == "POST" else None,
                    params=form if method == "GET" else None,
                    headers={
                        "Accept": accept,
                        "Accept-Encoding": _encoding(url),
                        **(_FORM if form and method == "POST" else {}),
                    },
                    allow_redirects=False,
                ) as response:
                    location = None
                    if response.status in {301, 302, 303, 307, 308}:
                        location = response.headers.get("Location")
                    body = await self._body(response, where)
                    reply = Reply(response.status, body, _date(response.headers.get("Date")))
                    return reply, location
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as e:
                # A kept connection may have been closed by the server in the meantime. These
                # queries change nothing, so asking once more is safe.
                if repeated or not hung_up(e):
                    raise explain(e, where, self.options, self.redact) from e
                repeated = True

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=self.options.tls()),
                headers={"User-Agent": "gpuwhy", **self.options.request_headers()},
                timeout=aiohttp.ClientTimeout(
                    total=self.options.timeout_s,
                    sock_connect=min(_CONNECT_TIMEOUT_S, self.options.timeout_s),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=1 << 20,
            )
        return self._session

    def _follow(self, url: URL, location: str, *, has_query: bool) -> URL:
        try:
            target = url.join(URL(location))
            web = target.scheme in {"http", "https"} and bool(target.host)
            shown = shown_url(target) if web else ""
        except ValueError:
            target, web, shown = URL(), False, ""
        same_host = target.host == url.host and (
            target.port == url.port or (url.scheme, target.scheme) == ("http", "https")
        )
        if not web or not same_host or (url.scheme, target.scheme) == ("https", "http"):
            # What is no web address is shown by its start only: it may hold anything.
            other = show(self.redact(location.partition("?")[0]), 60)
            raise SourceError(
                f"{shown_url(url)} redirects to {shown or other or 'nowhere'}",
                hint="not followed, to keep credentials from another host; "
                "if that is where metrics are, give that URL",
                code="source_redirect",
            )
        # Our query is sent again with the form; what the server repeats of it would double it.
        return target.with_query(None) if has_query else target

    async def _body(self, response: aiohttp.ClientResponse, where: str) -> bytes:
        limit = MAX_BODY if self._max_body is None else self._max_body
        if (response.content_length or 0) > limit:
            raise too_large(where, limit, self._too_large_hint)
        pieces = []
        size = 0
        # Pieces are unpacked as they are read, each of them bounded: a small answer that unpacks
        # to a large one is given up as soon as it is beyond the limit.
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > limit:
                raise too_large(where, limit, self._too_large_hint)
            pieces.append(piece)
        return b"".join(pieces)


_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_SAFE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-"


def _encoded(form: Mapping[str, str]) -> bytes:
    """Return a form as a body; `urllib.parse` takes a long query apart letter by letter."""
    return b"&".join(key.encode() + b"=" + _quoted(value.encode()) for key, value in form.items())


def _quoted(text: bytes) -> bytes:
    """Percent-encode all but letters, digits and ``_.~-``, a character at a time."""
    unsafe = set(text.translate(None, _SAFE))
    # The percent sign first: what is put in for the others has one itself.
    for byte in sorted(unsafe, key=lambda byte: byte != ord("%")):
        text = text.replace(bytes([byte]), b"%%%02X" % byte)
    return text


def _encoding(url: URL) -> str:
    """Ask for gzip over a network; on the same machine packing costs more than it saves."""
    host = url.host or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    return "identity" if local else "gzip"


# All answers of a wave have the same.
@lru_cache(maxsize=16)
def _date(text: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, OverflowError):
        return None
