"""The surface against an emulator that others wrote, over Socket Mode and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.answer import Answer, line
from bot.inbound import Outcome, Surface, Ticket
from bot.render import slackcards
from bot.request import Actor, ActorKind
from bot.serversettings import Slack
from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.http import PATH, route
from bot.surfaces.slack.socket import SocketMode
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
from tests.support.slackrequests import RecordingService

if not isolated():

    def test_in_its_own_network():
        run_isolated(__file__)

else:
    both = pytest.mark.parametrize("transport", ["socket", "http"])

    @contextlib.asynccontextmanager
    async def workspace(transport, service, secret=SIGNING_SECRET):
        """Start the emulator with the app connected to it."""
        port = free_port()
        url = f"http://127.0.0.1:{port}{PATH}" if transport == "http" else None
        async with LocalSlack(url) as slack:
            settings = Slack(
                mode=transport,
                bot_token=BOT_TOKEN,
                app_token=APP_TOKEN,
                signing_secret=secret,
                api_url=slack.api_url,
            )
            app = build_app(settings, service)
            if transport == "http":
                site = web.Application()
                site.add_routes([route(app, settings)])
                runner = web.AppRunner(site)
                await runner.setup()
                await web.TCPSite(runner, "127.0.0.1", port).start()
                yield slack
                await runner.cleanup()
            else:
                connection = SocketMode(app, settings)
                await connection.start()
                await until(connection.connected)
                yield slack
                await connection.aclose()

    async def until(holds):
        async with asyncio.timeout(10):
            while not await holds():  # noqa: ASYNC110 - another process gives no event
                await asyncio.sleep(0.02)

    def came_in(service, count=1):
        async def holds():
            return len(service.inbounds) >= count

        return until(holds)

    @both
    async def test_mentions_direct_messages_and_commands_come_in_once(transport):
        service = RecordingService()
        async with workspace(transport, service) as slack:
            ts = await slack.say(f"<@{BOT}> why is gpu 5 on node-3 slow?")
            await came_in(service)
            dm, dm_ts = await slack.tell("what is 0x48")
            await came_in(service, 2)
            await slack.command("why node-3:5", user=BOB)
            await came_in(service, 3)
            await slack.say("small talk between people")
            await slack.edit(ts, f"<@{BOT}> why is gpu 6 on node-3 slow?")
            reply = await slack.say(f"<@{BOT}> sweep", thread=ts)
            await came_in(service, 4)
        asked, told, typed, replied = service.inbounds
        assert (asked.surface, asked.channel, asked.thread) == (Surface.MENTION, GPUS, ts)
        assert (told.surface, told.channel, told.thread) == (Surface.DIRECT, dm, dm_ts)
        assert (typed.surface, typed.text, typed.actor.id) == (Surface.COMMAND, "why node-3:5", BOB)
        assert typed.response_url
        assert (replied.thread, replied.dedupe_key.endswith(reply)) == (ts, True)

    @both
    async def test_help_is_shown_to_the_asker_alone(transport):
        reply = Answer(line("What to ask"), (), {})
        service = RecordingService(Ticket(Outcome.ANSWERED, reply=reply))
        async with workspace(transport, service) as slack:
            await slack.command("help")
            (shown,) = await slack.messages()
        assert "What to ask" in shown["text"]
        assert (shown["subtype"], shown["ephemeral_to"]) == ("ephemeral", ALICE)

    @both
    async def test_a_plan_is_posted_approved_and_edited(transport):
        service = RecordingService()
        plan = Answer(line("Capture nsys on <!channel>"), (), {})
        alice = Actor(ActorKind.SLACK, ALICE)
        async with workspace(transport, service) as slack:
            client = AsyncWebClient(token=BOT_TOKEN, base_url=slack.api_url)
            (card,) = slackcards.plan(plan, "j7", alice)
            posted = await client.chat_postMessage(channel=GPUS, **card)
            (message,) = await slack.messages()
            approve, deny = message["blocks"][-1]["elements"]
            await slack.click(posted["ts"], approve, user=BOB)
            await slack.click(posted["ts"], deny)
            (decided,) = slackcards.decided(plan, alice, "approved", at=0.0)
            await client.chat_update(channel=GPUS, ts=posted["ts"], **decided)
            (message,) = await slack.messages()
        assert [(job, actor.id, yes) for job, actor, yes in service.decisions] == [
            ("j7", BOB, True),
            ("j7", ALICE, False),
        ]
        assert "approved" in json.dumps(message["blocks"])
        assert "Approve" not in json.dumps(message["blocks"])
        assert "<!channel>" not in json.dumps(message)

    async def test_with_a_wrong_secret_nothing_comes_in():
        service = RecordingService()
        async with workspace("http", service, secret="another") as slack:
            await slack.say(f"<@{BOT}> sweep")
            await slack.command("sweep")
            log = json.dumps(await slack.log())
        assert service.calls == 0
        assert "401" in log
