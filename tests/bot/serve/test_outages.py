"""Slack or the readings are away while questions come: they are answered later, once, in order."""

from __future__ import annotations

import asyncio
import os
import signal
from urllib.parse import urlencode

import aiohttp

from tests.bot.serve.process import Process
from tests.bot.serve.test_killed import all_done, answers
from tests.support.slackrequests import FORM, command
from tests.support.waiting import until

# GPUWHY_TEST_AWAY asks for a whole minute.
AWAY_S = float(os.environ.get("GPUWHY_TEST_AWAY", "4"))


def ask(text: str, number: int) -> str:
    return urlencode(command(text, channel_id=f"C{number % 2}", trigger_id=f"t{number}"))


async def test_while_slack_is_away_answers_wait_in_order(slack, tmp_path):
    server = Process(tmp_path, slack)
    words: list[str] = []
    try:
        await server.start()
        await slack.stop()
        loop = asyncio.get_running_loop()
        back_at = loop.time() + AWAY_S
        async with aiohttp.ClientSession() as session:
            while loop.time() < back_at or len(words) < 6:
                words.append(f"frob{len(words):04d}")
                body = ask(f"decode {words[-1]}", len(words) - 1)
                assert await server.ask(session, body, FORM) == 200
                await asyncio.sleep(AWAY_S / 12)
        await slack.start()
        await all_done(tmp_path)
        assert await server.stop() == 0
    finally:
        server.end()
    for channel in (0, 1):
        shown = [m.content["text"] for m in slack.in_channel(f"C{channel}")]
        assert [text[:8] for text in shown] == words[channel::2]
    assert "Traceback" not in server.log.read_text()


async def test_sigterm_while_the_source_says_nothing(slack, tmp_path):
    """What cannot be finished in time is given back, and answered after the next start, once."""
    held = asyncio.Event()
    asked = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await held.wait()
        writer.close()

    source = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{source.sockets[0].getsockname()[1]}"
    server = Process(tmp_path, slack, prometheus=url, GPUWHY_SERVER_DRAIN="1s")
    try:
        await server.start()
        async with aiohttp.ClientSession() as session:
            assert await server.ask(session, ask("why node-1:0", 1), FORM) == 200
            await asyncio.wait_for(asked.wait(), 10)
            await until(lambda: len(slack.messages) == 1)
            server.signal(signal.SIGTERM)
            assert await server.ended(20) == 0
        assert answers(slack, "looking") == 1
        held.set()
        await server.start()
        await all_done(tmp_path)
        assert await server.stop() == 0
    finally:
        held.set()
        server.end()
        source.close()
    (message,) = slack.messages.values()
    assert "closed the connection" in message.content["text"]
