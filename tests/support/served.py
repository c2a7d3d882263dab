"""Processes of ``gpuwhy serve`` that start in half the time: forked from one that has imported it.

Each is a process of its own all the same, with its own environment, folder and log, and is killed
as any other. That the command starts by itself is seen where tests start it by its name
(``tests/scenarios``).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# What it imports until it answers.
_IMPORTED = (
    "aiosqlite",
    "alembic.command",
    "alembic.config",
    "alembic.ddl",
    "asyncpg",
    "bot.captures",
    "bot.serve",
    "bot.server",
    "bot.serversettings",
    "bot.slackconnection",
    "bot.surfaces.cli.inputs",
    "bot.surfaces.cli.main",
    "bot.surfaces.cli.serve",
    "bot.surfaces.slack.app",
    "bot.surfaces.slack.http",
    "bot.surfaces.slack.listeners.mention",
    "bot.surfaces.slack.socket",
    "engine.decode.decode",
    "engine.diagnosis",
    "engine.inference.durable",
    "engine.sources",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_IMPORTED))


class Served:
    """One process, as `subprocess.Popen` has it.

    Args:
        words: the arguments of ``gpuwhy``.
        environment: all of its environment.
        folder: where it runs.
        log: where what it prints is added.
        prelude: Python that runs in it before anything else.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        prelude: str = "",
    ) -> None:
        given = (list(words), dict(environment), str(folder), str(log), prelude)
        self._process = _context.Process(target=_run, args=given)
        self._process.start()

    def poll(self) -> int | None:
        """Return the exit status, a signal's number below 0, or None while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int:
        """Wait for the end; return the exit status.

        Raises:
            TimeoutExpired: it has not ended in time.
        """
        self._process.join(seconds)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("gpuwhy", seconds or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self._process.pid or 0, number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.send_signal(signal.SIGKILL)


def _run(
    words: Sequence[str], environment: Mapping[str, str], folder: str, log: str, prelude: str
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.close(written)
    exec(prelude, {})
    from bot.surfaces.cli.main import main

    sys.argv = ["gpuwhy", *words]
    main()
