"""The loop that talks to Slack is not held up by the engine's arithmetic."""

from __future__ import annotations

import asyncio
import time

from bot.backend import Backend
from bot.request import Request
from tests.support import readings
from tests.support.memory import MemorySource

_TICK_S = 0.005
NODES = 24


def fleet() -> MemorySource:
    hot = {**readings.FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x80, "DCGM_FI_DEV_SM_CLOCK": 900}
    series = []
    for number in range(NODES):
        values = hot if number % 3 == 0 else readings.FULL
        series += readings.node(values, host=f"node-{number}")
    return MemorySource(series, now=readings.AT)


async def lags(until: asyncio.Event) -> list[float]:
    """Return how late (s) each of many short sleeps came back."""
    found = []
    while not until.is_set():
        began = time.perf_counter()
        await asyncio.sleep(_TICK_S)
        found.append(time.perf_counter() - began - _TICK_S)
    return found


def high(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(len(values) * 0.95)]


async def measured(work) -> float:
    done = asyncio.Event()
    ticking = asyncio.create_task(lags(done))
    await work
    done.set()
    return high(await ticking)


async def test_answers_do_not_hold_up_the_loop():
    source = fleet()
    backend = Backend(lambda: source)
    await backend.start()
    paste = "\n".join(f"[{n}.0] NVRM: Xid (PCI:0000:1a:00): 79, pid=1, x" for n in range(20_000))
    questions = [
        Request("sweep"),
        Request("why", {"target": "fleet"}),
        Request("read", {"text": paste}),
        *(Request("why", {"target": f"node-{n}:3"}) for n in range(NODES)),
        *(Request("decode", {"text": "0x48"}) for _ in range(20)),
    ]
    try:
        idle = await measured(asyncio.sleep(1.0))
        began = time.perf_counter()
        busy = await measured(asyncio.gather(*(backend.run(q) for q in questions)))
        took = time.perf_counter() - began
    finally:
        await backend.aclose()
    # The arithmetic takes long enough to be noticed if it were on this loop.
    assert took > 0.5
    assert busy < idle + 0.05, f"{busy * 1000:.0f} ms late, {idle * 1000:.0f} ms when idle"
