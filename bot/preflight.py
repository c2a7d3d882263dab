"""``gpuwhy serve --check``: is the configuration whole, and does everything it names answer?

Nothing is changed: the store is not migrated, no message is sent.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from bot.answer import Align, Answer, Level, Table, Tone, code, line, strong
from bot.backend import Backend, OpenSource
from bot.delivery.webapi import WebApi
from bot.fromsettings import (
    capture_settings,
    make_messenger,
    make_policy,
    policy_rules,
    store_url,
)
from bot.logsources import configured, open_logs
from bot.phrases import count
from bot.policy.policy import unknown_commands
from bot.store import Store, StoreError
from bot.watching import watch_plan
from engine.capture import Via
from engine.errors import GpuwhyError, SourceError, UsageError
from engine.units import duration

if TYPE_CHECKING:
    from bot.settings import Settings

_TIMEOUT_S = 15.0
# Of a log so much is asked for, to see whether it can be read (s).
_LOGS_S = 60.0
_REACHED = {
    Via.AUTO: "targets are reached by ssh, this machine directly",
    Via.LOCAL: "all targets are on this machine",
    Via.SSH: "targets are reached by ssh",
}

Probe = Callable[[], Awaitable[str]]


async def check(
    settings: Settings, open_source: OpenSource | None, watched: OpenSource | None = None
) -> Answer:
    """Check everything at the same time; what fails is among the answer's errors.

    Args:
        settings: everything that is configured.
        open_source: makes what readings come from, if there is anything.
        watched: makes what the watch looks at; None: what questions are about.
    """
    probes = _Probes(settings, open_source, watched)
    try:
        found = await asyncio.gather(*(_tried(name, probe) for name, probe in probes.all()))
    finally:
        await probes.aclose()
    errors = tuple(error for _, _, error in found if error)
    ok = strong("ready to serve", Tone.GOOD)
    bad = strong(f"{count(len(errors), 'problem')}", Tone.BAD)
    return Answer(
        title=line(bad if errors else ok),
        blocks=(
            Table(
                ("what", "state", "says"),
                tuple(
                    (line(code(name)), line("fails" if error else "ok"), line(said))
                    for name, said, error in found
                ),
                (Align.LEFT,) * 3,
            ),
        ),
        data={
            "schema": "gpuwhy/serve-check/1",
            "ok": not errors,
            "checks": [
                {"name": name, "ok": error is None, "says": said} for name, said, error in found
            ],
        },
        level=Level.CRITICAL if errors else Level.CLEAR,
        errors=errors,
    )


async def _tried(name: str, probe: Probe) -> tuple[str, str, GpuwhyError | None]:
    """Return the name, what is said, and the error if there is one."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return name, await probe(), None
    except GpuwhyError as error:
        kind = SourceError if error.exit_status == SourceError.exit_status else UsageError
        named = kind(f"{name}: {error.message}", hint=error.hint, code=error.code)
        return name, error.one_line(), named
    except TimeoutError:
        said = f"no answer in {_TIMEOUT_S:g} s"
        return name, said, SourceError(f"{name}: {said}", hint="check that it runs")


