"""Work that must not be cut off in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end even if the caller is cancelled meanwhile, then let the cancellation through.

    The work has to end by itself: bound it by time-outs.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not task.cancelled():
            task.exception()  # seen; the cancellation is what the caller has to hear of
        raise asyncio.CancelledError
    return task.result()
