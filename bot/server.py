"""The server: one process that takes questions, answers them and sends the answers.

Stopping: it says that it is not ready, takes no more questions, lets running answers end, gives
back those that take too long, sends what is in the queue, and closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from aiohttp import web

from bot.backend import Backend, OpenSource
from bot.captures import Desk, Runner
from bot.captures.desk import KIND
from bot.delivery import Sender
from bot.delivery.sender import Clocks
from bot.fromsettings import (
    capture_settings,
    make_messenger,
    make_policy,
    public_url,
    store_url,
)
from bot.logsources import open_logs
from bot.policy.groups import GroupBook
from bot.readiness import Check, Readiness
from bot.router import free_question, parse_words, understand
from bot.service import Readers, Service
from bot.store import Store
from bot.surfaces.http.app import Site, make_app
from bot.surfaces.http.auth import TokenBook
from bot.surfaces.http.captures import Links, link_key
from bot.telemetry import Telemetry
from bot.watching import Watching, make_watching, watch_plan
from bot.worker import Worker
from engine.errors import GpuwhyError, SourceError, UsageError

if TYPE_CHECKING:
    from bot.connection import Connection
    from bot.settings import Settings

log = logging.getLogger(__name__)

FAILED = 70
_WATCH_S = 0.25
_BACKLOG_EVERY = 20
# After the last answer, messages still wait for their channel's pace.
_FLUSH_S = 10.0

Connect = Callable[["Settings", Service], "Connection"]


class Server:
    """One process: HTTP pages, questions, deliveries.

    Args:
        settings: everything that is configured.
        open_source: makes what readings come from, if there is anything.
        connect: connects to Slack, if it is configured.
        pace_s: shortest time between two messages of a channel (s).
        watched: makes what the watch looks at; None: what questions are about.

    Raises:
        UsageError: the settings do not fit together.
    """

    def __init__(
        self,
        settings: Settings,
        open_source: OpenSource | None,
        connect: Connect | None = None,
        *,
        pace_s: float = 1.0,
        watched: OpenSource | None = None,
    ) -> None:
        server = settings.server
        self._settings = settings
        self._pace_s = pace_s
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.telemetry = Telemetry()
        self.store = Store(store_url(settings))
        self.policy = make_policy(settings.policy)
        self._messenger = make_messenger(settings)
        self.backend = Backend(
            open_source,
            overlays=settings.overlays,
            sitemap=settings.sitemap,
            window_s=settings.window,
            timeout_s=server.timeout,
            fetch=self._messenger.fetch if self._messenger else None,
            open_logs=lambda: open_logs(settings),
        )
        members = self._messenger.members if self._messenger else _nobody
        self._desk = Desk(
            self.store,
            self.policy,
            capture_settings(settings),
            clock=time.time,
            decide_within_s=settings.capture.decide_within,
            wake=self._decision,
        )
        self._runner: Runner | None = None
        self._groups = GroupBook(self.policy.groups, members, time.monotonic)
        self.service = Service(
            store=self.store,
            backend=self.backend,
            policy=self.policy,
            groups=self._groups,
            readers=Readers(parse_words, understand, free_question),
            telemetry=self.telemetry,
            clock=time.time,
            wake=self._question,
            desk=self._desk,
        )
        self._worker = Worker(
            self.store,
            self.service,
            name=self._name,
            clock=time.time,
            telemetry=self.telemetry,
            wake=self._message,
            at_once=server.workers,
            lease_s=server.lease,
            special={KIND: self._desk.answer},
        )
        self._watching = self._make_watching(watched or open_source)
        self._sender: Sender | None = None
        self._connection = connect(settings, self.service) if connect and self._messenger else None
        self.readiness = Readiness(self._checks(), time.monotonic, self.telemetry)
        self._links: Links | None = None
        self.urls: tuple[str, ...] = ()

    async def run(self, stop: asyncio.Event, *, on_ready: Callable[[], None] = lambda: None) -> int:
        """Serve until ``stop`` is set; return the exit status.

        Raises:
            GpuwhyError: it cannot start.
        """
        async with AsyncExitStack() as stack:
            await self._open(stack)
            tasks = self._start_tasks()
            try:
                runner = await self._listen(stack)
                if self._connection:
                    await self._connection.start()
                    stack.push_async_callback(self._connection.stop)
                on_ready()
                status = await _first_of(stop, tasks)
                await self._drain(runner)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return status

    async def _open(self, stack: AsyncExitStack) -> None:
        """Open the store, load knowledge and rules; both are closed with the stack."""
        folder = self._settings.server.folder
        try:
            await asyncio.to_thread(folder.mkdir, 0o700, parents=True, exist_ok=True)
        except OSError as problem:
            said = f"data folder {folder}: {problem.strerror}"
            raise UsageError(said, hint="set server.data to a folder we may write") from None
        key = await asyncio.to_thread(link_key, folder)
        self._links = Links(public_url(self._settings), key)
        await self.store.migrate()
        await self.store.open()
        stack.push_async_callback(self.store.close)
        stack.push_async_callback(self.backend.aclose)
        await self.backend.start()
        if self._messenger:
            stack.push_async_callback(self._messenger.aclose)
            self._sender = Sender(
                self.store,
                self._messenger,
                name=self._name,
                clocks=Clocks(time.time, time.monotonic),
                telemetry=self.telemetry,
                # A post may take two calls: looking for it, and sending it.
                lease_s=2 * self._settings.slack.timeout + 1,
                pace_s=self._pace_s,
            )

    def _start_tasks(self) -> list[asyncio.Task[None]]:
        self._runner = self._make_runner()
        work = {
            "worker": self._worker.run(),
            "captures": self._runner.run(),
            "watch": self._watch(),
        }
        if self._watching:
            work["incidents"] = self._watching.run()
        if self._sender:
            work["sender"] = self._sender.run()
        if self.policy.groups and self._messenger:
            work["groups"] = self._groups.run()
        return [asyncio.create_task(run, name=name) for name, run in work.items()]

    def _make_watching(self, source: OpenSource | None) -> Watching | None:
        plan = watch_plan(self._settings)
        if plan is None:
            return None
        if source is None:
            hint = "set watch.prometheus or prometheus.url"
            raise UsageError("watch.every is set, but there is no source", hint=hint)
        return make_watching(
            plan,
            source,
            store=self.store,
            backend=self.backend,
            policy=self.policy,
            telemetry=self.telemetry,
            wake=self._message,
        )

    def _make_runner(self) -> Runner:
        links = self._links
        assert links is not None, "made when the server was opened"
        return Runner(
            self.store,
            capture_settings(self._settings),
            name=self._name,
            clock=time.time,
            link=lambda capture, file: links.link(capture, file, now=time.time()),
            wake=self._message,
            lease_s=self._settings.server.lease,
        )

    async def _listen(self, stack: AsyncExitStack) -> web.AppRunner:
        settings = self._settings
        host, port = settings.server.address
        folder = settings.server.folder
        assert self._links is not None, "made when the server was opened"
        site = Site(
            service=self.service,
            policy=self.policy,
            readiness=self.readiness,
            telemetry=self.telemetry,
            tokens=TokenBook(settings.server.tokens),
            captures=folder / "captures",
            links=self._links,
            clock=time.time,
        )
        app = make_app(site)
        if self._connection:
            self._connection.mount(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=settings.server.drain)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as problem:
            said = f"cannot listen on {settings.server.listen}: {problem.strerror or problem}"
            raise UsageError(said, hint="set server.listen to a free address") from None
        self.urls = tuple(_url(address) for address in runner.addresses)
        return runner

    async def _drain(self, runner: web.AppRunner) -> None:
        """Take no more, finish what has begun, send what waits."""
        self.readiness.draining = True
        left_until = time.monotonic() + self._settings.server.drain
        for site in list(runner.sites):
            await site.stop()
        if self._connection:
            await self._connection.stop()
        left = max(0.0, left_until - time.monotonic())
        parts = (self._worker, self._runner, self._watching)
        await asyncio.gather(*(part.drain(left) for part in parts if part))
        if self._sender:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_FLUSH_S, max(1.0, left_until - time.monotonic()))):
                    await self._flushed()
            self._sender.stop()

    async def _flushed(self) -> None:
        """Return once no message waits, or the store does not say."""
        with suppress(GpuwhyError):
            while (await self.store.backlog()).deliveries:  # noqa: ASYNC110 - other processes' too
                await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        """Measure how late the loop is, and what waits in the store."""
        loop = asyncio.get_running_loop()
        rounds = 0
        while True:
            due = loop.time() + _WATCH_S
            await asyncio.sleep(_WATCH_S)
            self.telemetry.loop_lag.set(max(0.0, loop.time() - due))
            rounds += 1
            if rounds % _BACKLOG_EVERY == 0:
                with suppress(GpuwhyError):
                    waiting = await self.store.backlog()
                    self.telemetry.backlog.labels("questions").set(waiting.questions)
                    self.telemetry.backlog.labels("deliveries").set(waiting.deliveries)

    def _checks(self) -> Mapping[str, Check]:
        checks: dict[str, Check] = {"store": self.store.ping}
        if self.backend.has_source:
            checks["source"] = self.backend.ping
        if self._messenger:
            checks["slack"] = self._messenger.ping
        if self._connection:
            checks["slack_connection"] = self._connection.ping
        return checks

    def _question(self) -> None:
        self._worker.wake()
        self._message()

    def _decision(self) -> None:
        if self._runner:
            self._runner.wake()
        self._message()

    def _message(self) -> None:
        if self._sender:
            self._sender.wake()


async def _first_of(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> int:
    """Wait until the server is told to stop, or a task that should never end does."""
    stopped = asyncio.create_task(stop.wait(), name="stop")
    done, _ = await asyncio.wait({stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    if stopped in done:
        return 0
    stopped.cancel()
    for task in done:
        log.error("%s ended by itself", task.get_name(), exc_info=task.exception())
    return FAILED


def _url(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"http://{host}:{address[1]}"


async def _nobody(group: str) -> tuple[str, ...]:
    raise SourceError(f"Slack is off, so nobody knows who is in group {group}")
