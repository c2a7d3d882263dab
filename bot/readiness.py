"""Whether everything that the server needs answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.telemetry import Telemetry
from engine.errors import GpuwhyError

Check = Callable[[], Awaitable[object]]

_TIMEOUT_S = 5.0
# A probe every second from several places must not become a load on what is probed.
_REMEMBERED_S = 5.0


@dataclass(frozen=True, slots=True)
class State:
    """Whether one dependency answers; ``error`` says why not."""

    name: str
    error: GpuwhyError | None = None

    @property
    def ok(self) -> bool:
        """Whether it answers."""
        return self.error is None


class Readiness:
    """Checks every dependency, all at once, and remembers the outcome for a few seconds.

    Args:
        checks: a name to what raises `GpuwhyError` if the dependency does not answer.
        clock: monotonic seconds.
        telemetry: gets a gauge for each.
    """

    def __init__(
        self, checks: Mapping[str, Check], clock: Callable[[], float], telemetry: Telemetry
    ) -> None:
        self._checks = dict(checks)
        self._clock = clock
        self._telemetry = telemetry
        self._lock = asyncio.Lock()
        self._at = float("-inf")
        self._states: tuple[State, ...] = ()
        self.draining = False

    async def states(self) -> tuple[State, ...]:
        """Return the state of every dependency, at most a few seconds old."""
        async with self._lock:
            if self._clock() - self._at > _REMEMBERED_S:
                self._states = await self.look()
                self._at = self._clock()
        return self._states

    async def look(self) -> tuple[State, ...]:
        """Check everything now."""
        found = await asyncio.gather(*(_checked(n, c) for n, c in self._checks.items()))
        for state in found:
            self._telemetry.ready.labels(state.name).set(state.ok)
        return tuple(found)


async def _checked(name: str, check: Check) -> State:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await check()
    except GpuwhyError as error:
        return State(name, error)
    except TimeoutError:
        return State(name, GpuwhyError(f"no answer within {_TIMEOUT_S:g} s", code="timeout"))
    return State(name)
