"""Incidents in a Slack channel: one message each, edited in place, resolved in its thread.

`gpuwhy serve` as a process, real Prometheus servers, and the emulator of Slack that others wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys

import aiohttp

from bot.render.blockkit import validate
from tests.support.localslack import (
    APP_TOKEN,
    BOT,
    BOT_TOKEN,
    OPS,
    LocalSlack,
    free_port,
    isolated,
    run_isolated,
)
from tests.support.stages import Stage, scenes
from tests.support.waiting import eventually

if not isolated():

    def test_in_its_own_network():
        run_isolated(__file__)

else:

    @contextlib.asynccontextmanager
    async def server(slack, prometheus, folder):
        """Run `gpuwhy serve` with a watch until the end of the block."""
        port = free_port()
        (folder / "gpuwhy.yaml").write_text(
            f"watch: {{every: 1s, hold: 1s, resolve_after: 2s, channel: {OPS}}}\n"
        )
        keep = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
        environment = {
            **keep,
            "GPUWHY_SERVER_DATA": str(folder / "data"),
            "GPUWHY_SERVER_LISTEN": f"127.0.0.1:{port}",
            "GPUWHY_SLACK_MODE": "socket",
            "GPUWHY_SLACK_BOT_TOKEN": BOT_TOKEN,
            "GPUWHY_SLACK_APP_TOKEN": APP_TOKEN,
            "GPUWHY_SLACK_API_URL": slack.api_url,
            "GPUWHY_PROMETHEUS_URL": prometheus,
        }
        run = "from bot.surfaces.cli.main import main; main()"
        with (folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", run, "serve"),
                env=environment, cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip

        async def ready():
            assert process.returncode is None, (folder / "log").read_text()
            with contextlib.suppress(aiohttp.ClientError):
                async with (
                    aiohttp.ClientSession() as session,
                    session.get(f"http://127.0.0.1:{port}/readyz") as page,
                ):
                    return page.status == 200

        try:
            await eventually(ready, 40, pause_s=0.1)
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.wait(), 40)
        assert "Traceback" not in (folder / "log").read_text()

    async def ours(slack):
        """The bot's messages in the channel: those in no thread, and all others."""
        found = [m for m in await slack.messages(OPS) if m.get("user") == BOT or m.get("bot_id")]
        heads = [m for m in found if m.get("thread_ts") in {None, m["ts"]}]
        return heads, [m for m in found if m not in heads]

    async def test_an_incident_from_its_opening_to_its_end(tmp_path):
        with scenes(tmp_path / "scenes") as addresses:
            async with Stage(addresses) as stage, LocalSlack() as slack:
                async with server(slack, stage.url, tmp_path) as process:
                    stage.show("sick")

                    async def announced():
                        return len((await ours(slack))[0]) == 2

                    await eventually(announced, 40, pause_s=0.2)
                    process.kill()
                async with server(slack, stage.url, tmp_path):
                    await asyncio.sleep(3)
                    heads, replies = await ours(slack)
                    assert (len(heads), replies) == (2, [])
                    brake = next(m for m in heads if "power brake" in json.dumps(m))
                    assert "node-1:3" in json.dumps(brake)
                    stage.show("healthy")

                    async def resolved():
                        heads, replies = await ours(slack)
                        done = all(m["text"].startswith("Resolved") for m in heads)
                        return done and len(replies) == 2

                    await eventually(resolved, 40, pause_s=0.2)
                    heads, replies = await ours(slack)
        assert len(heads) == 2
        assert {m["thread_ts"] for m in replies} == {m["ts"] for m in heads}
        for message in (*heads, *replies):
            assert not validate({"text": message["text"], "blocks": message["blocks"]})
