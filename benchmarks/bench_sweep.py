"""``sweep``: of the demonstration fleet (64 GPUs), and of 10,000 GPUs in a Prometheus.

The large one is a fleet of 400,000 series, a sample a minute. Its peer are the queries that it
sends, sent once more one by one and thrown away: so much a server takes whoever asks. Loading the
fleet takes some minutes and 3 GB of disk; ``GPUWHY_BENCH_NODES`` makes it smaller.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from benchmarks import bigfleet
from benchmarks.harness import Row, medians_async, ms
from benchmarks.sweeper import Swept, swept
from bot.demo.prometheus import serving
from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.model import Incident
from engine.simulate import DEMO_SPAN_S, demo_fleet
from engine.sources import FileSource, PrometheusConfig, PrometheusSource

ROUNDS = 5
# Wall time over the sum of the bare queries, CPU time of the engine over that of the server, and
# the largest resident set of the engine's process (bytes).
MOST_OVERHEAD = 1.3
MOST_CPU = 0.1
MOST_MEMORY = 200_000_000
_NODES = int(os.environ.get("GPUWHY_BENCH_NODES", "1250"))
_LARGE_ROUNDS = 3
_TIMEOUT_S = 600.0


def rows() -> list[Row]:
    """Measure both, and make sure that they find the same."""
    return [*asyncio.run(_rows()), *asyncio.run(_large())]


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


async def _large() -> list[Row]:
    async with serving(bigfleet.history(_NODES)) as url:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            seconds, bare = [], []
            for _ in range(_LARGE_ROUNDS):
                before = await _cpu(session, url)
                found = await asyncio.to_thread(swept, url, bigfleet.at())
                server_cpu = await _cpu(session, url) - before
                _check(found)
                seconds.append(found.seconds)
                took = [await _bare(session, url, query, end) for query, end in found.asked]
                bare.append(sum(took))
    # The best of each: what else runs on the machine strikes one or the other.
    wall, floor = min(seconds), min(bare)
    overhead, share = wall / floor, found.cpu / server_cpu
    fleet = f"sweep of {found.gpus:,} GPUs, {len(found.asked)} queries"
    return [
        Row(
            f"{fleet}: wall time",
            f"{wall:.1f} s",
            f"{floor:.1f} s bare",
            f"{overhead:.2f} x",
            f"{MOST_OVERHEAD} x",
            overhead <= MOST_OVERHEAD,
        ),
        Row(
            f"{fleet}: CPU time",
            f"{found.cpu:.2f} s",
            f"{server_cpu:.1f} s server",
            f"{share:.3f} x",
            f"{MOST_CPU} x",
            share <= MOST_CPU,
        ),
        Row(
            f"{fleet}: memory",
            f"{found.memory / 1e6:.0f} MB",
            target=f"{MOST_MEMORY / 1e6:.0f} MB",
            met=found.memory <= MOST_MEMORY,
        ),
    ]


async def _cpu(session: aiohttp.ClientSession, url: str) -> float:
    """Return the CPU time (s) that a Prometheus has used, as it tells itself."""
    async with session.get(f"{url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    name = "process_cpu_seconds_total "
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


async def _bare(session: aiohttp.ClientSession, url: str, query: str, end_ms: int) -> float:
    """Send a query, read the answer, and return how long that took (s)."""
    began = time.perf_counter()
    form = {"query": query, "time": f"{end_ms / 1000:.3f}"}
    async with session.post(f"{url}/api/v1/query", data=form) as answer:
        await answer.read()
    return time.perf_counter() - began


def _check(found: Swept) -> None:
    """Make sure that the sweep saw everybody, and complained of the sick nodes only."""
    well = set(found.nodes) - set(bigfleet.sick(_NODES))
    if found.gpus != _NODES * bigfleet.GPUS or well or not found.nodes:
        message = f"{found.gpus} GPUs judged, incidents on {found.nodes}: {found.warnings}"
        raise RuntimeError(message)
