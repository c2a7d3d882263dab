"""Two servers on one PostgreSQL share the work, and one of them may die."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator

import aiohttp
import pytest

from bot.store import Store
from tests.bot.serve.process import Process
from tests.bot.serve.test_killed import answers, body
from tests.support.postgres import start_postgres
from tests.support.waiting import drained

# GPUWHY_TEST_REQUESTS asks for more than is quick.
REQUESTS = int(os.environ.get("GPUWHY_TEST_REQUESTS", "60"))
CHANNELS = 12


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with start_postgres() as server:
        yield server.create("replicas")


async def test_every_question_gets_exactly_one_answer(database, slack, tmp_path):
    servers = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        servers.append(Process(folder, slack, GPUWHY_STORE_URL=database))
    dice = random.Random(11)
    words = []
    try:
        await asyncio.gather(*(server.start() for server in servers))
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for number in range(REQUESTS):
                request, kind, word = body(number)
                words.append(word)
                one, other = dice.sample(servers, 2)
                group.create_task(one.insist(session, request, kind))
                # What Slack repeats may reach the other server.
                if number % 3 == 0:
                    group.create_task(other.insist(session, request, kind))
                if number == REQUESTS // 2:
                    servers[0].kill()
                    group.create_task(servers[0].start())
                await asyncio.sleep(0.05)
        store = Store(database)
        await store.open()
        await drained(store, 30 + REQUESTS)
        await store.close()
        assert [await server.stop() for server in servers] == [0, 0]
    finally:
        for server in servers:
            server.end()
    wrong = {word: n for word in words if (n := answers(slack, word)) != 1}
    assert wrong == {}, [m for m in slack.messages.values() if any(w in str(m) for w in wrong)]
    assert len(slack.messages) == len(words)
    assert not slack.invalid
