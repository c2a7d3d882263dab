"""A listener per node, so that a real Prometheus (or ``--scrape``) can read the fleet.

`serve_fleet` serves anything that answers like exporters do: a `Fleet`, or text that a real
exporter once printed (`Recorded`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from engine.errors import GpuwhyError, SourceError, UsageError

Clock = Callable[[], float]
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Scrapeable(Protocol):
    """Exporters of some nodes."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Host names."""

    def exposition(self, node: str, t: float) -> str:
        """Return what the node's exporter answers at time t. Raises `SourceError` if down."""

    def node_exposition(self, node: str, t: float) -> str:
        """Return what the node's node_exporter answers at time t. Raises `SourceError`."""


class Recorded:
    """Exporter output recorded elsewhere, served as it is at any time."""

    def __init__(self, text: str | Mapping[str, str]) -> None:
        """Take one text, served as node ``recorded``, or a text per node.

        Raises:
            UsageError: nothing was given.
        """
        self._texts = {"recorded": text} if isinstance(text, str) else dict(text)
        if not any(self._texts.values()):
            message = "no recorded exporter output to serve"
            raise UsageError(message, hint="give the text of a /metrics page")

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the recorded nodes."""
        return tuple(self._texts)

    def exposition(self, node: str, t: float) -> str:
        """Return the recorded text; the time does not matter."""
        del t
        return self._texts[node]

    def node_exposition(self, node: str, t: float) -> str:
        """Nothing was recorded from a node_exporter. Raises `SourceError`."""
        del t
        message = f"no node_exporter output was recorded for {node}"
        raise SourceError(message)


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to scrape: ``url`` for a direct scrape, the rest for a Prometheus configuration.

    ``instance`` is the label the target would have in a real cluster (``node-3:9400``).
    """

    node: str
    job: str
    address: str
    path: str
    instance: str

    @property
    def url(self) -> str:
        """Full URL of the metrics page."""
        return f"http://{self.address}{self.path}"


@dataclass(frozen=True, slots=True)
class Served:
    """A fleet that is being served; ``targets`` holds its exporters, dcgm-exporter ones first."""

    targets: tuple[Target, ...]

    def urls(self, job: str = "dcgm-exporter") -> tuple[str, ...]:
        """Return the metrics URLs of one job, in node order."""
        return tuple(target.url for target in self.targets if target.job == job)


def running_clock(at: float) -> Clock:
    """Return a clock that shows ``at`` now and then goes on at the usual pace."""
    begun = time.monotonic()
    return lambda: at + time.monotonic() - begun


@asynccontextmanager
async def serve_fleet(
    fleet: Scrapeable, host: str = "127.0.0.1", clock: Clock = time.time
) -> AsyncIterator[Served]:
    """Serve every node on a free port of its own while the context lasts.

    ``/metrics`` is the node's dcgm-exporter, ``/node/metrics`` its node_exporter. An exporter that
    is down answers 503, which a scraper records as ``up`` 0.

    Args:
        fleet: what to serve.
        host: address to listen on.
        clock: the moment shown, Unix seconds; the real one by default, `running_clock` to shift.
    """
    runners: list[web.AppRunner] = []
    addresses: dict[str, str] = {}
    try:
        for node in fleet.nodes:
            runner = web.AppRunner(_application(fleet, node, clock), access_log=None)
            runners.append(runner)
            await runner.setup()
            site = web.TCPSite(runner, host, 0)
            await site.start()
            addresses[node] = "{}:{}".format(*runner.addresses[0][:2])
        yield Served(
            tuple(
                Target(node, job, addresses[node], path, f"{node}:{port}")
                for job, path, port in (
                    ("dcgm-exporter", "/metrics", 9400),
                    ("node-exporter", "/node/metrics", 9100),
                )
                for node in fleet.nodes
            )
        )
    finally:
        for runner in runners:
            await runner.cleanup()


def _application(fleet: Scrapeable, node: str, clock: Clock) -> web.Application:
    app = web.Application()
    app.router.add_get("/metrics", _Page(fleet.exposition, node, clock).get)
    app.router.add_get("/node/metrics", _Page(fleet.node_exposition, node, clock).get)
    return app


@dataclass(frozen=True, slots=True)
class _Page:
    """A metrics page: what ``answer`` says about a node at the clock's time."""

    answer: Callable[[str, float], str]
    node: str
    clock: Clock

    async def get(self, request: web.Request) -> web.Response:
        """Answer a scrape."""
        del request
        try:
            text = self.answer(self.node, self.clock())
        except GpuwhyError as error:
            return web.Response(status=503, text=f"{error.one_line()}\n")
        return web.Response(body=text.encode(), headers={"Content-Type": _TEXT})
