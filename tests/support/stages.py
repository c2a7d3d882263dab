"""A fleet whose state a test chooses: several real Prometheus servers behind one address.

Each holds the readings of the last twenty minutes and the next ten, so that a test that takes a
while does not look at readings that have gone stale.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web

from engine.simulate import Fault, Fleet
from tests.support.servers import load_openmetrics, start_prometheus

_BEFORE_S, _AFTER_S, _SINCE_S = 1500.0, 600.0, 1800.0
DOWN, HANGS = "down", "hangs"


@contextlib.contextmanager
def scenes(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a Prometheus for each state and yield their addresses.

    ``sick``: node-1 is held by a power brake, the clocks of node-0:1 are locked. ``worse``: its GPU 3
    has fallen off the bus too. ``healthy``: nothing. ``silent``: sick, until ten minutes ago.
    ``empty``: no readings.
    """
    now = time.time()
    brake = Fault("power_brake", "node-1", now - _SINCE_S, 1.0)
    locked = Fault("clocks_locked", "node-0:1", now - _SINCE_S, 0.7)
    bus = Fault("gpu_off_bus", "node-0:3", now - 420.0, 1.0)
    faults = {
        "sick": (brake, locked),
        "worse": (brake, locked, bus),
        "healthy": (),
        "silent": (brake, locked),
    }
    with contextlib.ExitStack() as stack:
        found = {"empty": stack.enter_context(start_prometheus(folder / "empty")).url}
        for name, planted in faults.items():
            fleet = Fleet(nodes=2, gpus=4, start=now - 3600.0, faults=planted)
            end = now - 600.0 if name == "silent" else now + _AFTER_S
            text = "".join(fleet.openmetrics(now - _BEFORE_S, end, 15.0))
            load_openmetrics(text, folder / name)
            found[name] = stack.enter_context(start_prometheus(folder / name)).url
        yield found


class Stage:
    """One address behind which a test shows one scene after another; use as ``async with``.

    Args:
        addresses: of the scenes.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self.scene = "healthy"
        self.sweeps = 0
        self.url = ""

    def show(self, scene: str) -> None:
        """Show a scene from now on; also `DOWN` (503) and `HANGS` (no answer)."""
        self.scene = scene

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = "http://{}:{}".format(*self._runner.addresses[0][:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass_on(self, request: web.Request) -> web.Response:
        if self.scene == HANGS:
            await asyncio.sleep(3600)
        if self.scene == DOWN:
            return web.Response(status=503, text="down")
        url = f"{self._addresses[self.scene]}/{request.match_info['path']}"
        kept = {
            name: value
            for name, value in request.headers.items()
            if name.lower() in {"content-type", "accept", "date"}
        }
        async with self._session.request(
            request.method, url, data=await request.read(), params=request.query, headers=kept
        ) as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            body = await answer.read()
        return web.Response(status=answer.status, body=body, headers={"Content-Type": kind})
