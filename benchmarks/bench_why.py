"""``why`` on one GPU against a Prometheus that holds 2,000 GPUs with 40 series each.

The floor is what nobody can go below: the same requests, sent together by bare aiohttp, answers
parsed by orjson, samples as float arrays. What a question sends is learnt by letting it go through
a recording proxy once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain

import aiohttp
import numpy as np
import orjson
from aiohttp import web

from benchmarks.fleets import forty_series, moment
from benchmarks.harness import Row, medians_async, ms
from bot.demo.prometheus import serving
from bot.surfaces.cli.inputs import make_engine
from engine.diagnosis import Engine
from engine.model import Verdict, Why
from engine.simulate import Fault, Fleet
from engine.sources import PrometheusConfig, PrometheusSource

NODES, ROUNDS = 250, 60
TARGET_S, MOST_WAVES = 0.005, 3
HEALTHY, HOT, LOST = "node-21:3", "node-17:3", "node-17:5"

Form = dict[str, str]


def rows() -> list[Row]:
    """Measure a healthy GPU and two sick ones."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    start = Fleet(nodes=1).start + 3600.0
    faults = (
        Fault("thermal_slowdown_hw", HOT, start - 1500.0),
        Fault("ecc_uncorrectable", LOST, start - 420.0),
    )
    fleet = Fleet(nodes=NODES, gpus=8, faults=faults)
    at = moment(fleet)
    asked = sorted({gpu.partition(":")[0] for gpu in (HEALTHY, HOT, LOST)})
    engine = make_engine(())
    out: list[Row] = []
    async with serving(forty_series(fleet, asked)) as url:
        for gpu, sick in ((HEALTHY, False), (HOT, True), (LOST, True)):
            out += await _compare(engine, url, gpu, at, sick=sick)
    return out


async def _compare(engine: Engine, url: str, gpu: str, at: float, *, sick: bool) -> list[Row]:
    forms = await requests_of(engine, url, gpu, at)
    source = PrometheusSource(PrometheusConfig(url))
    try:
        async with bare(url) as ask:
            answer = await engine.why(gpu, source, at=at)
            _check(answer, sick=sick, queries=len(forms))
            ours, floor = await medians_async(
                ROUNDS, lambda: engine.why(gpu, source, at=at), lambda: ask(forms)
            )
    finally:
        await source.aclose()
    what = answer.diagnoses[0].cause if sick else answer.verdict.value
    return [
        Row(
            f"why {gpu} ({what})",
            ms(ours),
            f"{ms(floor)} (same {len(forms)} queries)",
            f"+{ms(ours - floor)}",
            "< floor + 5 ms",
            ours - floor < TARGET_S,
        ),
        Row(
            "  waves of requests",
            str(answer.waves),
            target=f"<= {MOST_WAVES}",
            met=answer.waves <= MOST_WAVES,
        ),
    ]


def _check(answer: Why, *, sick: bool, queries: int) -> None:
    """Make sure that what is measured is a right answer."""
    expected = Verdict.DEGRADED if sick else Verdict.HEALTHY
    if answer.verdict is not expected or answer.queries != queries:
        message = f"why {answer.target.name}: {answer.verdict.value}, {answer.queries} queries"
        raise RuntimeError(message)


async def requests_of(engine: Engine, url: str, gpu: str, at: float) -> list[Form]:
    """Return the forms that one question posts, in order."""
    forms: list[Form] = []

    async def pass_on(request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        forms.append(form)
        async with aiohttp.request("POST", url + request.path, data=form) as answer:
            body = await answer.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/{path:.*}", pass_on)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        source = PrometheusSource(PrometheusConfig(f"http://127.0.0.1:{runner.addresses[0][1]}"))
        await engine.why(gpu, source, at=at)
        await source.aclose()
    finally:
        await runner.cleanup()
    return forms


class _Asker:
    """Bare aiohttp: posts forms together and makes arrays of the answers."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = f"{url}/api/v1/query"

    async def __call__(self, forms: list[Form]) -> list[list[np.ndarray]]:
        return await asyncio.gather(*(self._one(form) for form in forms))

    async def _one(self, form: Form) -> list[np.ndarray]:
        # Packing an answer on the same machine only costs time; the source does not ask for it.
        headers = {"Accept-Encoding": "identity"}
        async with self.session.post(self.url, data=form, headers=headers) as answer:
            body = await answer.read()
        series = orjson.loads(body)["data"]["result"]
        return [
            np.fromiter(map(float, chain.from_iterable(one["values"])), np.float64)
            for one in series
        ]


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[_Asker]:
    async with aiohttp.ClientSession() as session:
        yield _Asker(session, url)
