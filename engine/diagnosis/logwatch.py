"""Asking a log source beside the metrics: at the same time, and never for longer than it may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from engine.diagnosis.fetch import Fetched
from engine.diagnosis.logged import moment
from engine.errors import GpuwhyError
from engine.sources.logs.port import LogEvent, LogSource, Unread

_LATE = "check that it answers, or raise its time-out in the configuration"


@dataclass(slots=True)
class Logged:
    """Events of a kernel log on their way into a frame.

    Attributes:
        events: what came.
        unread: what could not be read.
        warnings: what else there is to tell.
        queries: HTTP requests that were sent for it.
    """

    events: list[LogEvent] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    queries: int = 0


class LogWatch:
    """A question to a log source; without a source nothing happens.

    Args:
        source: the log source, None for none.
        clock: Unix seconds, what "now" is where no moment was asked for.
    """

    def __init__(self, source: LogSource | None, *, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._task: asyncio.Task[Logged] | None = None
        self._hosts: list[str] | None = None
        self._end = 0.0
        self._window_s = 0.0

    @property
    def pending(self) -> bool:
        """Whether there is a source that has not been asked yet."""
        return self._source is not None and self._task is None

    @property
    def events(self) -> list[LogEvent]:
        """What the last answer held; nothing before there is one."""
        done = self._task is not None and self._task.done() and not self._task.cancelled()
        return self._task.result().events if done and self._task else []

    def start(self, hosts: Iterable[str | None] | None, at: float | None, window_s: float) -> None:
        """Ask, if it can be done with what is known; a source may have to be told the hosts.

        Args:
            hosts: machines asked about, None for all of them.
            at: the end of the window (Unix s), None for now.
            window_s: how far back (s).
        """
        if self._source is None or self._task is not None:
            return
        named = None if hosts is None else sorted({host for host in hosts if host})
        if self._source.needs_hosts and not named:
            return
        self._ask(self._source, named, at, window_s)

    async def join(self, got: Fetched) -> None:
        """Wait for the answer, and add it to what the metrics gave.

        Where the hosts did not come to light, the source is asked without them now: it says what
        it cannot read.
        """
        if self._source is None:
            return
        if self._task is None:
            self._ask(self._source, [], got.log_end, got.window_s)
        assert self._task is not None, "just made"
        logged = await self._task
        got.events = logged.events
        if got.batch.written is not None and got.log_end is not None:
            asked = ", as asked" if got.at is not None else ", when they were written"
            more = "" if got.at is not None else "; --at gives another moment"
            said = (
                "the metrics carry no times: the kernel log is judged as of "
                f"{moment(got.log_end)}{asked}{more}"
            )
            got.warnings += [said] if said not in got.warnings else []
        got.unread += [u for u in logged.unread if u not in got.unread]
        got.warnings += [w for w in logged.warnings if w not in got.warnings]
        got.batch.queries += logged.queries
        logged.queries = 0  # counted once, however many groups of a sweep join

    async def widen(self, got: Fetched) -> bool:
        """Ask again if the metrics were looked at further back; return whether that was so."""
        if self._source is None or got.window_s <= self._window_s:
            return False
        await self.aclose()
        self._ask(self._source, self._hosts, self._end, got.window_s)
        await self.join(got)
        return bool(got.events)

    async def aclose(self) -> None:
        """Give up what still runs."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _ask(
        self, source: LogSource, hosts: list[str] | None, at: float | None, window_s: float
    ) -> None:
        self._hosts, self._window_s = hosts, window_s
        self._end = self._clock() if at is None else at
        self._task = asyncio.create_task(_asked(source, hosts, self._end - window_s, self._end))


async def _asked(
    source: LogSource, hosts: Sequence[str] | None, start: float, end: float
) -> Logged:
    before = source.queries
    got = Logged()
    try:
        async with asyncio.timeout(source.timeout_s):
            got.events = await source.events(hosts, start, end)
    except TimeoutError:
        got.unread.append(Unread(source.name, f"no answer within {source.timeout_s:g} s", _LATE))
    except GpuwhyError as error:
        got.unread.append(Unread(source.name, error.message, error.hint))
    got.unread += [u for u in source.take_unread() if u not in got.unread]
    got.warnings += [f"{u.one_line()}; {u.fix}" if u.fix else u.one_line() for u in got.unread]
    got.warnings += [w for w in source.take_warnings() if w not in got.warnings]
    got.queries = source.queries - before
    return got
