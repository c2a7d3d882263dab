"""Waiting in tests for what happens elsewhere: always with an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until a condition holds; fail if it does not in time."""

    async def holds() -> Any:
        return condition()

    await eventually(holds, seconds)


async def eventually(
    condition: Callable[[], Awaitable[Any]], seconds: float = 10.0, *, pause_s: float = 0.02
) -> None:
    """Wait until a condition that has to be asked for holds; fail if it does not in time."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - what is waited for knows nothing of us
            await asyncio.sleep(pause_s)


async def drained(store: Any, seconds: float = 15.0) -> None:
    """Wait until nothing is left to be answered or sent."""

    async def empty() -> bool:
        return not any((await store.backlog())[:2])

    await eventually(empty, seconds)
