"""Captured files: ``/captures/ID/FILE``, for API tokens and for links that were given out.

A link in a Slack thread is opened by a browser, which has no token: it carries its own end and a
signature. Whoever has the link can read that one file until then.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from bot.policy import Policy
from bot.request import Request
from bot.surfaces.http.auth import TokenBook, UnauthorizedError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_KEY_BYTES = 32
LINK_LIFE_S = 7 * 86400.0


class Links:
    """Makes and checks links to captured files.

    Args:
        base: address under which people reach the server.
        key: secret of this server.
    """

    def __init__(self, base: str, key: bytes) -> None:
        self._base = base.rstrip("/")
        self._key = key

    def link(self, capture: str, file: str, *, now: float) -> str:
        """Return an address that works for a week from ``now`` (Unix seconds)."""
        end = int(now + LINK_LIFE_S)
        path = f"/captures/{quote(capture)}/{quote(file)}"
        return f"{self._base}{path}?end={end}&signature={self._signature(capture, file, end)}"

    def holds(self, capture: str, file: str, end: str, signature: str, *, now: float) -> bool:
        """Return whether a link was made here and has not ended."""
        if not end.isascii() or not end.isdigit() or len(end) > 12 or int(end) < now:
            return False
        right = self._signature(capture, file, int(end))
        return hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogateescape"))

    def _signature(self, capture: str, file: str, end: int) -> str:
        text = f"{capture}\n{file}\n{end}".encode()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()


def link_key(folder: Path) -> bytes:
    """Return the key of this server's links, made at the first start; only we can read it.

    Raises:
        OSError: the folder cannot be written.
    """
    file = folder / "links.key"
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_bytes()
    with os.fdopen(handle, "wb") as stream:
        key = secrets.token_bytes(_KEY_BYTES)
        stream.write(key)
    return key


def add_captures(
    app: web.Application,
    folder: Path,
    *,
    links: Links,
    tokens: TokenBook,
    policy: Policy,
    clock: Callable[[], float],
) -> None:
    """Add the captured files in a folder (one folder a capture) to an application."""

    async def send(request: web.Request) -> web.StreamResponse:
        capture, file = request.match_info["capture"], request.match_info["file"]
        asked = request.query
        end, signature = asked.get("end", ""), asked.get("signature", "")
        if signature and not links.holds(capture, file, end, signature, now=clock()):
            raise UnauthorizedError("this link has ended", hint="ask for the capture again")
        if not signature:
            policy.check(tokens.actor(request), Request("capture", {}))
        path = await asyncio.to_thread(_existing, folder, capture, file)
        headers = {
            "Content-Disposition": f'attachment; filename="{file}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private",
        }
        return web.FileResponse(path, headers=headers)

    app.router.add_get("/captures/{capture}/{file}", send)


def _existing(folder: Path, capture: str, file: str) -> Path:
    if not _ID.fullmatch(capture) or not _FILE.fullmatch(file):
        raise web.HTTPNotFound
    path = folder / capture / file
    if path.is_symlink() or not path.is_file():
        raise web.HTTPNotFound
    return path
