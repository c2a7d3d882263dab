"""The sender: takes deliveries from the store and brings them, several channels at a time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bot.delivery.messenger import AwayError, LimitedError, Messenger, MessengerError
from bot.delivery.postman import Postman
from bot.hints import Hints
from bot.store import Delivery, DeliveryKind, Store, StoreError
from bot.telemetry import Telemetry

log = logging.getLogger(__name__)

# Slack takes about one message a second in a channel.
PACE_S = 1.0
_AT_ONCE = 16
# How soon the queue is looked at again: while something waits for its pace, and when all is still.
_SOON_S = 0.2
_IDLE_S = 1.0
_BUSY_FOR_S = 5.0
_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 15.0
_GIVE_UP_AFTER_S = 86400.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clock of the store (Unix seconds), and that of waits (monotonic seconds)."""

    now: Callable[[], float]
    monotonic: Callable[[], float]


class Sender:
    """Sends what the store holds until it is stopped.

    Args:
        store: the queue.
        messenger: sends.
        name: of this sender; no other process has or had it.
        clocks: see `Clocks`.
        telemetry: counts.
        lease_s: how long a delivery stays with a sender that gives no sign of life (s); longer
            than any call of the messenger takes.
        pace_s: shortest time between two messages of a channel (s).
        backoff_s: wait after a failure, doubled after each further one (s).
    """

    def __init__(
        self,
        store: Store,
        messenger: Messenger,
        *,
        name: str,
        clocks: Clocks,
        telemetry: Telemetry,
        lease_s: float = 60.0,
        pace_s: float = PACE_S,
        backoff_s: float = _BACKOFF_S,
    ) -> None:
        self._store = store
        self._postman = Postman(messenger, store, clocks.now)
        self._name = name
        self._clocks = clocks
        self._telemetry = telemetry
        self._lease_s = lease_s
        self._pace_s = pace_s
        self._backoff_s = backoff_s
        self._claims = itertools.count(1)
        self._hints = Hints()
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False
        # Until when Slack does not want a kind of call, for all channels (monotonic seconds).
        self._edits_from = 0.0

    def wake(self) -> None:
        """Say that something was queued."""
        self._hints.add()

    async def run(self) -> None:
        """Send until `stop` is called; then finish what has begun."""
        busy_until = 0.0
        try:
            while not self._stopping:
                delivery = await self._claim()
                self._hints.looked(found=delivery is not None)
                now = self._clocks.monotonic()
                if delivery is not None:
                    busy_until = now + _BUSY_FOR_S
                    self._start(delivery)
                if len(self._running) >= _AT_ONCE:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                await self._hints.wait(_SOON_S if now < busy_until else _IDLE_S)
        finally:
            await self._finish()

    def stop(self) -> None:
        """Take no more deliveries."""
        self._stopping = True
        self._hints.nudge()

    async def _claim(self) -> Delivery | None:
        try:
            # A name for each claim: one whose lease has ended has no say about the next.
            name = f"{self._name}/{next(self._claims)}"
            return await self._store.claim_delivery(
                name, lease_s=self._lease_s, pace_s=self._pace_s, now=self._clocks.now()
            )
        except StoreError as error:
            log.warning("deliveries: %s", error.one_line())
            return None

    async def _finish(self) -> None:
        """Let every call that has begun come to its end: cut off, nobody knew its outcome."""
        while self._running:
            await asyncio.wait(self._running)

    def _start(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._deliver(delivery), name=f"deliver {delivery.id}")
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (problem := task.exception()):
            log.error("a delivery broke", exc_info=problem)

    async def _deliver(self, delivery: Delivery) -> None:
        outcome = await self._try(delivery)
        self._telemetry.deliveries.labels(str(delivery.kind), outcome).inc()

    async def _try(self, delivery: Delivery) -> str:
        """Bring a delivery, note what came of it in the store, and return it in a word."""
        wait_s = self._edits_from - self._clocks.monotonic()
        if delivery.kind is DeliveryKind.UPDATE and wait_s > 0:
            return await self._later(delivery, wait_s, "Slack asks to wait")
        try:
            ts = await self._postman.bring(delivery)
        except LimitedError as limit:
            self._telemetry.limited.inc()
            if delivery.kind is DeliveryKind.UPDATE:
                # Edits are limited for the workspace, posts for each channel.
                self._edits_from = self._clocks.monotonic() + limit.after_s
            return await self._later(delivery, limit.after_s, limit.one_line())
        except AwayError as error:
            log.warning("delivery %s: %s", delivery.id, error.one_line())
            return await self._again(delivery, error.one_line(), uncertain=error.uncertain)
        except MessengerError as error:
            log.warning("delivery %s is given up: %s", delivery.id, error.one_line())
            return await self._give_up(delivery, error.one_line())
        except StoreError as error:
            # Whatever was sent is sent again as the same edit or found by its mark.
            log.warning("delivery %s: %s", delivery.id, error.one_line())
            return "store"
        return await self._sent(delivery, ts)

    async def _sent(self, delivery: Delivery, ts: str | None) -> str:
        now = self._clocks.now()
        for pause_s in (0.1, 0.5, 2.0):
            try:
                await self._store.mark_sent(delivery.id, message_ts=ts, now=now)
            except StoreError as error:
                log.warning("delivery %s was sent: %s", delivery.id, error.one_line())
                await asyncio.sleep(pause_s)
            else:
                self._telemetry.delivering.observe(max(0.0, now - delivery.created_at))
                return "sent"
        return "store"

    async def _again(self, delivery: Delivery, error: str, *, uncertain: bool) -> str:
        if self._clocks.now() - delivery.created_at > _GIVE_UP_AFTER_S:
            return await self._give_up(delivery, error)
        wait_s = min(_LONGEST_BACKOFF_S, self._backoff_s * 2 ** min(delivery.attempts - 1, 8))
        return await self._later(delivery, wait_s, error, uncertain=uncertain)

    async def _later(
        self, delivery: Delivery, wait_s: float, error: str, *, uncertain: bool = False
    ) -> str:
        not_before = self._clocks.now() + wait_s
        try:
            await self._store.retry_delivery(
                delivery.id,
                delivery.claimed_by or "",
                not_before=not_before,
                error=error,
                uncertain=uncertain,
            )
        except StoreError as problem:
            log.warning("delivery %s: %s", delivery.id, problem.one_line())
        return "later"

    async def _give_up(self, delivery: Delivery, error: str) -> str:
        try:
            await self._store.kill_delivery(delivery.id, delivery.claimed_by or "", error=error)
        except StoreError as problem:
            log.warning("delivery %s: %s", delivery.id, problem.one_line())
        return "dead"
