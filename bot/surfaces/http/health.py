"""``/healthz`` (the process lives), ``/readyz`` (it can answer) and ``/metrics``."""

from __future__ import annotations

from aiohttp import web

from bot.readiness import Readiness
from bot.render import json
from bot.telemetry import CONTENT_TYPE, Telemetry


def add_health(app: web.Application, readiness: Readiness, telemetry: Telemetry) -> None:
    """Add the pages that machines look at; they need no token and tell no names."""

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        states = await readiness.states()
        ok = all(state.ok for state in states) and not readiness.draining
        document = {
            "ready": ok,
            "draining": readiness.draining,
            # The reason is in the log and in `serve --check`: here it would tell addresses.
            "checks": {state.name: state.error.code if state.error else "ok" for state in states},
        }
        return web.Response(
            text=json.dump(document), status=200 if ok else 503, content_type="application/json"
        )

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=telemetry.text(), headers={"Content-Type": CONTENT_TYPE})

    app.router.add_get("/healthz", alive)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/metrics", metrics)
