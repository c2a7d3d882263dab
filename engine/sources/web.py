"""HTTP as all sources use it: credentials, TLS, limits, redirects, and errors in one line."""

from __future__ import annotations

import base64
import email.utils
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from yarl import URL

from engine.errors import InputError, SourceError, UsageError
from engine.sources.text import show
from engine.sources.weberrors import explain, hung_up, too_large

MAX_BODY = 512 << 20
_CONNECTIONS = 16
_REDIRECTS = 3
_CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """How to reach a server. What may hold secrets is left out of ``repr``.

    Attributes:
        bearer_token: sent as ``Authorization: Bearer …``.
        username, password: sent as basic authentication.
        cert, key: PEM files of the client certificate (mTLS); the key may stand in ``cert``.
        ca: PEM file of the authorities to trust instead of the system's.
        headers: sent with every request, for example ``X-Scope-OrgID``.
        timeout_s: the longest one request may take, from connecting to the last byte (s).
        verify: False accepts any server certificate.
    """

    bearer_token: str | None = field(default=None, repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    cert: str | None = None
    key: str | None = None
    ca: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    verify: bool = True

    def __post_init__(self) -> None:
        """Refuse what could never be sent."""
        if self.bearer_token and self.username is not None:
            raise UsageError("both a bearer token and a user name are given", hint="give one")
        if not self.timeout_s > 0:
            raise UsageError("the time-out must be more than 0 seconds")
        for key, value in self.request_headers().items():
            if not key.isascii() or not key.replace("-", "").replace("_", "").isalnum():
                raise UsageError(f"'{show(key, 40)}' is no HTTP header name")
            if any(c in "\r\n\0" for c in value):
                raise UsageError(
                    f"the value of header {key} has a line break in it",
                    hint="check the file or variable it comes from",
                )

    def request_headers(self) -> dict[str, str]:
        """Return the headers of every request, credentials included."""
        headers = dict(self.headers)
        if self.bearer_token:
            headers["Authorization"] = f"Bearer {self.bearer_token.strip()}"
        elif self.username is not None:
            pair = f"{self.username}:{self.password or ''}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return headers

    def secrets(self) -> list[str]:
        """Return every text that no message may show."""
        headers = self.request_headers().values()
        given = [self.password, *headers, *(value.rpartition(" ")[2] for value in headers)]
        # Longest first, so that no part of a longer one is left; short words hide no secret.
        return sorted({s for s in given if s and len(s) > 3}, key=len, reverse=True)

    def tls(self) -> ssl.SSLContext:
        """Build the TLS settings.

        Raises:
            InputError: a certificate or key file cannot be used.
        """
        for path in (self.ca, self.cert, self.key):
            if path and not Path(path).is_file():
                raise InputError(f"{show(path, 200)}: no such certificate or key file")
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (ssl.SSLError, OSError) as e:
            raise InputError(f"{show(self.ca or '', 200)} holds no usable CA certificates") from e
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert:
            try:
                # An empty password: an encrypted key is an error, not a question on the terminal.
                context.load_cert_chain(self.cert, self.key, password=lambda: "")
            except (ssl.SSLError, OSError, ValueError) as e:
                raise InputError(
                    f"client certificate {show(self.cert, 200)} and key "
                    f"{show(self.key or self.cert, 200)} cannot be used",
                    hint="both must be PEM, belong together, and the key must not be encrypted",
                ) from e
        elif self.key:
            raise UsageError("a client key is given without its certificate")
        return context


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, read whole. ``date`` is the server's clock (Unix s), None if not told."""

    status: int
    body: bytes
    date: float | None


def parse_url(text: str, default_path: str = "") -> tuple[URL, str | None, str | None]:
    """Read a server's address.

    Args:
        text: ``http://host:port/prefix``; the scheme may be left out.
        default_path: used if the address has no path.

    Returns:
        The address without user information, and the user name and password it held.

    Raises:
        UsageError: it is no HTTP address. The message does not repeat credentials.
    """
    given = text.strip()
    bare = given.rpartition("@")[2] if "@" in given.partition("?")[0] else given.partition("?")[0]
    try:
        url = URL(given if "://" in given else f"http://{given}")
        port = url.port
    except ValueError as e:
        raise UsageError(f"'{show(bare)}' is not an address", hint="write http://HOST:PORT") from e
    if url.scheme not in {"http", "https"} or not url.host or not port:
        raise UsageError(f"'{show(bare)}' is not an HTTP address", hint="write http://HOST:PORT")
    if url.query_string or url.fragment:
        raise UsageError(
            f"the address of {url.host} has something after ? or #",
            hint="give the bare address; tokens go into headers",
        )
    user, password = url.user, url.password
    url = url.with_user(None).with_path(url.path.rstrip("/") or default_path)
    return url, user, password


def shown_url(url: URL) -> str:
    """Return an address fit for messages: no user, no query, no trailing slash."""
    return show(str(url.with_user(None).with_query(None).with_fragment(None)).rstrip("/"), 200)


class WebClient:
    """One pool of connections; made inside the running loop at the first request.

    Attributes:
        sent: requests sent so far, redirects and repeats included.
    """

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self.sent = 0
        self._secrets = options.secrets()
        self._session: aiohttp.ClientSession | None = None

    def redact(self, text: str) -> str:
        """Return text from a server without any secret of ours it may repeat."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

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
            SourceError: no answer, a redirect elsewhere, or one larger than 512 MB.
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
                    data=form if method == "POST" else None,
                    params=form if method == "GET" else None,
                    headers={"Accept": accept, "Accept-Encoding": _encoding(url)},
                    allow_redirects=False,
                ) as response:
                    location = None
                    if response.status in {301, 302, 303, 307, 308}:
                        location = response.headers.get("Location")
                    body = await _body(response, where)
                    reply = Reply(response.status, body, _date(response.headers.get("Date")))
                    return reply, location
            except (aiohttp.ClientError, TimeoutError, OSError) as e:
                # A kept connection may have been closed by the server in the meantime. These
                # queries change nothing, so asking once more is safe.
                if repeated or not hung_up(e):
                    raise explain(e, where, self.options.timeout_s) from e
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
        except ValueError:
            target = URL()
        same_host = target.host == url.host and (
            target.port == url.port or (url.scheme, target.scheme) == ("http", "https")
        )
        if not same_host or (url.scheme, target.scheme) == ("https", "http"):
            raise SourceError(
                f"{shown_url(url)} redirects to {shown_url(target) or 'nowhere'}",
                hint="not followed, to keep credentials from another host; "
                "if that is where metrics are, give that URL",
                code="source_redirect",
            )
        # Our query is sent again with the form; what the server repeats of it would double it.
        return target.with_query(None) if has_query else target


async def _body(response: aiohttp.ClientResponse, where: str) -> bytes:
    if (response.content_length or 0) > MAX_BODY:
        raise too_large(where, MAX_BODY)
    pieces = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)  # after decompression
        if size > MAX_BODY:
            raise too_large(where, MAX_BODY)
        pieces.append(piece)
    return b"".join(pieces)


def _encoding(url: URL) -> str:
    """Ask for gzip over a network; on the same machine packing costs more than it saves."""
    host = url.host or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    return "identity" if local else "gzip"


def _date(text: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, OverflowError):
        return None
