"""Several log sources as one: each has its own time, and none that fails hides the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from engine.errors import GpuwhyError
from engine.redact import redact
from engine.sources.logs.port import LogEvent, LogSource, Unread
from engine.sources.text import show

log = logging.getLogger(__name__)
# Where nobody set up logging (the command line), the answer tells it, and no traceback is shown.
log.addHandler(logging.NullHandler())

_LATE = "check that it answers, or raise its time-out in the configuration"
_FAULT = "run with GPUWHY_DEBUG=1 for the traceback, and report it"


class SeveralLogs:
    """Asks some sources at the same time."""

    def __init__(self, sources: Sequence[LogSource]) -> None:
        """Take the sources over: they are closed with this one."""
        self._sources = tuple(sources)
        self._unread: list[Unread] = []

    @property
    def name(self) -> str:
        """What messages call them."""
        return ", ".join(source.name for source in self._sources)

    @property
    def timeout_s(self) -> float:
        """As long as the most patient of them (s), and a little to say that it was late."""
        return max((source.timeout_s for source in self._sources), default=1.0) + 1.0

    @property
    def needs_hosts(self) -> bool:
        """Whether one of them must be told the hosts."""
        return any(source.needs_hosts for source in self._sources)

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        return sum(source.queries for source in self._sources)

    async def events(self, hosts: Sequence[str] | None, start: float, end: float) -> list[LogEvent]:
        """Ask all of them; what a source cannot read is told, and is never an error."""
        found = await asyncio.gather(
            *(self._guarded(source, hosts, start, end) for source in self._sources)
        )
        events = (event for some in found for event in some)
        return sorted(events, key=lambda event: event.order)

    def take_unread(self) -> list[Unread]:
        """Return what could not be read, of all of them."""
        taken, self._unread = self._unread, []
        return taken + [u for source in self._sources for u in source.take_unread()]

    def take_warnings(self) -> list[str]:
        """Return the warnings not taken yet, of all of them."""
        return [w for source in self._sources for w in source.take_warnings()]

    async def aclose(self) -> None:
        """Close all of them."""
        for source in self._sources:
            await source.aclose()

    async def _guarded(
        self, source: LogSource, hosts: Sequence[str] | None, start: float, end: float
    ) -> list[LogEvent]:
        try:
            async with asyncio.timeout(source.timeout_s):
                return await source.events(hosts, start, end)
        except TimeoutError:
            unread = Unread(source.name, f"no answer within {source.timeout_s:g} s", _LATE)
        except GpuwhyError as error:
            unread = Unread(source.name, error.message, error.hint)
        except Exception as error:
            # One that answers with what nobody thought of must not take the metrics with it.
            log.exception("reading the logs of %s failed", source.name)
            kind = type(error).__name__
            said = show(redact(f"{kind}: {error}"[:4096]), 200)
            unread = Unread(source.name, f"unexpected {said}", _FAULT)
        self._unread.append(unread)
        return []
