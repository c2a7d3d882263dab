"""``gpuwhy nccl export``: durations of collectives for Prometheus, from files that grow.

One thread follows the files, the event loop serves ``/metrics`` and ``/healthz``. It listens only
once what the files hold already has been read: after a restart the counters are where they were,
so that Prometheus sees neither a reset nor a jump. SIGTERM and SIGINT end it with status 0.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from bot.telemetry import CONTENT_TYPE
from engine.errors import UsageError
from engine.nccl.follow import Follower
from engine.nccl.metrics import Durations, Following

POLL_S = 1.0
"""How often files are looked at, in seconds; Inspector writes them when its dump thread wakes."""

# Records counted at a time: a scrape waits no longer than these take.
_BATCH = 2_000
_SAY_EVERY_S = 5.0
# Scrapes that are being answered when it is told to stop get this long twice: aiohttp waits, tells
# them, and waits again.
_SHUTDOWN_S = 1.5
# Whoever takes longer to read an answer is cut off: it holds the text as long.
_SEND_S = 10.0
_PIECE = 1 << 16

_Say = Callable[[str], None]


class Exporter:
    """Counts what is added to files.

    Args:
        paths: files and folders; they need not exist yet.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._follower = Follower(paths)
        self._durations = Durations()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._registry = CollectorRegistry()
        self._registry.register(self._durations)
        self._registry.register(Following(self._follower))

    def poll(self) -> int:
        """Count what was added since the last time; return how many bytes are still unread.

        For a thread of its own; `stop` makes it end soon.
        """
        records = self._follower.poll()
        while not self._stopping.is_set() and (batch := list(islice(records, _BATCH))):
            now = time.monotonic()
            with self._lock:
                for record in batch:
                    self._durations.add(record, now)
        with self._lock:
            self._durations.forget(time.monotonic())
        return self._follower.backlog

    def stop(self) -> None:
        """Let no poll go on; what it has not counted is lost."""
        self._stopping.set()

    def text(self) -> bytes:
        """Return the metrics in Prometheus's text format."""
        with self._lock:
            return generate_latest(self._registry)

    def close(self) -> None:
        """Close the files."""
        self._follower.close()


def export(paths: Sequence[Path], listen: str, say: _Say) -> int:
    """Serve until told to stop; return the exit status.

    Args:
        paths: files and folders to follow.
        listen: ``ADDRESS:PORT``; no address stands for all.
        say: tells a line to whoever started it.

    Raises:
        UsageError: the address is none, or cannot be listened on.
    """
    host, port = _address(listen)
    _more_files()
    return asyncio.run(_export(Exporter(paths), host, port, say))


async def _export(exporter: Exporter, host: str | None, port: int, say: _Say) -> int:
    stop = asyncio.Event()
    with _signals(stop, exporter):
        following = asyncio.create_task(_catch_up(exporter, stop, say), name="catch up")
        try:
            await following
            if not stop.is_set():
                following = asyncio.create_task(_follow(exporter, stop), name="follow")
                await _serve(exporter, host, port, stop, say)
                await following
        finally:
            stop.set()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(following, return_exceptions=True)
            exporter.close()
    say("stopped")
    return 0


async def _catch_up(exporter: Exporter, stop: asyncio.Event, say: _Say) -> None:
    """Read all that is there."""
    told = time.monotonic()
    while not stop.is_set():
        left = await asyncio.to_thread(exporter.poll)
        if not left:
            return
        if time.monotonic() - told >= _SAY_EVERY_S:
            told = time.monotonic()
            say(f"reading what is there already: {left / 1e6:.0f} MB to go")


async def _follow(exporter: Exporter, stop: asyncio.Event) -> None:
    """Read what is added, at once where more is there than one poll takes."""
    left = 0
    while not stop.is_set():
        if not left:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_S)
        if not stop.is_set():
            left = await asyncio.to_thread(exporter.poll)


async def _serve(
    exporter: Exporter, host: str | None, port: int, stop: asyncio.Event, say: _Say
) -> None:
    writing: asyncio.Task[bytes] | None = None

    async def metrics(request: web.Request) -> web.StreamResponse:
        nonlocal writing
        # Scrapes that come while the text is being written share it: many cost no more than one.
        if writing is None or writing.done():
            writing = asyncio.create_task(asyncio.to_thread(exporter.text))
        return await _send(request, await asyncio.shield(writing))

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", alive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as problem:
            said = f"cannot listen on {host or ''}:{port}: {problem.strerror or problem}"
            raise UsageError(said, hint="give --listen ADDRESS:PORT of a free one") from None
        for address in runner.addresses:
            shown = f"[{address[0]}]" if ":" in address[0] else address[0]
            say(f"serving on http://{shown}:{address[1]}/metrics")
        await stop.wait()
    finally:
        await runner.cleanup()


async def _send(request: web.Request, body: bytes) -> web.StreamResponse:
    """Answer with a text piece by piece, so that a reader who waits holds no copy of it."""
    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
    response.content_length = len(body)
    try:
        async with asyncio.timeout(_SEND_S):
            await response.prepare(request)
            if request.method != "HEAD":
                for at in range(0, len(body), _PIECE):
                    await response.write(body[at : at + _PIECE])
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def _address(text: str) -> tuple[str | None, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise UsageError(
            f"no address to listen on: {text!r}",
            hint="give ADDRESS:PORT like 127.0.0.1:9468, [::]:9468 or :9468",
        )
    return host.removeprefix("[").removesuffix("]") or None, int(port)


def _more_files() -> None:
    """Let this process hold as many files open as it may: one a rank is followed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _signals(stop: asyncio.Event, exporter: Exporter) -> Iterator[None]:
    """Let the first SIGTERM or SIGINT end it in order, and the second at once."""
    loop = asyncio.get_running_loop()
    both = (signal.SIGTERM, signal.SIGINT)

    def end() -> None:
        stop.set()
        exporter.stop()
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
