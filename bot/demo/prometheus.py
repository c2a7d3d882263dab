"""A Prometheus of our own for a while: history loaded by promtool, a free loopback port."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from bot.demo.folder import own_folder
from engine.errors import SourceError

_START_S = 30.0
_STOP_S = 10.0
_POLL_S = 0.05
# Blocks older than the retention are dropped at start, and simulated history may be years old.
_RETENTION = "100y"


def installed() -> bool:
    """Return whether both programs that are needed can be found."""
    return bool(shutil.which("prometheus") and shutil.which("promtool"))


@asynccontextmanager
async def serving(history: Iterable[str]) -> AsyncIterator[str]:
    """Load history (parts of an OpenMetrics text), serve it, and yield the server's address.

    Everything is removed afterwards.

    Raises:
        SourceError: promtool refuses the text, or the server does not start within 30 s.
    """
    with own_folder() as folder:
        await asyncio.to_thread(_write, folder / "history.om", history)
        tied = await _tied()
        await _load(folder, tied)
        (folder / "prometheus.yml").write_text("{}\n")
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            *tied,
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--storage.tsdb.retention.time={_RETENTION}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            # An interrupt from the keyboard is ours to handle, in order.
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            await _ready(address, process)
            yield address
        finally:
            await _stop(process)


def _write(file: Path, parts: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)


async def _tied() -> tuple[str, ...]:
    """Return what stands before a command so that the kernel ends it with this thread, if it can.

    Without (another system, an old setpriv) a killed demonstration leaves its server behind.
    """
    tied = ("setpriv", "--pdeathsig", "TERM", "--")
    if sys.platform != "linux" or not shutil.which("setpriv"):
        return ()
    nowhere = asyncio.subprocess.DEVNULL
    trial = await asyncio.create_subprocess_exec(*tied, "true", stdout=nowhere, stderr=nowhere)
    return () if await trial.wait() else tied


async def _load(folder: Path, tied: tuple[str, ...]) -> None:
    process = await asyncio.create_subprocess_exec(
        *tied,
        "promtool",
        *("tsdb", "create-blocks-from", "openmetrics", "--quiet"),
        *(str(folder / "history.om"), str(folder / "data")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = await process.communicate()
    finally:
        await _stop(process)
    if process.returncode:
        raise SourceError(f"promtool cannot load the history: {_last_line(said)}")


async def _ready(address: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_S):
                while process.returncode is None:
                    with suppress(aiohttp.ClientError):
                        async with session.get(f"{address}/-/ready") as answer:
                            if answer.status == 200:
                                return
                    await asyncio.sleep(_POLL_S)
    assert process.stderr is not None
    said = await process.stderr.read() if process.returncode is not None else b"no answer"
    raise SourceError(f"prometheus does not start: {_last_line(said)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it gives no reason"
