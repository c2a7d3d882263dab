"""When to look into the store again: at once if something is known to be there, else after a while.

Looking costs a transaction. Whoever puts something in says so, and that is worth one look. What was
found without a hint (after a start, or from another process) is a sign that there is more.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Hints:
    """Counts what is known to wait."""

    def __init__(self) -> None:
        self._known = 0
        self._more = False
        self._event = asyncio.Event()

    def add(self) -> None:
        """Say that one thing was put in."""
        self._known += 1
        self._event.set()

    def nudge(self) -> None:
        """End a wait without a hint."""
        self._event.set()

    def looked(self, *, found: bool) -> None:
        """Say what came of a look."""
        self._more = found and not self._known
        self._known = self._known - 1 if found and self._known else 0

    async def wait(self, seconds: float) -> None:
        """Return at once if a look is worth it, else when there is a hint, or after a while."""
        if self._known or self._more:
            return
        self._event.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
