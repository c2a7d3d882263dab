"""How to reach a server: address, credentials, TLS, time-out."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from yarl import URL

from engine.errors import InputError, UsageError
from engine.sources.text import show


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
        slow_hint: what to do about a server that does not answer in time.
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
    slow_hint: str = "raise the time-out, or ask about less"

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
        (url.host or "").encode("idna")  # what looking the name up begins with
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
