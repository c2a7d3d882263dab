"""The simulated fleet read without a Prometheus: exporters on loopback, scraped at its own pace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.simulate.serve import Scrapeable, serve_fleet
from engine.sources.scrape import ScrapeSource

STEP_S = 15.0


class SteppingClock:
    """The fleet's time: one step further after every round of scrapes, so that none is waited for.

    Attributes:
        now: Unix seconds.
    """

    def __init__(self, at: float, window_s: float) -> None:
        self.rounds = round(window_s / STEP_S) + 1
        self._at = at
        self.now = at - (self.rounds - 1) * STEP_S

    def __call__(self) -> float:
        """Return the fleet's time (Unix seconds)."""
        return self.now

    def step(self, done: int, total: int) -> None:
        """Go on after ``done`` of ``total`` rounds; the last one is at the moment judged."""
        self.now = self._at - max(total - 1 - done, 0) * STEP_S


@asynccontextmanager
async def scraping(fleet: Scrapeable, *, at: float, window_s: float) -> AsyncIterator[ScrapeSource]:
    """Serve the fleet's exporters and yield a source that has read the window before ``at``."""
    clock = SteppingClock(at, window_s)
    async with serve_fleet(fleet, clock=clock) as served:
        urls = [*served.urls("dcgm-exporter"), *served.urls("node-exporter")]
        source = ScrapeSource(
            urls, times=clock.rounds, interval_s=0.0, on_progress=clock.step, clock=clock
        )
        try:
            yield source
        finally:
            await source.aclose()
