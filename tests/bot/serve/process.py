"""``gpuwhy serve`` as a process of its own, driven as Slack drives it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.served import Served
from tests.support.servers import free_port
from tests.support.slackrequests import signed
from tests.support.slackserver import BOT_TOKEN, SlackServer
from tests.support.waiting import eventually

SECRET = "signing-secret-of-the-tests"
TOKEN = "a-token-of-the-tests"
METRICS = """\
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 60
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 900
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-1",Hostname="node-1"} 128
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="node-1"} 98
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",Hostname="node-1"} 300
"""


class Process:
    """One server; after `kill` or `stop` it can be started again on the same port and store."""

    def __init__(
        self, folder: Path, slack: SlackServer, *, prometheus: str | None = None, **variables: str
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.log = folder / "log"
        metrics = folder / "m.prom"
        metrics.write_text(METRICS)
        self._source = ["--metrics", str(metrics)]
        if prometheus:
            self._source = ["--prometheus", prometheus]
        keep = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
        self._environment = {
            **keep,
            "GPUWHY_SERVER_DATA": str(folder / "data"),
            "GPUWHY_SERVER_LISTEN": f"127.0.0.1:{self.port}",
            "GPUWHY_SERVER_TOKENS": f"ci={TOKEN}",
            "GPUWHY_SERVER_LEASE": "2s",
            "GPUWHY_SLACK_MODE": "http",
            "GPUWHY_SLACK_BOT_TOKEN": BOT_TOKEN,
            "GPUWHY_SLACK_SIGNING_SECRET": SECRET,
            "GPUWHY_SLACK_API_URL": slack.url,
            "GPUWHY_SLACK_TIMEOUT": "1s",
            **variables,
        }
        self._process: Served | None = None
        # Python that runs in the process before anything else.
        self.prelude = ""

    async def start(self) -> None:
        """Start, and wait until it answers."""
        self._process = Served(
            ["serve", *self._source],
            environment=self._environment,
            folder=self.folder,
            log=self.log,
            prelude=self.prelude,
        )
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            while True:
                assert self._process.poll() is None, self.log.read_text()[-2000:]
                try:
                    async with session.get(f"{self.url}/healthz"):
                        return
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def signal(self, number: int = signal.SIGTERM) -> None:
        assert self._process
        self._process.send_signal(number)

    async def ended(self, seconds: float = 40) -> int:
        """Wait for its end; return the exit status."""
        assert self._process
        return await asyncio.to_thread(self._process.wait, seconds)

    async def stop(self) -> int:
        self.signal()
        return await self.ended()

    def end(self) -> None:
        """Leave nothing behind."""
        if self._process and self._process.poll() is None:
            self.kill()

    async def ask(self, session: aiohttp.ClientSession, body: str, content_type: str) -> int | None:
        """Send a request as Slack does; return the status, None if nobody answers."""
        headers = {**signed(body, time.time(), SECRET), "Content-Type": content_type}
        try:
            async with session.post(
                f"{self.url}/slack/events",
                data=body.encode(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=3),
            ) as response:
                await response.read()
                return response.status
        except (aiohttp.ClientError, TimeoutError):
            return None

    async def api(self, command: str, args: dict[str, object]) -> dict[str, Any]:
        """Ask over the HTTP API; return the document."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}/api/v1/{command}", json=args) as response,
        ):
            document: dict[str, Any] = await response.json()
            return document

    async def insist(self, session: aiohttp.ClientSession, body: str, content_type: str) -> None:
        """Send a request again until it is acknowledged, as Slack does."""

        async def taken() -> bool:
            return await self.ask(session, body, content_type) == 200

        await eventually(taken, 60, pause_s=0.2)
