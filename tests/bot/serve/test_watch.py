"""The watch of a server: announced once, edited in place, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from pathlib import Path

import aiohttp
import pytest

from tests.bot.serve.process import Process
from tests.support.postgres import start_postgres
from tests.support.stages import DOWN, Stage, scenes
from tests.support.waiting import eventually, until

ROOT = Path(__file__).parents[3]
CHANNEL = "C0ALERTS"
QUICK = {
    "GPUWHY_WATCH_EVERY": "1s",
    "GPUWHY_WATCH_HOLD": "1s",
    "GPUWHY_WATCH_RESOLVE_AFTER": "1s",
    "GPUWHY_WATCH_CHANNEL": CHANNEL,
}
# More takes minutes; GPUWHY_TEST_KILLS asks for it.
KILLS = int(os.environ.get("GPUWHY_TEST_KILLS", "4"))
STEPS = [
    ("bot.store.incidents:Incidents.claim_watch", "after"),
    ("bot.store.incidents:Incidents.record_watch", "before"),
    ("bot.store.incidents:Incidents.record_watch", "after"),
    ("bot.delivery.slack:SlackMessenger.post", "before"),
    ("bot.delivery.slack:SlackMessenger.post", "after"),
    ("bot.store.deliveries:Deliveries.mark_sent", "before"),
    ("bot.store.deliveries:Deliveries.mark_sent", "after"),
]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    with scenes(tmp_path_factory.mktemp("scenes")) as found:
        yield found


@pytest.fixture
async def stage(addresses):
    async with Stage(addresses) as one:
        yield one


@pytest.fixture(scope="module")
def database():
    with start_postgres() as server:
        yield server.create("watches")


def heads(slack):
    """The messages of the channel that are in no thread."""
    return [m for m in slack.in_channel(CHANNEL) if m.thread is None]


def text(message):
    return message.content["text"]


def showing(slack, *words):
    """How many messages of the channel say all of some words now."""
    return sum(all(word in text(m) for word in words) for m in heads(slack))


async def metrics(server):
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/metrics") as answer:
        return await answer.text()


async def test_an_incident_is_one_message_that_is_edited_and_answered(stage, slack, tmp_path):
    server = Process(tmp_path, slack, prometheus=stage.url, **QUICK)
    try:
        await server.start()
        stage.show("sick")
        await until(lambda: len(heads(slack)) == 2, 30)
        brake = next(m for m in heads(slack) if "power brake" in text(m))
        assert "Incident" in text(brake)
        assert "node-1:3" in str(brake.content["blocks"])

        async def open_two():
            return "gpuwhy_watch_open_incidents 2.0" in await metrics(server)

        await eventually(open_two, 10)
        assert 'gpuwhy_watch_sweeps_total{outcome="ok"}' in await metrics(server)
        stage.show("healthy")
        await until(lambda: showing(slack, "Resolved") == 2, 30)
        stage.show("sick")
        await until(lambda: showing(slack, "Incident") == 2, 30)
        replies = lambda: [text(m) for m in slack.in_channel(CHANNEL) if m.thread == brake.ts]  # noqa: E731
        await until(lambda: len(replies()) == 2, 30)
        assert replies()[0].startswith("Resolved at ")
        assert ": not found for" in replies()[0]
        assert replies()[1].startswith("Back at ")
        assert replies()[1].endswith(", time 2")
        assert await server.stop() == 0
    finally:
        server.end()
    assert len(heads(slack)) == 2
    assert not slack.invalid
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(("step", "moment"), STEPS, ids=lambda v: v.rpartition(":")[2])
async def test_killed_at_a_step_it_is_announced_once(step, moment, stage, slack, tmp_path):
    stage.show("sick")
    variables = {**QUICK, "GPUWHY_WATCH_WHERE": 'Hostname="node-1"'}
    server = Process(tmp_path, slack, prometheus=stage.url, **variables)
    server.prelude = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.support.killing import kill_at; kill_at({step!r}, {moment!r})"
    )
    try:
        with contextlib.suppress(AssertionError):  # it may be reached before the server answers
            await server.start()
        # The step was reached: nothing but the kill ends the process.
        assert await server.ended(60) == -9
        server.prelude = ""
        await server.start()
        await until(lambda: len(heads(slack)) == 1, 40)
        stage.show("healthy")
        await until(lambda: showing(slack, "Resolved") == 1, 40)
        assert await server.stop() == 0
    finally:
        server.end()
    assert len(heads(slack)) == 1


async def test_however_often_it_is_killed_each_incident_is_one_message(stage, slack, tmp_path):
    server = Process(tmp_path, slack, prometheus=stage.url, **QUICK)
    dice = random.Random(5)
    try:
        await server.start()
        for number in range(KILLS):
            stage.show("healthy" if number % 3 == 2 else "sick")
            await asyncio.sleep(dice.uniform(0.3, 3.5))
            server.kill()
            await server.start()
        stage.show("sick")
        await until(lambda: showing(slack, "Incident") == 2, 60)
        stage.show("healthy")
        await until(lambda: showing(slack, "Resolved") == 2, 60)
        assert await server.stop() == 0
    finally:
        server.end()
    assert len(heads(slack)) == 2
    assert not slack.invalid


async def test_two_servers_on_one_database_announce_once(database, stage, slack, tmp_path):
    servers = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        variables = {**QUICK, "GPUWHY_STORE_URL": database}
        servers.append(Process(folder, slack, prometheus=stage.url, **variables))
    try:
        await asyncio.gather(*(server.start() for server in servers))
        stage.show("sick")
        await until(lambda: len(heads(slack)) == 2, 40)
        servers[0].kill()
        stage.show("healthy")
        # The other one goes on.
        await until(lambda: showing(slack, "Resolved") == 2, 40)
        await servers[0].start()
        servers[1].kill()
        stage.show("sick")
        await until(lambda: showing(slack, "Incident") == 2, 40)
        await servers[1].start()

        async def both_know():
            pages = [await metrics(server) for server in servers]
            return all("gpuwhy_watch_open_incidents 2.0" in page for page in pages)

        await eventually(both_know, 20)
        assert [await server.stop() for server in servers] == [0, 0]
    finally:
        for server in servers:
            server.end()
    assert len(heads(slack)) == 2
    assert not slack.invalid


async def test_a_source_that_is_down_is_said_once(stage, slack, tmp_path):
    stage.show(DOWN)
    server = Process(tmp_path, slack, prometheus=stage.url, **QUICK)
    try:
        await server.start()
        await until(lambda: showing(slack, "Cannot look") == 1, 30)
        await asyncio.sleep(2.5)  # two looks more
        assert len(heads(slack)) == 1
        stage.show("healthy")
        await until(lambda: showing(slack, "Looking again") == 1, 30)
        assert await server.stop() == 0
    finally:
        server.end()
    log = server.log.read_text()
    assert log.count("WARNING bot.watching") == 1
    assert "503" in log


async def test_while_slack_is_away_incidents_wait_and_come_as_they_are_then(stage, slack, tmp_path):
    server = Process(tmp_path, slack, prometheus=stage.url, **QUICK)
    try:
        await server.start()
        await slack.stop()
        stage.show("sick")

        async def found():
            return "gpuwhy_watch_open_incidents 2.0" in await metrics(server)

        await eventually(found, 30)
        stage.show("healthy")

        async def over():
            return "gpuwhy_watch_open_incidents 0.0" in await metrics(server)

        await eventually(over, 30)
        await slack.start()
        await until(lambda: showing(slack, "Resolved") == 2, 40)
        assert await server.stop() == 0
    finally:
        server.end()
    assert len(heads(slack)) == 2
