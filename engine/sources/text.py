"""Making text from outside fit to be shown: one line, no control characters, bounded."""

from __future__ import annotations

import re

# C0 and C1 controls, line and paragraph separators, and the marks that reorder text on a screen.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def show(text: str | bytes, limit: int = 120) -> str:
    """Return untrusted text as a single harmless line of at most ``limit`` characters."""
    if isinstance(text, bytes):
        text = text[: 4 * limit + 4].decode("utf-8", "replace")
    line = " ".join(_UNSAFE.sub(" ", text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def looks_like_html(body: bytes) -> bool:
    """Tell whether an answer or a file is a web page (a sign-in page, a wrong path)."""
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def some(names: list[str] | tuple[str, ...], limit: int = 3) -> str:
    """Return ``a, b, c and 4 more`` for a list that may be long."""
    shown = ", ".join(show(name, 80) for name in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown
