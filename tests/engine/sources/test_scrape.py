"""Exporters read directly: rounds, stamps, instance labels, and exporters that are down."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from engine.errors import SourceError, UsageError
from engine.samples import Batch, Matcher, Selection
from engine.sources import HttpOptions, ScrapeSource, Source
from tests.support.servers import free_port
from tests.support.web import Handler, answers, serve

NAMES = ("energy", "temp", "up")
WAVE = [Selection(NAMES)]


class Clock:
    """Steps ten seconds at every look."""

    def __init__(self) -> None:
        self.now = 1_764_432_000.0 - 10

    def __call__(self) -> float:
        self.now += 10
        return self.now


def counting() -> Handler:
    """An exporter whose counter grows by 100 J at every scrape."""
    state = {"n": 0}

    async def handler(_request: web.Request) -> web.StreamResponse:
        state["n"] += 1
        n = state["n"]
        return web.Response(
            text=f'energy{{gpu="0"}} {100 * n} 5\ntemp{{gpu="0",instance="x:1"}} 40'
        )

    return handler


async def scrape(*urls: str, wave: list[Selection] = WAVE, **options: Any) -> Batch:
    source = ScrapeSource(urls, clock=Clock(), **{"interval_s": 0.0, **options})
    try:
        return await source.select(wave, at=None)
    finally:
        await source.aclose()


async def test_three_rounds_are_stamped_by_their_start() -> None:
    async with serve(counting()) as site:
        batch = await scrape(site.url)
        assert [path for _, path, _, _ in site.seen] == ["/metrics"] * 3
    instance = site.url.removeprefix("http://")
    energy, temp, up = batch.series
    stamps = [1_764_432_000.0, 1_764_432_010.0, 1_764_432_020.0]
    assert (energy.labels, temp.labels) == (
        {"gpu": "0", "instance": instance},
        {"gpu": "0", "instance": "x:1"},
    )
    assert (energy.ts.tolist(), energy.values.tolist()) == (stamps, [100, 200, 300])
    assert (up.labels, up.ts.tolist(), up.values.tolist()) == (
        {"instance": instance},
        stamps,
        [1] * 3,
    )
    assert (batch.at, batch.queries, batch.warnings) == (stamps[-1], 3, [])


async def test_later_questions_are_answered_from_memory() -> None:
    async with serve(counting()) as site:
        source: Source = ScrapeSource([site.url], interval_s=0.0, clock=Clock())
        assert isinstance(source, Source)
        sets, batch = await asyncio.gather(
            source.label_sets(NAMES, ("gpu", "none"), at=None, window_s=60),
            source.select([Selection(("energy",), (Matcher("gpu", "=", "0"),), 10.0)], at=None),
        )
        await source.aclose()
    assert source.queries == len(site.seen) == 3
    assert sets == [{}, {"gpu": "0"}]
    assert [s.values.tolist() for s in batch.series] == [[200, 300]]


async def test_rounds_are_apart_and_can_be_cut_short() -> None:
    progress: list[tuple[int, int]] = []
    async with serve(counting()) as site:
        began = time.monotonic()
        await scrape(
            site.url, times=2, interval_s=0.2, on_progress=lambda d, n: progress.append((d, n))
        )
        assert 0.2 <= time.monotonic() - began < 2
        assert progress == [(1, 2), (2, 2)]
        source = ScrapeSource([site.url], interval_s=60.0)
        asyncio.get_running_loop().call_later(0.1, source.stop)
        batch = await source.select(WAVE, at=None)
        await source.aclose()
    assert batch.queries == 1


async def test_an_exporter_that_is_down_has_up_0() -> None:
    down = f"http://127.0.0.1:{free_port()}/metrics"
    async with serve(counting()) as site:
        batch = await scrape(site.url, down)
    ups = {s.labels["instance"]: s.values.tolist() for s in batch.series if s.name == "up"}
    assert sorted(ups.values()) == [[0, 0, 0], [1, 1, 1]]
    assert batch.warnings == [
        (
            f"3 of 3 scrapes failed: {down} cannot be reached: connection refused; "
            "check that it runs, host and port"
        )
    ]


async def test_an_exporter_that_fails_once() -> None:
    calls: list[int] = []
    count = counting()

    async def flaky(request: web.Request) -> web.StreamResponse:
        calls.append(1)
        return web.Response(status=500, text="boom") if len(calls) == 2 else await count(request)

    async with serve(flaky) as site:
        batch = await scrape(site.url)
    energy, _, up = batch.series
    assert (up.values.tolist(), energy.values.tolist()) == ([1, 0, 1], [100, 200])
    assert "1 of 3 scrapes failed" in batch.warnings[0]


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (
            answers("<html>Sign in</html>"),
            "answers with a web page, not metrics; check the address",
        ),
        (answers(""), "answers with nothing instead of metrics"),
        (answers('{"a": 1}'), 'does not answer with metrics: {"a": 1}'),
        (answers("", status=404), "does not know this path (HTTP 404); exporters usually serve"),
        (answers("token?", status=401), "refuses access (HTTP 401): token?; give credentials"),
        (answers("token=abc123456"), "does not answer with metrics: token=[redacted]"),
        (answers("token=abc123456", status=500), "answers HTTP 500: token=[redacted]"),
        (answers("", status=302, headers={"Location": "file:///etc/passwd"}), "redirects to file:"),
    ],
)
async def test_no_exporter_answers_with_metrics(handler: Handler, words: str) -> None:
    async with serve(handler) as site:
        with pytest.raises(SourceError) as caught:
            await scrape(site.url, times=1)
    assert words in caught.value.one_line()


async def test_all_unreachable() -> None:
    urls = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    with pytest.raises(SourceError) as caught:
        await scrape(*urls)
    assert f"http://{urls[0]}/metrics cannot be reached" in caught.value.message
    assert "(and 2 more fail)" in caught.value.message
    assert caught.value.code == "source_unreachable"


async def test_malformed_lines_and_repeated_series_are_told() -> None:
    async with serve(answers("a 1\nb\na 2\n")) as site:
        batch = await scrape(site.url, times=1, wave=[Selection(("a",))])
    assert [s.values.tolist() for s in batch.series] == [[2]]
    assert batch.warnings == [
        f"{site.url}/metrics: 1 series came twice in one scrape (first: a); the last one counts",
        f"{site.url}/metrics:2: no value after b; 1 line skipped, the rest is used",
    ]


async def test_readings_that_were_not_refreshed_are_told() -> None:
    async with serve(answers("a 1\n")) as site:
        batch = await scrape(site.url, wave=[Selection(("a",))])
    assert [s.values.tolist() for s in batch.series] == [[1, 1, 1]]
    assert "gave the same readings every time" in batch.warnings[0]


async def test_credentials_are_sent_to_every_exporter() -> None:
    options = HttpOptions(bearer_token="abc", headers={"X-Scope-OrgID": "t"})
    async with serve(counting()) as site:
        await scrape(site.url, f"{site.url}/other", times=1, options=options)
        assert {path for _, path, _, _ in site.seen} == {"/metrics", "/other"}
        for *_, headers in site.seen:
            assert headers["Authorization"] == "Bearer abc"
            assert headers["X-Scope-OrgID"] == "t"
            assert "text/plain" in headers["Accept"]


@pytest.mark.parametrize(
    ("urls", "options"),
    [
        ([], {}),
        (["ftp://x"], {}),
        (["http://user:hush@x:1"], {}),
        (["x:1"], {"times": 0}),
        (["x:1"], {"interval_s": -1.0}),
    ],
)
def test_what_cannot_be_scraped(urls: list[str], options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        ScrapeSource(urls, **options)
    assert "hush" not in str(caught.value)
