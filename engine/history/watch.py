"""Watching: look on an interval, one look at a time, and record what it leads to."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from engine.errors import GpuwhyError, SourceError
from engine.history.book import Book, Claim, Record
from engine.history.incidents import Sight, advance, unseen
from engine.history.tracked import Event, EventKind, Failure, Holds, State, Tracked
from engine.units import duration

Look = Callable[[Sequence[Tracked]], Awaitable[Sight]]

log = logging.getLogger(__name__)

_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Pace:
    """When to look.

    Attributes:
        every_s: the interval (s).
        deadline_s: longest that one look may take (s).
        lease_s: after how long without a sign of life somebody else may look (s).
    """

    every_s: float = 60.0
    deadline_s: float = 120.0
    lease_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a look.

    Attributes:
        events: what was recorded to be told.
        open: how many incidents are open now.
        took_s: how long the look took (s).
        error: why it failed, if it did.
        failed_before: the look before failed too, so that its failure has been said.
    """

    events: tuple[Event, ...]
    open: int
    took_s: float
    error: GpuwhyError | None = None
    failed_before: bool = False


def _told(problem: Exception, *, first: bool) -> GpuwhyError:
    """Return a problem as an error for people; the log has the traceback of a fault, once."""
    if isinstance(problem, GpuwhyError):
        return problem
    if first:
        log.error("a sweep of the watch broke", exc_info=problem)
    said = f"internal error: {type(problem).__name__}"
    return GpuwhyError(said, hint="please report it", code="internal")


def watch_name(source: str, where: str = "") -> str:
    """Return what is watched as a name, the same after a restart; long ones end in a hash."""
    name = f"{source} {{{where}}}" if where else source
    if len(name) <= _MAX_NAME:
        return name
    digest = sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    return f"{name[:_MAX_NAME]}… {digest}"


class Watcher:
    """Looks when a look is due.

    Args:
        book: keeps the state; others may use it too.
        look: looks once; gets the incidents that are known.
        name: what is watched (`watch_name`).
        pace: when to look.
        holds: how long something must last before it is told.
        clock: Unix seconds.
    """

    def __init__(
        self,
        book: Book,
        look: Look,
        *,
        name: str,
        pace: Pace,
        holds: Holds,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._book = book
        self._look = look
        self._name = name
        self._pace = pace
        self._holds = holds
        self._clock = clock

    @property
    def name(self) -> str:
        """What is watched."""
        return self._name

    async def open(self) -> tuple[Tracked, ...]:
        """Return the incidents that are open."""
        known = await self._book.known(self._name)
        return tuple(one for one in known if one.state is State.OPEN)

    async def turn(self, *, now: bool = False) -> Outcome | None:
        """Look if it is due; None: it is not, or somebody else looks.

        Args:
            now: look whenever the last one was.

        Raises:
            GpuwhyError: the book cannot be used. The look, if there was one, counts for nothing.
        """
        claim = await self._book.claim(
            self._name,
            secrets.token_hex(8),
            every_s=0.0 if now else self._pace.every_s,
            lease_s=self._pace.lease_s,
            now=self._clock(),
        )
        if claim is None:
            return None
        try:
            return await self._turn(claim)
        except BaseException:
            with suppress(GpuwhyError):  # the lease ends by itself
                await self._book.release(claim)
            raise

    async def _turn(self, claim: Claim) -> Outcome | None:
        began = self._clock()
        started = time.perf_counter()
        error: GpuwhyError | None = None
        try:
            sight = await self._seen(claim)
        except Exception as problem:  # noqa: BLE001 - the watch outlives a look that breaks
            error = _told(problem, first=claim.failure is None)
            record = self._blind(claim, began, error)
        else:
            if sight is None:
                return None
            # A tenth of a second for a thousand incidents: the loop has others to serve.
            step = await asyncio.to_thread(
                advance, claim.known, sight, began, holds=self._holds, watch=self._name
            )
            record = Record(
                step.known, (*self._seeing(claim, began), *step.events), self._due(claim)
            )
        took_s = time.perf_counter() - started
        if not await self._book.record(claim, record, now=self._clock()):
            return None
        opened = sum(one.state is State.OPEN for one in record.known)
        return Outcome(record.events, opened, took_s, error, claim.failure is not None)

    async def _seen(self, claim: Claim) -> Sight | None:
        """Look while the claim is renewed; None: somebody else has it by now."""
        looking = asyncio.ensure_future(self._look(claim.known))
        keeping = asyncio.create_task(self._keep(claim), name=f"keep watch {self._name}")
        try:
            done, _ = await asyncio.wait(
                {looking, keeping},
                timeout=self._pace.deadline_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if looking in done:
                return looking.result()
            if keeping in done:
                return None
            raise SourceError(
                f"no sweep within {self._pace.deadline_s:g} s",
                hint="watch less at once, or allow more time",
                code="timeout",
            )
        finally:
            looking.cancel()
            keeping.cancel()
            await asyncio.gather(looking, keeping, return_exceptions=True)

    async def _keep(self, claim: Claim) -> None:
        """Renew the claim; return when somebody else has it."""
        while True:
            await asyncio.sleep(self._pace.lease_s / 3)
            with suppress(GpuwhyError):
                now = self._clock()
                if not await self._book.renew(claim, lease_s=self._pace.lease_s, now=now):
                    return

    def _due(self, claim: Claim) -> float:
        """Return when the next look is due; what was missed meanwhile is skipped."""
        now, every = self._clock(), self._pace.every_s
        due = min(claim.due_at, now)  # a clock that was set back left one in the future
        return due + every * (math.floor((now - due) / every) + 1)

    def _blind(self, claim: Claim, at: float, error: GpuwhyError) -> Record:
        """Return what a failed look leads to: nothing opens or closes."""
        failure = claim.failure or Failure(at, error.one_line())
        lasts = max(0.0, at - failure.since)
        events: tuple[Event, ...] = ()
        if not failure.told and lasts >= self._holds.open_s:
            failure = replace(failure, told=True)
            events = (self._event(EventKind.BLIND, at, error.one_line()),)
        return Record(unseen(claim.known), events, self._due(claim), failure)

    def _seeing(self, claim: Claim, at: float) -> tuple[Event, ...]:
        if claim.failure is None or not claim.failure.told:
            return ()
        lasted = duration(round(max(0.0, at - claim.failure.since)))
        said = f"{self._name} can be read again after {lasted}"
        return (self._event(EventKind.SEEING, at, said),)

    def _event(self, kind: EventKind, at: float, says: str) -> Event:
        return Event(event=kind, at=at, watch=self._name, says=says)
