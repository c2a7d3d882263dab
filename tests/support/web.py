"""Small HTTP servers that misbehave on purpose, and record what they were sent."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A running server and the requests it got: (method, path, form or query, headers)."""

    url: str
    seen: list[tuple[str, str, dict[str, str], dict[str, str]]] = field(default_factory=list)


@contextlib.asynccontextmanager
async def serve(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    """Serve every path with one handler on a free loopback port."""
    site = Site("")

    async def recording(request: web.Request) -> web.StreamResponse:
        form = await request.post() if request.method == "POST" else request.query
        site.seen.append(
            (
                request.method,
                request.path,
                {k: str(v) for k, v in form.items()},
                dict(request.headers),
            )
        )
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", recording)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await listener.start()
        port = runner.addresses[0][1]
        site.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield site
    finally:
        await runner.cleanup()


def answers(
    body: str | bytes, *, status: int = 200, headers: dict[str, str] | None = None
) -> Handler:
    """Return a handler that always gives the same answer."""
    raw = body.encode() if isinstance(body, str) else body

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=raw, status=status, headers=headers)

    return handler