class _Probes:
    """One method a dependency; each returns a line, or raises."""

    def __init__(
        self, settings: Settings, open_source: OpenSource | None, watched: OpenSource | None
    ) -> None:
        self._settings = settings
        self._backend = Backend(open_source, overlays=settings.overlays, sitemap=settings.sitemap)
        self._watched = Backend(watched) if watched else self._backend

    def all(self) -> list[tuple[str, Probe]]:
        probes: list[tuple[str, Probe]] = [
            ("rules", self._rules),
            ("policy", self._policy),
            ("data", self._data),
            ("listen", self._listen),
            ("tokens", self._tokens),
            ("store", self._store),
            ("source", self._source),
            ("capture", self._capture),
            ("slack", self._slack),
            ("watch", self._watch),
        ]
        if configured(self._settings):
            probes.append(("logs", self._logs))
        if self._settings.slack.mode == "socket":
            probes.append(("slack_socket", self._socket))
        return probes

    async def aclose(self) -> None:
        await self._backend.aclose()
        await self._watched.aclose()

    async def _rules(self) -> str:
        await self._backend.start(strict=True)
        return "knowledge and rules load"

    async def _policy(self) -> str:
        rules = policy_rules(self._settings.policy)
        unknown = unknown_commands(rules, self._backend.commands)
        if unknown:
            known = ", ".join(self._backend.commands)
            raise UsageError(f"no command {', '.join(unknown)}", hint=f"use {known} or approve")
        groups = make_policy(self._settings.policy).groups
        more = f", for {count(len(groups), 'Slack group')}" if groups else ""
        return f"{count(len(rules), 'rule')}{more}"

    async def _data(self) -> str:
        folder = self._settings.server.folder
        return await asyncio.to_thread(_writable, folder)

    async def _listen(self) -> str:
        host, port = self._settings.server.address
        try:
            server = await asyncio.start_server(lambda _reader, writer: writer.close(), host, port)
        except OSError as problem:
            said = f"cannot listen on {self._settings.server.listen}: {problem.strerror or problem}"
            raise UsageError(said, hint="set server.listen to a free address") from None
        server.close()
        await server.wait_closed()
        return self._settings.server.listen

    async def _tokens(self) -> str:
        names = sorted(self._settings.server.tokens)
        return ", ".join(names) if names else "none: the API lets nobody in"

    async def _store(self) -> str:
        store = Store(store_url(self._settings))
        try:
            await store.open()
        except StoreError as error:
            if error.code == "store_outdated" or self._is_new():
                return f"{store.place}, made or brought up to date at the start"
            raise
        finally:
            await store.close()
        return store.place

    def _is_new(self) -> bool:
        """Return whether the store is our own file, which is made at the first start."""
        settings = self._settings
        file = settings.server.folder / "gpuwhy.sqlite3"
        return settings.store.url is None and not file.exists()

    async def _source(self) -> str:
        if not self._backend.has_source:
            return "none: only decode, read and rules can be asked"
        return await self._backend.ping(thorough=True)

    async def _logs(self) -> str:
        logs = open_logs(self._settings)
        assert logs is not None, "only tried where logs are configured"
        try:
            # No machine is named, so that none is called by ssh: which ones there are is not set.
            now = time.time()
            await logs.events([], now - _LOGS_S, now)
            unread = [u for u in logs.take_unread() if u.what != "ssh"]
        finally:
            await logs.aclose()
        if unread:
            raise SourceError(unread[0].one_line(), hint=unread[0].fix, code="logs_unread")
        return logs.name

    async def _capture(self) -> str:
        settings = capture_settings(self._settings)
        ssh = settings.ssh
        for name, file in (("identity", ssh.identity), ("config", ssh.config)):
            if file is not None and not await asyncio.to_thread(os.access, file, os.R_OK):
                said = f"capture.ssh.{name} {file} cannot be read"
                raise UsageError(said, hint="name a file that the server may read")
        if settings.via is Via.SSH and shutil.which(ssh.program) is None:
            raise UsageError("there is no ssh client", hint="install openssh-client")
        return _REACHED[settings.via]

    async def _slack(self) -> str:
        messenger = make_messenger(self._settings)
        if messenger is None:
            return "off"
        try:
            return f"{self._settings.slack.mode} mode, {await messenger.who()}"
        finally:
            await messenger.aclose()

    async def _watch(self) -> str:
        plan = watch_plan(self._settings)
        if plan is None:
            return "off"
        if not self._watched.has_source:
            hint = "set watch.prometheus or prometheus.url"
            raise UsageError("watch.every is set, but there is no source", hint=hint)
        name = await self._watched.ping(thorough=True)
        told = f"channel {plan.channel}" if plan.channel else "no channel"
        return f"{plan.named(name)} every {duration(plan.pace.every_s)}, {told}"

    async def _socket(self) -> str:
        token = self._settings.slack.app_token
        if token is None or token.get_secret_value().startswith("xoxb-"):
            raise UsageError("there is no app token", hint="set GPUWHY_SLACK_APP_TOKEN to xapp-…")
        api = WebApi(token.get_secret_value(), self._settings.slack.api_url, _TIMEOUT_S)
        try:
            await api.call("apps.connections.open", {}, form=True)
        finally:
            await api.aclose()
        return "Slack lets us connect"


def _writable(folder: Path) -> str:
    """Return the folder if we may write in it, or in the nearest folder above it that exists.

    Raises:
        UsageError: we may not.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as problem:
        said = f"{there} cannot be written: {problem.strerror}"
        raise UsageError(said, hint="set server.data to a folder we may write") from None
    return str(folder) if there == folder else f"{folder}, made at the start"
