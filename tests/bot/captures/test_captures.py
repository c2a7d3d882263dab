"""A capture from a slash command to a file: planned, approved by whoever may, run, linked."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp
import pytest

from bot import config
from bot.request import Actor, ActorKind, Request
from bot.server import Server
from bot.slackconnection import connect
from bot.store import JobState
from tests.bot.serve.process import SECRET, TOKEN
from tests.support.nsys import Pretended, pretend
from tests.support.slackrequests import FORM, command, signed
from tests.support.slackserver import BOT_TOKEN, SlackServer
from tests.support.waiting import eventually, until

ADA = Actor(ActorKind.SLACK, "U0ADA", "ada", channel="C1")
BOB = Actor(ActorKind.SLACK, "U0BOB", "bob", channel="C1")
RULES = [
    {"effect": "allow", "commands": "capture"},
    {"effect": "allow", "who": "user:U0BOB,token:ci", "commands": "approve"},
]


@dataclass
class World:
    server: Server
    slack: SlackServer
    nsys: Pretended

    async def slash(self, text: str, trigger: str = "t1", user: str = "U0ADA") -> None:
        body = urlencode(
            command(text, channel_id="C1", trigger_id=trigger, user_id=user, user_name="ada")
        )
        headers = {**signed(body, time.time(), SECRET), "Content-Type": FORM}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{self.server.urls[0]}/slack/events", data=body.encode(), headers=headers
            ) as response,
        ):
            assert response.status == 200

    async def planned(self) -> str:
        """Wait for the plan's buttons; return the job's id."""
        await until(self.buttons)
        return self.buttons()[0]

    def buttons(self) -> list[str]:
        found = re.findall(r"'action_id': 'job_approve'.*?'value': '([^']+)'", self.shown())
        return list(dict.fromkeys(found))

    def shown(self) -> str:
        return str([m.content for m in self.slack.in_channel("C1")])

    def whispered(self) -> str:
        return str(self.slack.whispers)


@asynccontextmanager
async def world(folder, slack, **variables: str):
    nsys = pretend(folder)
    settings = config.load(
        None,
        {
            "GPUWHY_SERVER_DATA": str(folder / "data"),
            "GPUWHY_SERVER_LISTEN": "127.0.0.1:0",
            "GPUWHY_SERVER_TOKENS": f"ci={TOKEN}",
            "GPUWHY_SERVER_URL": "http://gpuwhy.example.com",
            "GPUWHY_SLACK_MODE": "http",
            "GPUWHY_SLACK_BOT_TOKEN": BOT_TOKEN,
            "GPUWHY_SLACK_SIGNING_SECRET": SECRET,
            "GPUWHY_SLACK_API_URL": slack.url,
            "GPUWHY_POLICY_RULES": json.dumps(RULES),
            "GPUWHY_CAPTURE_VIA": "local",
            "GPUWHY_CAPTURE_NSYS": str(nsys.command),
            "GPUWHY_CAPTURE_IMPORTER": str(nsys.folder / "QdstrmImporter"),
            "GPUWHY_CAPTURE_TARGET_FOLDER": str(nsys.folder),
            "GPUWHY_CAPTURE_MAX_FILE_BYTES": "1000000",
            **variables,
        },
    )
    server = Server(settings, None, connect, pace_s=0.05)
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(server.run(stop, on_ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        if task.done():
            task.result()
        yield World(server, slack, nsys)
    finally:
        stop.set()
        assert await task == 0


@pytest.fixture
async def here(tmp_path, slack):
    async with world(tmp_path, slack) as made:
        yield made


async def test_from_the_command_to_the_file(here):
    await here.slash("capture nsys localhost:5 1s")
    job = await here.planned()
    plan = here.shown()
    assert "start" in plan
    assert "<@U0ADA> asks for this" in plan
    assert here.nsys.state == "Launched"
    await here.server.service.decide(job, BOB, True)
    await until(lambda: "Download the trace" in here.shown(), 20)
    first, result = here.slack.in_channel("C1")
    assert "*approved* by <@U0BOB>" in str(first.content)
    assert not here.buttons()
    assert result.thread == first.ts
    assert here.nsys.state == "Launched"
    link = re.search(r"<(http://gpuwhy.example.com/captures/[^|]+)\|", str(result.content))
    assert link
    path = link[1].replace("&amp;", "&").removeprefix("http://gpuwhy.example.com")
    async with (
        aiohttp.ClientSession() as session,
        session.get(here.server.urls[0] + path) as response,
    ):
        assert response.status == 200
        assert len(await response.read()) == 600
    audit = [
        (e.command, e.actor["id"], str(e.decision)) for e in await here.server.store.list_audit()
    ]
    assert audit == [("approve", "U0BOB", "allow"), ("capture", "U0ADA", "allow")]
    assert not here.slack.invalid


async def test_whoever_may_not_approve_is_told_so_alone(here):
    await here.slash("capture nsys localhost:5 1s")
    job = await here.planned()
    await here.server.service.decide(job, ADA, True)
    await until(lambda: "you may not use approve localhost:5" in here.whispered())
    assert here.buttons() == [job]
    assert here.slack.whispers[0]["user"] == "U0ADA"
    found = await here.server.store.get_job(job)
    assert found is not None
    assert found.state is JobState.PLANNED


async def test_whoever_asked_may_deny(here):
    await here.slash("capture nsys localhost:5 1s")
    job = await here.planned()
    await here.server.service.decide(job, ADA, False)
    await until(lambda: "*denied* by <@U0ADA>" in here.shown())
    newest, *_ = await here.server.store.list_audit()
    assert (newest.command, newest.actor["id"], newest.request_id) == ("deny", "U0ADA", job)
    assert here.nsys.state == "Launched"


async def test_the_first_decision_counts(here):
    await here.slash("capture nsys localhost:5 1s")
    job = await here.planned()
    decide = here.server.service.decide
    await asyncio.gather(*(decide(job, BOB, approve) for approve in (False, True, True)))
    await until(lambda: len(here.slack.whispers) == 2)
    assert all(w["text"].startswith("too late: it is ") for w in here.slack.whispers)
    found = await here.server.store.get_job(job)
    assert found is not None
    assert found.state in {JobState.DENIED, JobState.APPROVED, JobState.RUNNING, JobState.DONE}


async def test_where_no_session_is_armed_the_line_that_arms_one_is_given(here):
    here.nsys.hook("sessions", "echo '  ID TIME STATE LAUNCH NAME'; exit 0")
    await here.slash("capture nsys localhost:5 1s")
    await until(lambda: "nsys launch" in here.shown())
    assert "--session-new=gpuwhy-5" in here.shown()
    assert not here.buttons()
    assert " -p " not in here.shown()


async def test_a_plan_expires(tmp_path, slack):
    async with world(tmp_path, slack, GPUWHY_CAPTURE_DECIDE_WITHIN="1s") as here:
        await here.slash("capture nsys localhost:5 1s")
        job = await here.planned()
        await until(lambda: "*expired*" in here.shown(), 15)
        await here.server.service.decide(job, BOB, True)
        await until(lambda: "too late: this plan has expired" in here.whispered())


async def test_a_failing_capture_is_told_in_the_thread(here):
    await here.slash("capture nsys localhost:5 1s")
    job = await here.planned()
    here.nsys.hook("start", "echo 'no licence for that' >&2; exit 1")
    await here.server.service.decide(job, BOB, True)
    await until(lambda: "no licence for that" in here.shown(), 15)
    assert here.slack.in_channel("C1")[1].thread == here.slack.in_channel("C1")[0].ts
    found = await here.server.store.get_job(job)
    assert found is not None
    assert found.state is JobState.FAILED


async def test_stopping_the_server_undoes_a_running_capture(tmp_path, slack):
    async with world(tmp_path, slack, GPUWHY_SERVER_DRAIN="1s") as here:
        await here.slash("capture nsys localhost:5 30s")
        job = await here.planned()
        await here.server.service.decide(job, BOB, True)
        await until(lambda: here.nsys.state == "Collection", 15)
    assert here.nsys.state == "Launched"


async def test_over_the_api(here):
    service = here.server.service
    ci = Actor(ActorKind.TOKEN, "ci")
    ask = {"profiler": "nsys", "target": "localhost:5", "duration_s": 1}
    plan = await service.ask(ci, Request("capture", ask))
    assert plan.data["schema"] == "gpuwhy/capture-plan/1"
    job = str(plan.data["job"])
    approved = await service.ask(ci, Request("approve", {"job": job}))
    assert approved.data["state"] in {"approved", "running"}

    async def done() -> bool:
        state = await service.ask(ci, Request("job", {"job": job}))
        return bool(state.data["state"] == "done")

    await eventually(done, 20)
    state = await service.ask(ci, Request("job", {"job": job}))
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        session.get(here.server.urls[0] + str(state.data["path"])) as response,
    ):
        assert (response.status, len(await response.read())) == (200, 600)
