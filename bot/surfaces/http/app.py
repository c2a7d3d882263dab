"""The one HTTP application of the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from bot.policy import Policy
from bot.readiness import Readiness
from bot.service import Service
from bot.surfaces.http.api import MAX_BODY, add_api
from bot.surfaces.http.auth import TokenBook
from bot.surfaces.http.captures import Links, add_captures
from bot.surfaces.http.errors import guard
from bot.surfaces.http.health import add_health
from bot.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Site:
    """What the pages are made of.

    Attributes:
        service: answers questions.
        policy: says who may fetch captured files.
        readiness: says whether the server can answer.
        telemetry: the server's metrics.
        tokens: the API tokens.
        captures: folder of captured files.
        links: links to them.
        clock: Unix seconds.
    """

    service: Service
    policy: Policy
    readiness: Readiness
    telemetry: Telemetry
    tokens: TokenBook
    captures: Path
    links: Links
    clock: Callable[[], float]


def make_app(site: Site) -> web.Application:
    """Return the application; Slack's own path is added by whoever connects Slack."""
    app = web.Application(middlewares=[guard(site.telemetry)], client_max_size=MAX_BODY)
    add_health(app, site.readiness, site.telemetry)
    add_api(app, site.service, site.tokens)
    add_captures(
        app,
        site.captures,
        links=site.links,
        tokens=site.tokens,
        policy=site.policy,
        clock=site.clock,
    )
    return app
