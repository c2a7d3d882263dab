"""The server's watch: sweeps on an interval, and announces what opens, changes and closes.

Every replica runs one; the store lets one of them look at a time, and once an interval.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.announce import Announcer
from bot.policy import Policy
from bot.selector import format_selector, parse_selector
from bot.store import Store
from bot.store.incidentbook import StoreBook, nobody
from bot.telemetry import Telemetry
from engine.errors import GpuwhyError, UsageError
from engine.history import Holds, Outcome, Pace, Sight, Tracked, Watcher, watch_name

if TYPE_CHECKING:
    from bot.backend import Backend, OpenSource
    from bot.settings import Settings
    from engine.samples import Matcher

log = logging.getLogger(__name__)

# How soon it is looked again whether a look is due (s): another replica may have died over one.
_TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """What the settings say about watching.

    Attributes:
        where: label matchers that every series must fit.
        channel: id of the Slack channel to announce in; None: nowhere.
        pace: when to look.
        holds: how long something must last before it is told.
    """

    where: tuple[Matcher, ...]
    channel: str | None
    pace: Pace
    holds: Holds

    def named(self, source: str) -> str:
        """Return what is watched on a source of that name."""
        return watch_name(source, format_selector(self.where))


def watch_plan(settings: Settings) -> WatchPlan | None:
    """Return how to watch; None if it is not configured.

    Raises:
        UsageError: the settings do not fit together.
    """
    watch = settings.watch
    if watch.every is None:
        if watch.channel is not None:
            said = "watch.channel is set, but not how often to look"
            raise UsageError(said, hint="set watch.every, such as 60s", code="config")
        return None
    if watch.channel is not None and settings.slack.mode == "off":
        raise UsageError(
            "watch.channel is set, but slack.mode is off",
            hint="set slack.mode to socket or http, or leave the channel out",
            code="config",
        )
    try:
        where = parse_selector(watch.where)
    except UsageError as error:
        raise UsageError(f"watch.where: {error.message}", hint=error.hint, code="config") from None
    return WatchPlan(
        where=where,
        channel=watch.channel,
        pace=Pace(watch.every, watch.timeout, settings.server.lease),
        holds=Holds(open_s=watch.hold, resolve_s=watch.resolve_after, quiet_s=watch.quiet_period),
    )


def make_watching(
    plan: WatchPlan,
    source: OpenSource,
    *,
    store: Store,
    backend: Backend,
    policy: Policy,
    telemetry: Telemetry,
    wake: Callable[[], None],
) -> Watching:
    """Return the watch of a server.

    Args:
        plan: how to watch.
        source: makes what readings come from.
        store: keeps the incidents.
        backend: sweeps.
        policy: says what is not announced.
        telemetry: counts and times.
        wake: called when something was put in the delivery queue.
    """

    async def look(known: Sequence[Tracked]) -> Sight:
        return await backend.look(known, where=plan.where, open_source=source)

    announce = Announcer(plan.channel, policy) if plan.channel else nobody
    watcher = Watcher(
        StoreBook(store, announce),
        look,
        name=plan.named(source().name),
        pace=plan.pace,
        holds=plan.holds,
    )
    return Watching(watcher, every_s=plan.pace.every_s, telemetry=telemetry, wake=wake)


class Watching:
    """Looks whenever it is due until it is stopped.

    Args:
        watcher: looks.
        every_s: how often at least the number of open incidents is brought up to date (s).
        telemetry: counts and times.
        wake: called when there may be something to send.
    """

    def __init__(
        self,
        watcher: Watcher,
        *,
        every_s: float,
        telemetry: Telemetry,
        wake: Callable[[], None],
    ) -> None:
        self._watcher = watcher
        self._every_s = every_s
        self._telemetry = telemetry
        self._wake = wake
        self._stop = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._book_failed = False
        self._counted_at = float("-inf")

    async def run(self) -> None:
        """Look until `drain` is called."""
        try:
            while not self._stop.is_set():
                self._looking = asyncio.create_task(self._turn(), name="sweep of the watch")
                await asyncio.wait({self._looking})
                if not self._looking.cancelled() and (problem := self._looking.exception()):
                    log.error("the watch broke", exc_info=problem)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_S):
                        await self._stop.wait()
        finally:
            if self._looking is not None:
                self._looking.cancel()
                await asyncio.gather(self._looking, return_exceptions=True)

    async def drain(self, seconds: float) -> None:
        """Begin no more looks; cut off the one that takes longer: another replica looks then."""
        self._stop.set()
        looking = self._looking
        if looking is not None:
            await asyncio.wait({looking}, timeout=seconds)
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _turn(self) -> None:
        try:
            outcome = await self._watcher.turn()
            if outcome is None:
                await self._count()
        except GpuwhyError as error:  # the store is away: said once
            if not self._book_failed:
                log.warning("watch: %s", error.one_line())
            self._book_failed = True
            return
        self._book_failed = False
        if outcome is not None:
            self._tell(outcome)

    def _tell(self, outcome: Outcome) -> None:
        result = "ok" if outcome.error is None else outcome.error.code
        self._telemetry.sweeps.labels(result).inc()
        self._telemetry.sweeping.observe(outcome.took_s)
        self._telemetry.open_incidents.set(outcome.open)
        self._counted_at = time.monotonic()
        if outcome.error is not None and not outcome.failed_before:
            log.warning("watch: %s", outcome.error.one_line())
        if outcome.error is None and outcome.failed_before:
            log.info("watch: the source can be read again")
        for event in outcome.events:
            cause = event.incident.diagnosis.cause if event.incident else ""
            log.info("watch: %s %s %s", event.event, event.id, cause)
        if outcome.events:
            self._wake()

    async def _count(self) -> None:
        """Count what is open now and then: another replica may have looked."""
        if time.monotonic() - self._counted_at >= self._every_s:
            self._telemetry.open_incidents.set(len(await self._watcher.open()))
            self._counted_at = time.monotonic()
