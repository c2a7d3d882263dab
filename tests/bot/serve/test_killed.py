"""However often the process is killed, every question gets one answer."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from bot.store import Store
from tests.bot.serve.process import Process
from tests.support.nsys import pretend
from tests.support.slackrequests import FORM, command, mention
from tests.support.slackserver import SlackServer
from tests.support.waiting import drained, eventually, until

# A question is given up when the server stops five times over it: with four it never may be.
# More than that takes minutes; GPUWHY_TEST_KILLS asks for it.
KILLS = int(os.environ.get("GPUWHY_TEST_KILLS", "4"))
# A slow start must not pile up work: at most so many new questions from one kill to the next.
PER_LIFE = 12
CHANNELS = 12


def body(number: int) -> tuple[str, str, str]:
    """Return a request, its content type, and words that only its answer has."""
    channel = f"C{number % CHANNELS:02d}"
    word = f"frob{number:04d}"
    if number % 2:
        text = f"decode {word}"
        return urlencode(command(text, channel_id=channel, trigger_id=f"t{number}")), FORM, word
    word = f"0x{0x4800_0000 + number:x}"
    ts = f"17000{number:05d}.000100"
    event = mention(f"<@U0BOT> what is {word}?", channel=channel, ts=ts, event_id=f"E{number}")
    return json.dumps(event), "application/json", word


async def all_done(folder: Path) -> None:
    store = Store(f"sqlite:///{folder / 'data' / 'gpuwhy.sqlite3'}")
    await store.open()
    await drained(store, 90)
    await store.close()


def answers(slack: SlackServer, word: str) -> int:
    """Count the messages that show the answer about a word."""
    return sum(m.content["text"].startswith(word) for m in slack.messages.values())


@pytest.mark.parametrize("readable", [True, False], ids=["may look back", "may not look back"])
async def test_every_question_gets_exactly_one_answer(readable, slack, tmp_path):
    slack.readable = readable
    server = Process(tmp_path, slack)
    dice = random.Random(7)
    words: list[str] = []
    done = asyncio.Event()
    lives = 1

    async def load(session: aiohttp.ClientSession) -> None:
        async with asyncio.TaskGroup() as group:
            number = 0
            while not done.is_set():
                request, kind, word = body(number)
                words.append(word)
                group.create_task(server.insist(session, request, kind))
                # Slack sends some requests twice, at once or a moment later.
                if number % 5 == 0:
                    group.create_task(server.insist(session, request, kind))
                number += 1
                while True:
                    await asyncio.sleep(dice.uniform(0.1, 0.3))
                    if number < lives * PER_LIFE or done.is_set():
                        break

    async def killer() -> None:
        nonlocal lives
        for _ in range(KILLS):
            await asyncio.sleep(dice.uniform(0.05, 1.5))
            server.kill()
            lives += 1
            await server.start()
        done.set()

    try:
        await server.start()
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            group.create_task(load(session))
            group.create_task(killer())
        await all_done(tmp_path)
        assert await server.stop() == 0
    finally:
        server.end()
    wrong = {word: n for word in words if (n := answers(slack, word)) != 1}
    assert wrong == {}, [m for m in slack.messages.values() if any(w in str(m) for w in wrong)]
    if readable:
        assert len(slack.messages) == len(words)
    assert not slack.invalid
    assert "Traceback" not in server.log.read_text()


async def test_sigterm_in_the_middle_of_an_answer_loses_nothing(slack, tmp_path):
    server = Process(tmp_path, slack)
    words = []
    try:
        await server.start()
        async with aiohttp.ClientSession() as session:
            for number in range(24):
                request, kind, word = body(number)
                words.append(word)
                await server.insist(session, request, kind)
            assert await server.stop() == 0
            first = {word: answers(slack, word) for word in words}
            await server.start()
            await all_done(tmp_path)
            assert await server.stop() == 0
    finally:
        server.end()
    # Stopping sends what is ready; what nobody had begun waits for the next start.
    assert set(first.values()) <= {0, 1}
    assert sum(first.values()) >= len(words) // 2
    assert {answers(slack, word) for word in words} == {1}


async def test_a_capture_that_was_cut_off_is_undone_by_the_next_process(slack, tmp_path):
    nsys = pretend(tmp_path)
    rules = [{"effect": "allow", "commands": ["capture", "approve"]}]
    server = Process(
        tmp_path,
        slack,
        GPUWHY_POLICY_RULES=json.dumps(rules),
        GPUWHY_CAPTURE_VIA="local",
        GPUWHY_CAPTURE_NSYS=str(nsys.command),
        GPUWHY_CAPTURE_IMPORTER=str(nsys.folder / "QdstrmImporter"),
        GPUWHY_CAPTURE_TARGET_FOLDER=str(nsys.folder),
        GPUWHY_CAPTURE_MAX_FILE_BYTES="1000000",
    )
    try:
        await server.start()
        asked = {"profiler": "nsys", "target": "localhost:5", "duration_s": 30}
        job = (await server.api("capture", asked))["job"]
        assert (await server.api("approve", {"job": job}))["state"] in {"approved", "running"}
        await until(lambda: nsys.state == "Collection", 20)
        server.kill()
        assert nsys.state == "Collection"
        await server.start()

        async def failed() -> bool:
            return (await server.api("job", {"job": job}))["state"] == "failed"

        await eventually(failed, 30, pause_s=0.2)
        state = await server.api("job", {"job": job})
        assert await server.stop() == 0
    finally:
        server.end()
    assert nsys.state == "Launched"
    assert "undone" in json.dumps(state["result"])
