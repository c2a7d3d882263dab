"""The independent Slack emulator ``local-slack`` (npm, MIT), kept off the network.

It listens on all interfaces, so it and the tests that use it run in a network namespace of their
own, where there is only a loopback: `in_own_network` re-executes a command in one. The package is
installed once, from the npm registry, into a folder under the user's cache.

What it does not check (Block Kit, tokens, rate limits, signatures of its own) is checked elsewhere.

    if not isolated():
        def test_in_its_own_network():        # what a plain run of pytest collects
            run_isolated(__file__)
    else:
        async def test_something(): ...       # uses `LocalSlack`
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest

PACKAGE, VERSION = "local-slack-linux-x64", "0.1.8"
BOT_TOKEN, APP_TOKEN, SIGNING_SECRET = "xoxb-local-bot", "xapp-local-app", "local-signing-secret"
TEAM, APP, BOT = "T0LOCAL", "A0LOCAL", "U0BOT"
ALICE, BOB = "U0ALICE", "U0BOB"
GPUS, OPS = "C0GPUS", "C0OPS"

_MARK = "GPUWHY_TESTS_OWN_NETWORK"
_START_S = 20.0
_CALL_S = 10.0
_INSTALL_S = 180
_RUN_S = 300
_ROOT = Path(__file__).parents[2]


class MissingError(Exception):
    """The emulator cannot be run here; the message says what is missing."""


def isolated() -> bool:
    """Return whether this process is in a network namespace made by `in_own_network`."""
    return os.environ.get(_MARK) == "1"


def install() -> Path:
    """Return the emulator's program, installing it if need be.

    Raises:
        MissingError: npm is not there, or cannot install it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "gpuwhy-tests" / f"{PACKAGE}-{VERSION}"
    program = folder / "node_modules" / PACKAGE / "bin" / "local-slack"
    if program.is_file():
        return program
    if isolated():
        msg = "it is not installed, and here is no network: call install() before"
        raise MissingError(msg)
    npm = shutil.which("npm")
    if npm is None:
        msg = f"npm is missing, which installs {PACKAGE}@{VERSION}"
        raise MissingError(msg)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Installed beside and moved: runs at the same time do not see half of it.
    with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
        command = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--prefix",
            fresh,
            f"{PACKAGE}@{VERSION}",
        ]
        done = _run(command, _INSTALL_S)
        if done.returncode:
            msg = f"npm cannot install {PACKAGE}@{VERSION}: {done.stderr.strip()[-300:]}"
            raise MissingError(msg)
        if not program.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            Path(fresh).rename(folder)
            Path(fresh).mkdir()
    return program


