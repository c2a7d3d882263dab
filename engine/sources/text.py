"""Making text from outside fit to be shown: one line, no control characters, bounded."""

from __future__ import annotations


def show(text: str | bytes, limit: int = 120) -> str:
    """Return untrusted text as a single harmless line of at most ``limit`` characters."""
    # Enough to fill the line even if much of it is white space; then no more work than that.
    start = text[: 8 * limit]
    if isinstance(start, bytes):
        start = start.decode("utf-8", "replace")
    # Not printable are controls, line separators, and the marks that reorder or hide text.
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def start_of(body: bytes) -> str:
    """Return the start of an answer as text: more than is ever shown of it."""
    return body[:4096].decode("utf-8", "replace")


def looks_like_html(body: bytes) -> bool:
    """Tell whether an answer or a file is a web page (a sign-in page, a wrong path)."""
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def looks_binary(body: bytes) -> bool:
    """Tell whether an answer is no text: packed, in UTF-16, or noise."""
    start = body[:512]
    return b"\0" in start or start.decode("utf-8", "replace").count("\ufffd") > len(start) // 16


def not_told(body: bytes) -> str:
    """Return what an answer is that is not shown: empty or binary; nothing for a text."""
    if not body.strip():
        return "nothing"
    if body.startswith(b"\x1f\x8b"):
        return "packed data (gzip) that it does not call packed"
    return "binary data" if looks_binary(body) else ""


def some(names: list[str] | tuple[str, ...], limit: int = 3) -> str:
    """Return ``a, b, c and 4 more`` for a list that may be long."""
    shown = ", ".join(show(name, 80) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
