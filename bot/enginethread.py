"""A thread with an event loop of its own for the engine.

Judging is arithmetic: 10 ms for a GPU, seconds for a fleet. On the loop that also talks to Slack
it would delay every acknowledgement, so the engine and its source live on a loop in this thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_JOIN_S = 10.0


class EngineThread:
    """Runs coroutines on a loop in one other thread; cancelling the caller cancels the work."""

    def __init__(self, name: str = "engine") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run what ``start`` returns in the thread, and return its result.

        Args:
            start: makes the coroutine; only called once the thread takes it, so that nothing is
                left unawaited if the thread has ended.
        """
        return await asyncio.wrap_future(self._submit(start))

    def call(self, start: Callable[[], Coroutine[Any, Any, T]], timeout_s: float) -> T:
        """Run a coroutine in the thread from a third thread that may block.

        Raises:
            TimeoutError: it took longer than ``timeout_s``; it is cancelled.
        """
        future = self._submit(start)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    async def aclose(self) -> None:
        """Cancel what runs and end the thread."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _JOIN_S)

    def _submit(self, start: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        if self._loop.is_closed():
            msg = "the engine has been stopped"
            raise RuntimeError(msg)

        async def started() -> T:
            return await start()

        return asyncio.run_coroutine_threadsafe(started(), self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(_settled(tasks))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _settled(tasks: set[asyncio.Task[Any]]) -> None:
    waiting: Awaitable[Any] = asyncio.gather(*tasks, return_exceptions=True)
    await waiting