def in_own_network(argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` with no network but a loopback of its own.

    Raises:
        MissingError: that cannot be done here.
    """
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            msg = f"{tool} is missing (packages util-linux and iproute2)"
            raise MissingError(msg)
    own = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    command = [*own, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    tried = _run([*command, "true"], _CALL_S)
    if tried.returncode:
        msg = f"no network namespace can be made (be root, or allow user namespaces): {tried.stderr.strip()}"
        raise MissingError(msg)
    return [*command, *argv]


def run_isolated(file: str, *arguments: str) -> None:
    """Run a file of tests (``test_….py``), or another script, in a network of its own.

    Skips the calling test, saying what is missing, where that cannot be done; with ``slack`` in
    ``GPUWHY_TESTS_REQUIRE`` it fails instead.
    """
    is_test = Path(file).name.startswith("test_")
    how = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
    try:
        install()
        command = in_own_network([sys.executable, *how, file, *arguments])
    except MissingError as error:
        if "slack" in os.environ.get("GPUWHY_TESTS_REQUIRE", "").split(","):
            pytest.fail(f"local-slack: {error}")
        pytest.skip(f"local-slack: {error}")
    # The workers of pytest-xdist hand variables down that confuse a run of its own.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = _run(command, _RUN_S, {**environ, _MARK: "1", "PYTHONPATH": str(_ROOT)})
    if done.returncode:
        said = f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
        pytest.fail(f"in its own network:\n{said}", pytrace=False)


def _run(
    command: Sequence[str], timeout_s: float, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; one that takes too long has failed, and nothing of it stays."""
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env=environ,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\n{command[0]} took longer than {timeout_s:g} s"
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LocalSlack:
    """One workspace with two people, two channels and the bot; use as ``async with``.

    Args:
        request_url: where events go over HTTP; None for Socket Mode.
    """

    def __init__(self, request_url: str | None = None) -> None:
        self._request_url = request_url
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None
        self._folder = tempfile.TemporaryDirectory()

    @property
    def url(self) -> str:
        """Base address, of the UI too."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def api_url(self) -> str:
        """Base address of the Web API."""
        return f"{self.url}/api/"

    async def __aenter__(self) -> Self:
        assert isolated(), "it listens on all interfaces: run it by `run_isolated`"
        folder = Path(self._folder.name)
        config = folder / "workspace.json"
        config.write_text(json.dumps(self._config()))
        with (folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(install()),
                "--config", str(config),
                "--port", str(self._port),
                "--base-host", "127.0.0.1",
                "--files-dir", str(folder / "files"),
                stdout=log,
                stderr=log,
            )  # fmt: skip
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_CALL_S))
        try:
            await self._ready()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _CALL_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        self._folder.cleanup()

    async def say(
        self, text: str, *, user: str = ALICE, channel: str = GPUS, thread: str | None = None
    ) -> str:
        """Write a message in a channel and return its ts."""
        return str((await self._write(text, user, channel, thread))["ts"])

    async def attach(
        self, name: str, raw: bytes, text: str = "", *, user: str = ALICE, channel: str = GPUS
    ) -> None:
        """Write a message with a file."""
        form = aiohttp.FormData()
        for key, value in (("channel", channel), ("user", user), ("text", text)):
            form.add_field(key, value)
        form.add_field(
            "file",
            raw,
            filename=name,
            content_type="image/png" if name.endswith(".png") else "text/plain",
        )
        async with self._session.post(f"{self.url}/_control/upload", data=form) as answer:
            assert answer.status == 200, await answer.text()

    async def tell(self, text: str, *, user: str = ALICE) -> tuple[str, str]:
        """Write a direct message to the bot and return its channel and ts."""
        message = await self._write(text, user, user, None)
        return str(message["channel"]), str(message["ts"])

    async def command(self, text: str, *, user: str = ALICE, channel: str = GPUS) -> None:
        """Use ``/gpu``."""
        await self._control(
            "command", {"channel": channel, "user": user, "command": "/gpu", "text": text}
        )

    async def click(
        self, ts: str, action: dict[str, Any], *, user: str = ALICE, channel: str = GPUS
    ) -> None:
        """Press a button of a message; ``action`` is the button as it stands in the message."""
        pressed = {
            key: action[key] for key in ("type", "action_id", "value", "text") if key in action
        }
        body = {"channel": channel, "messageTs": ts, "user": user, "action": pressed}
        await self._control("interact", body)

    async def edit(self, ts: str, text: str, *, user: str = ALICE, channel: str = GPUS) -> None:
        """Change a message."""
        await self._control(
            "edit-message", {"channel": channel, "ts": ts, "user": user, "text": text}
        )

    async def messages(self, channel: str = GPUS) -> list[dict[str, Any]]:
        """Return the messages of a channel, threads and ephemeral ones included, oldest first."""
        found = await self._get(f"messages/{channel}")
        messages: list[dict[str, Any]] = found["messages"] if isinstance(found, dict) else found
        return sorted(messages, key=lambda message: float(message["ts"]))

    async def state(self) -> dict[str, Any]:
        """Return the whole workspace."""
        found: dict[str, Any] = await self._get("state")
        return found

    async def log(self) -> list[dict[str, Any]]:
        """Return every envelope, acknowledgement and Web API call, in order."""
        found = await self._get("log")
        entries: list[dict[str, Any]] = (
            found.get("log", found) if isinstance(found, dict) else found
        )
        return entries

    async def _write(
        self, text: str, user: str, channel: str, thread: str | None
    ) -> dict[str, Any]:
        body = {"channel": channel, "user": user, "text": text}
        done = await self._control("message", body | ({"thread_ts": thread} if thread else {}))
        message: dict[str, Any] = done["message"]
        return message

    async def _control(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(f"{self.url}/_control/{name}", json=body) as answer:
            found: dict[str, Any] = await answer.json(content_type=None)
            assert answer.status == 200, (name, found)
            return found

    async def _get(self, name: str) -> Any:
        async with self._session.get(f"{self.url}/_control/{name}") as answer:
            assert answer.status == 200, name
            return await answer.json(content_type=None)

    async def _ready(self) -> None:
        async with asyncio.timeout(_START_S):
            while True:
                try:
                    await self._get("state")
                except (aiohttp.ClientError, OSError):
                    assert self._process is not None
                    if self._process.returncode is not None:
                        said = (Path(self._folder.name) / "log").read_text()[-500:]
                        pytest.fail(f"local-slack ended: {said}")
                    await asyncio.sleep(0.05)
                else:
                    return

    def _config(self) -> dict[str, Any]:
        mode = (
            {"mode": "events", "requestUrl": self._request_url}
            if self._request_url
            else {"mode": "socket"}
        )
        people = [{"id": ALICE, "name": "alice"}, {"id": BOB, "name": "bob"}]
        channels = [(GPUS, "gpus"), (OPS, "ops")]
        return {
            "workspace": {"name": "Local", "domain": "local", "teamId": TEAM},
            "app": {
                "appId": APP,
                "botUserId": BOT,
                "botName": "gpuwhy",
                "botToken": BOT_TOKEN,
                "appToken": APP_TOKEN,
                "signingSecret": SIGNING_SECRET,
                **mode,
            },
            "users": people,
            "channels": [
                {"id": id_, "name": name, "members": [ALICE, BOB, BOT]} for id_, name in channels
            ],
        }
