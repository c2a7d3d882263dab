"""Running a local process: bounded in time and in what is kept of its output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from engine.capture.ports import Completed

NOT_FOUND = 127
NOT_RUNNABLE = 126
_KEPT_BYTES = 65536
# A grandchild may hold the pipes open after the process itself has ended.
_PIPE_GRACE_S = 1.0
# A killed process ends at once, unless the kernel is busy for it (a slow disk).
_KILL_GRACE_S = 10.0


class _Watcher(asyncio.SubprocessProtocol):
    """Collects the start of both outputs, and knows when the process and its pipes are done."""

    def __init__(self, pipes: set[int]) -> None:
        loop = asyncio.get_running_loop()
        self.kept: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._open = pipes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd]
        kept += data[: _KEPT_BYTES - len(kept)]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        self._open.discard(fd)
        if not self._open and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


async def run(argv: Sequence[str], *, timeout_s: float, output: int | None = None) -> Completed:
    """Run a program in a session of its own, so that a Ctrl-C at the terminal does not reach it.

    Args:
        argv: the program and its arguments.
        timeout_s: after this it is killed, with the processes that it started.
        output: file descriptor for standard output; None: the start of it is kept.

    Raises:
        TimeoutError: it did not end in time.
    """
    loop = asyncio.get_running_loop()
    pipes = {1, 2} if output is None else {2}
    try:
        transport, watcher = await loop.subprocess_exec(
            lambda: _Watcher(pipes),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if output is None else output,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return Completed(NOT_FOUND, "", f"{argv[0]}: not found")
    except OSError as error:
        return Completed(NOT_RUNNABLE, "", f"{argv[0]}: {error.strerror}")
    try:
        async with asyncio.timeout(timeout_s):
            # Not awaited by itself: the time-out would cancel it, and the end would go unseen.
            await asyncio.wait({watcher.exited})
        await asyncio.wait({watcher.closed}, timeout=_PIPE_GRACE_S)
    finally:
        if transport.get_returncode() is None:
            with suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
            await asyncio.wait({watcher.exited}, timeout=_KILL_GRACE_S)
        transport.close()
    out, err = (bytes(watcher.kept[fd]).decode(errors="replace") for fd in (1, 2))
    return Completed(cast("int", transport.get_returncode()), out, err)
