"""The bot's first day: why, decode and a real capture, asked in Slack, over both transports.

Everything is real but the workspace: `gpuwhy serve` as a process, a Prometheus with the history of
a fleet that ends now, nsys with an armed program, and an emulator of Slack that others wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from bot.demo.prometheus import serving
from bot.render.blockkit import validate
from engine.simulate import DEMO_SPAN_S, demo_fleet
from tests.support.localslack import (
    ALICE,
    APP_TOKEN,
    BOB,
    BOT,
    BOT_TOKEN,
    GPUS,
    SIGNING_SECRET,
    LocalSlack,
    free_port,
    isolated,
    run_isolated,
)
from tests.support.sshd import start_sshd

SCREENSHOTS = os.environ.get("GPUWHY_SCREENSHOTS")
RULES = [
    {
        "effect": "allow",
        "who": f"user:{ALICE}",
        "commands": ["capture", "approve"],
        "targets": "node-3*",
    }
]

if not isolated():

    def test_in_its_own_network():
        run_isolated(__file__)

else:

    def data_of(folder):
        """Where the server keeps things; screenshots show a folder as a site would have it."""
        return Path("/var/lib/gpuwhy") / folder.name[-4:] if SCREENSHOTS else folder / "data"

    @contextlib.asynccontextmanager
    async def server(transport, slack, port, folder, **variables):
        """Run `gpuwhy serve` until the end of the block."""
        keep = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
        environment = {
            **keep,
            "GPUWHY_SERVER_DATA": str(data_of(folder)),
            "GPUWHY_SERVER_LISTEN": f"127.0.0.1:{port}",
            "GPUWHY_SLACK_MODE": transport,
            "GPUWHY_SLACK_BOT_TOKEN": BOT_TOKEN,
            "GPUWHY_SLACK_APP_TOKEN": APP_TOKEN,
            "GPUWHY_SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "GPUWHY_SLACK_API_URL": slack.api_url,
            "GPUWHY_POLICY_RULES": json.dumps(RULES),
            **variables,
        }
        log = (folder / "log").open("wb")
        run = "from bot.surfaces.cli.main import main; main()"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", run, "serve", env=environment, stdout=log, stderr=log
        )
        try:
            async with asyncio.timeout(40), aiohttp.ClientSession() as session:
                while True:
                    with contextlib.suppress(aiohttp.ClientError):
                        async with session.get(f"http://127.0.0.1:{port}/readyz") as ready:
                            if ready.status == 200:
                                break
                    assert process.returncode is None, (folder / "log").read_text()
                    await asyncio.sleep(0.1)
            yield
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 40)
            log.close()
        said = (folder / "log").read_text()
        assert process.returncode == 0, said
        assert "Traceback" not in said
        for secret in (BOT_TOKEN, APP_TOKEN, SIGNING_SECRET):
            assert secret not in said

    @contextlib.asynccontextmanager
    async def armed(name, folder):
        """Run a program under nsys, armed and not recording."""
        process = await asyncio.create_subprocess_exec(
            "nsys", "launch", f"--session-new={name}", "--trace=osrt,nvtx",
            sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)",
            cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            shutdown = await asyncio.create_subprocess_exec(
                "nsys", "shutdown", f"--session={name}", "--kill=sigkill",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            await asyncio.wait_for(shutdown.wait(), 30)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def answered(slack, wanted, *, channel=GPUS, count=1, seconds=60.0):
        """Wait until so many messages of the bot hold some text, and return them."""
        deadline = time.monotonic() + seconds
        while True:
            found = [m for m in await slack.messages(channel) if wanted in json.dumps(m)]
            of_bot = [m for m in found if m.get("user") == BOT or m.get("bot_id")]
            if len(of_bot) >= count:
                return of_bot
            assert time.monotonic() < deadline, await slack.messages(channel)
            await asyncio.sleep(0.1)

    def button(message, word):
        """The button of a message whose text begins with a word."""
        return next(
            element
            for block in message["blocks"]
            if block["type"] == "actions"
            for element in block["elements"]
            if element["text"]["text"].startswith(word)
        )

    async def screenshot(slack, name):
        if not SCREENSHOTS:
            return
        shot = await asyncio.create_subprocess_exec(
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--window-size=1200,1500",
            "--virtual-time-budget=4000", f"--screenshot={Path(SCREENSHOTS) / name}", slack.url,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await asyncio.wait_for(shot.wait(), 60)

    @pytest.mark.parametrize("transport", ["socket", "http"])
    async def test_why_decode_and_capture_from_slack(transport, tmp_path):
        fleet = demo_fleet(start=float(int(time.time())) - DEMO_SPAN_S)
        end = fleet.start + DEMO_SPAN_S
        history = fleet.openmetrics(end - 900.0, end, 15.0)
        port = free_port()
        url = f"http://127.0.0.1:{port}/slack/events" if transport == "http" else None
        async with (
            serving(history) as prometheus,
            LocalSlack(url) as slack,
            server(
                transport,
                slack,
                port,
                tmp_path,
                GPUWHY_PROMETHEUS_URL=prometheus,
                GPUWHY_CAPTURE_LOCAL_HOSTS="node-3",
            ),
            armed("gpuwhy-5", tmp_path),
        ):
            asked = await slack.say(f"<@{BOT}> why is gpu 3 on node-2 slow?")
            (why,) = await answered(slack, "hardware thermal slowdown")
            assert why["thread_ts"] == asked

            await slack.command("why node-3:1")
            await answered(slack, "SM clock locked low")
            await screenshot(slack, f"slack-{transport}-why.png")

            await slack.command("decode 0x88")
            await answered(slack, "hw_power_brake")
            channel, _ = await slack.tell("what does xid 79 mean?")
            await answered(slack, "fell off the PCIe bus", channel=channel)
            await slack.command("swep")
            await answered(slack, "sweep")

            await slack.command("capture nsys node-3:5 3s", user=BOB)
            await answered(slack, "you may not use")
            await slack.command("capture nsys node-3:5 3s")
            (card,) = await answered(slack, "Approve")
            assert "nsys start" in json.dumps(card)
            await slack.click(card["ts"], button(card, "Approve"))
            await answered(slack, f"http://127.0.0.1:{port}/captures/", seconds=90)
            files = [p for p in data_of(tmp_path).rglob("*.nsys-rep") if p.stat().st_size > 10_000]
            assert len(files) == 1
            await screenshot(slack, f"slack-{transport}-capture.png")

    async def test_a_capture_over_ssh(tmp_path):
        with start_sshd(tmp_path / "ssh") as sshd:
            ssh = sshd.settings
            variables = {
                "GPUWHY_CAPTURE_VIA": "ssh",
                "GPUWHY_CAPTURE_SSH_USER": ssh.user,
                "GPUWHY_CAPTURE_SSH_PORT": str(ssh.port),
                "GPUWHY_CAPTURE_SSH_IDENTITY": str(ssh.identity),
                "GPUWHY_CAPTURE_SSH_CONFIG": str(ssh.config),
                "GPUWHY_CAPTURE_SSH_OPTIONS": ",".join(ssh.options),
            }
            port = free_port()
            async with (
                LocalSlack() as slack,
                server("socket", slack, port, tmp_path, **variables),
            ):
                words = f"<@{BOT}> profile node-3:5 for 3 seconds with nsys"
                await slack.say(words)
                await answered(slack, "nsys launch --session-new=gpuwhy-5")
                async with armed("gpuwhy-5", tmp_path):
                    await slack.say(words)
                    (card,) = await answered(slack, "Approve")
                    assert "ssh" in json.dumps(card)
                    await slack.click(card["ts"], button(card, "Approve"), user=BOB)
                    await answered(slack, "you may not use")
                    await slack.click(card["ts"], button(card, "Approve"))
                    await answered(slack, f"http://127.0.0.1:{port}/captures/", seconds=90)
            (file,) = data_of(tmp_path).rglob("*.nsys-rep")
            assert file.stat().st_size > 10_000

    async def test_a_log_is_attached_and_read(tmp_path):
        kernel = "".join(
            f"[{n}.5] NVRM: Xid (PCI:0000:{n % 200:02x}:00): {code}, pid=1, name=x, text\n"
            for n in range(300)
            for code in (79, 48, 63)
        )
        secret = "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789\n"
        port = free_port()
        async with LocalSlack() as slack, server("socket", slack, port, tmp_path):
            await slack.attach("dmesg.log", kernel.encode(), f"<@{BOT}> what does this show?")
            (answer,) = await answered(slack, "fell off the PCIe bus", count=1)
            assert answer["thread_ts"]
            (share,) = await answered(slack, "gpuwhy-read.txt")
            assert share["thread_ts"] == answer["thread_ts"]
            await slack.attach("node.png", b"\x89PNG", f"<@{BOT}>")
            await answered(slack, "which cannot be read")
            channel, _ = await slack.tell(f"```{secret}{kernel[:200]}```")
            (pasted,) = await answered(slack, "fell off the PCIe bus", channel=channel)
            assert "hf_abc" not in json.dumps(pasted)
        kept = b"".join(p.read_bytes() for p in data_of(tmp_path).iterdir() if p.is_file())
        assert b"hf_abcdef" not in kept
        assert b"fallen off" in kept or b"fell off" in kept

    async def test_hostile_labels_and_a_huge_paste(tmp_path):
        fleet = demo_fleet(start=float(int(time.time())) - DEMO_SPAN_S)
        end = fleet.start + DEMO_SPAN_S
        history = (
            part.replace("node-2", "<!channel>")
            for part in fleet.openmetrics(end - 900.0, end, 15.0)
        )
        log = (
            "[  11.5] NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus. <!here>\n"
        )
        paste = (log * 600)[:40_000]
        port = free_port()
        async with (
            serving(history) as prometheus,
            LocalSlack() as slack,
            server("socket", slack, port, tmp_path, GPUWHY_PROMETHEUS_URL=prometheus),
        ):
            await slack.command("sweep")
            await answered(slack, "&lt;!channel&gt;")
            channel, _ = await slack.tell(paste)
            await answered(slack, "fell off the PCIe bus", channel=channel)
            found = [*await slack.messages(), *await slack.messages(channel)]
        ours = [m for m in found if m.get("user") == BOT or m.get("bot_id")]
        for message in ours:
            assert "<!" not in json.dumps(message)
            sent = {key: message[key] for key in ("text", "blocks") if key in message}
            assert list(validate(sent)) == []
