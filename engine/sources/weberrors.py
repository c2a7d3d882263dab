"""What went wrong on the way to a server, in one line that says what to do."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from engine.errors import SourceError
from engine.sources.httpoptions import HttpOptions
from engine.sources.text import looks_like_html, show

CREDENTIALS = (
    "give credentials: a bearer token, user name and password, or a client certificate; "
    "some servers also want a tenant header"
)


def too_large(where: str, limit: int, hint: str = "") -> SourceError:
    """Return the error for an answer beyond the size limit (bytes)."""
    return SourceError(
        f"{where} answers with more than {limit >> 20} MB",
        hint=hint or "ask about fewer entities, or a shorter --window",
        code="source_too_large",
    )


def hung_up(error: Exception) -> bool:
    """Tell whether the server closed an open connection instead of answering."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return True
    return isinstance(error, OSError) and error.errno in {errno.ECONNRESET, errno.EPIPE}


def explain(
    error: Exception, where: str, options: HttpOptions, redact: Callable[[str], str]
) -> SourceError:
    """Return the error for a request that got no whole answer.

    Args:
        error: what aiohttp raised.
        where: the address, without secrets.
        options: how long was waited at most, and what can be done about it.
        redact: takes secrets out of what the server sent.
    """
    tls = _tls_error(error)
    if tls is not None:
        return _tls(tls, where)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return SourceError(
            f"{where} cannot be reached: no connection in time",
            hint="check host, port and firewall",
            code="source_unreachable",
        )
    if isinstance(error, TimeoutError):
        return SourceError(
            f"{where} did not answer within {options.timeout_s:g} s",
            hint=options.slow_hint,
            code="source_timeout",
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return SourceError(
            f"{where} cannot be reached: the host name is not known", hint="check the URL"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        why = error.os_error.strerror or str(error.os_error)
        why = "connection refused" if isinstance(error.os_error, ConnectionRefusedError) else why
        return SourceError(
            f"{where} cannot be reached: {show(why)}", hint="check that it runs, host and port"
        )
    if isinstance(error, aiohttp.ServerDisconnectedError | OSError):
        return SourceError(
            f"{where} closed the connection without an answer",
            hint="it may want a client certificate: give a certificate and its key"
            if where.startswith("https:")
            else "check that it is a metrics server; it may want https://",
        )
    if _unpacking(error):
        return SourceError(
            f"{where} packs its answer in another way than it says or was asked for "
            "(Content-Encoding)",
            hint="ask the server itself, or see what a proxy in between does to its answers",
            code="source_bad_answer",
        )
    if isinstance(error, aiohttp.ClientPayloadError):
        return SourceError(
            f"{where} broke off in the middle of an answer",
            hint="try again; look into the server's or the proxy's log",
            code="source_bad_answer",
        )
    # What the library says of a malformed answer are its own words, and parts of the answer.
    raw = isinstance(error, aiohttp.ClientResponseError)
    said = "" if raw else f": {show(redact(str(error)))}"
    return SourceError(
        f"{where} does not answer in HTTP{said}",
        hint="check the URL: scheme, host and port",
        code="source_bad_answer",
    )


def _unpacking(error: BaseException) -> bool:
    """Tell whether an answer could not be unpacked."""
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            return False
        if isinstance(seen, ContentEncodingError) or "content-encoding" in str(seen).lower():
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Find the TLS error behind one of aiohttp's."""
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            return None
        inside = (getattr(seen, "os_error", None), getattr(seen, "certificate_error", None))
        for inner in (*inside, seen):
            if isinstance(inner, ssl.SSLError):
                return inner
        seen = seen.__cause__ or seen.__context__
    return None


def _tls(error: ssl.SSLError, where: str) -> SourceError:
    reason = (error.reason or "").replace("_", " ").lower()
    if isinstance(error, ssl.SSLCertVerificationError):
        what, hint = f"its certificate is not trusted: {error.verify_message}", "name its CA file"
        if "hostname" in error.verify_message.lower() or "IP address" in error.verify_message:
            hint = "use the name in the certificate"
    elif "wrong version number" in reason or "record layer failure" in reason:
        what, hint = "it does not speak TLS on this port", "use http://, or the TLS port"
    elif "certificate required" in reason or "handshake failure" in reason:
        what, hint = "it wants a client certificate", "give a certificate and its key"
    elif "alert" in reason:
        what, hint = f"it refuses ({reason})", "check the client certificate and who signed it"
    else:
        what, hint = reason or "handshake failed", "check certificates and TLS versions"
    return SourceError(f"TLS with {where} fails: {show(what)}", hint=hint, code="source_tls")


def bad_status(where: str, status: int, text: str, *, not_found_hint: str) -> SourceError:
    """Return the error for an HTTP status that is not 2xx.

    Args:
        where: the address, without secrets.
        status: the HTTP status.
        text: what the server says about it, secrets removed; may be empty.
        not_found_hint: what to do about a 404.
    """
    said = f": {show(text)}" if text and not looks_like_html(text.encode()) else ""
    if status in {401, 403, 407}:
        message = f"{where} refuses access (HTTP {status}){said}"
        return SourceError(message, hint=CREDENTIALS, code="source_denied")
    if status == 404:
        message = f"{where} does not know this path (HTTP 404){said}"
        return SourceError(message, hint=not_found_hint, code="source_bad_answer")
    if status in {413, 422}:
        message = f"{where} cannot answer so large a query (HTTP {status}){said}"
        return SourceError(message, hint="ask about less at once", code="source_limit")
    hint = "the server has a problem; look into its log" if status >= 500 else ""
    if status == 429:
        hint = "too many requests; wait and try again"
    if status == 503:
        hint = "the server is not ready or overloaded; try again"
    return SourceError(f"{where} answers HTTP {status}{said}", hint=hint, code="source_bad_answer")
