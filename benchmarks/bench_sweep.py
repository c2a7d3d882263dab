"""``sweep`` of the demonstration fleet (64 GPUs), from a file and from Prometheus: no target."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Row, medians_async, ms
from bot.demo.prometheus import serving
from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.model import Incident
from engine.simulate import DEMO_SPAN_S, demo_fleet
from engine.sources import FileSource, PrometheusConfig, PrometheusSource

ROUNDS = 5


def rows() -> list[Row]:
    """Measure both, and make sure that they find the same."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    fleet = demo_fleet()
    at = fleet.start + DEMO_SPAN_S
    history = list(fleet.openmetrics(at - 900.0, at))
    engine = Engine(load_catalogue())
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.om"
        path.write_text("".join(history), encoding="utf-8")
        async with serving(history) as url:
            server = PrometheusSource(PrometheusConfig(url))

            async def from_file() -> None:
                swept = await engine.sweep(FileSource([path]), at=at)
                found["file"] = _causes(swept.incidents)

            async def from_server() -> None:
                swept = await engine.sweep(server, at=at)
                found["server"] = _causes(swept.incidents)

            try:
                file_s, server_s = await medians_async(ROUNDS, from_file, from_server)
            finally:
                await server.aclose()
        size = path.stat().st_size / 1e6
    if found["file"] != found["server"]:
        message = f"the file and the server give different answers: {found}"
        raise RuntimeError(message)
    gpus = len(fleet.gpus)
    return [
        Row(f"sweep of {gpus} GPUs from a file of {size:.0f} MB", ms(file_s)),
        Row(f"sweep of {gpus} GPUs from Prometheus", ms(server_s)),
    ]


def _causes(incidents: Sequence[Incident]) -> list[str]:
    return [f"{one.diagnosis.cause} on {one.diagnosis.entity.name}" for one in incidents]
