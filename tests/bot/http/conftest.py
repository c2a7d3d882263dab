"""A server without Slack, over a source in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot import config
from bot.server import Server
from engine.sources.port import Source
from tests.support import readings
from tests.support.memory import MemorySource

TOKEN = "a-token-of-the-tests"


def source() -> MemorySource:
    hot = {**readings.FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x80, "DCGM_FI_DEV_SM_CLOCK": 900}
    series = [s for g in range(7) for s in readings.gpu(readings.FULL, host="node-3", index=g)]
    return MemorySource([*series, *readings.gpu(hot, host="node-3", index=7)], now=readings.AT)


@asynccontextmanager
async def running(
    folder: Path, where: Source | Callable[[], Source] | None = None, **variables: str
) -> AsyncIterator[Server]:
    """Run a server in this loop."""
    settings = config.load(
        None,
        {
            "GPUWHY_SERVER_DATA": str(folder / "data"),
            "GPUWHY_SERVER_LISTEN": "127.0.0.1:0",
            "GPUWHY_SERVER_TOKENS": f"ci={TOKEN}",
            **variables,
        },
    )
    opened = (lambda: where) if isinstance(where, Source) else where
    server = Server(settings, opened)
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(server.run(stop, on_ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        if task.done():
            task.result()
        yield server
    finally:
        stop.set()
        assert await task == 0


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    return None


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running(tmp_path, source()) as one:
        yield one
