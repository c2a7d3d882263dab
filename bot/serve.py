"""``gpuwhy serve``: a server in this process, until it is told to stop.

The first SIGTERM or SIGINT stops it without losing anything; the second ends it at once. What was
not finished then is in the store, and is finished after the next start.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.server import Server

if TYPE_CHECKING:
    from bot.backend import OpenSource
    from bot.server import Connect
    from bot.settings import Settings

# Threads take turns this often: with the default of 5 ms, judging a fleet in one thread delays
# every single step of the event loop by that much.
_SWITCH_S = 0.001


def serve(
    settings: Settings,
    open_source: OpenSource | None,
    connect: Connect | None,
    say: Callable[[str], None],
    *,
    watched: OpenSource | None = None,
) -> int:
    """Run the server in this process until it is told to stop; return the exit status.

    Args:
        settings: everything that is configured.
        open_source: makes what readings come from, if there is anything.
        connect: connects to Slack.
        say: tells a line to whoever started it.
        watched: makes what the watch looks at; None: what questions are about.

    Raises:
        GpuwhyError: it cannot start.
    """
    return asyncio.run(_serve(settings, open_source, connect, say, watched))


async def _serve(
    settings: Settings,
    open_source: OpenSource | None,
    connect: Connect | None,
    say: Callable[[str], None],
    watched: OpenSource | None,
) -> int:
    sys.setswitchinterval(_SWITCH_S)
    server = Server(settings, open_source, connect, watched=watched)
    stop = asyncio.Event()
    with _signals(stop):
        status = await server.run(stop, on_ready=lambda: say(f"serving on {server.urls[0]}"))
    say("stopped")
    return status


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Let the first SIGTERM or SIGINT stop the server, and the second end the process."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGTERM, signal.SIGINT)

    def end() -> None:
        stop.set()
        for one in both:
            loop.remove_signal_handler(one)
            signal.signal(one, signal.SIG_DFL)

    for one in both:
        loop.add_signal_handler(one, end)
    try:
        yield
    finally:
        for one in both:
            loop.remove_signal_handler(one)
