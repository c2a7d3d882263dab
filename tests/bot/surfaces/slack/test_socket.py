"""Socket Mode against a small server: acknowledgements, lost connections, redelivery, closing."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import WSMsgType, web

from bot.inbound import Outcome, Ticket
from bot.serversettings import Slack
from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.socket import SocketMode
from engine.errors import UsageError
from tests.support.slackrequests import NOW, RecordingService, command, mention

WAIT_S = 10


class SocketServer:
    """Slack's side of Socket Mode: hands out an address, says hello, remembers what comes back."""

    def __init__(self):
        self.sockets = []
        self.acks = asyncio.Queue()
        self.joined = asyncio.Queue()
        self.opened = 0
        self.refusals = 0
        self.tokens = set()

    async def start(self):
        site = web.Application()
        site.router.add_post("/api/apps.connections.open", self._open)
        site.router.add_get("/socket", self._socket)
        self._runner = web.AppRunner(site, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self):
        for one in self.sockets:
            await one.close()
        await self._runner.cleanup()

    async def send(self, payload, kind="events_api", envelope="e1", retry=0):
        envelope = {
            "type": kind,
            "envelope_id": envelope,
            "payload": payload,
            "accepts_response_payload": kind == "slash_commands",
        }
        if kind == "events_api":
            envelope |= {"retry_attempt": retry, "retry_reason": ""}
        await self.sockets[-1].send_json(envelope)

    async def ack(self):
        return await asyncio.wait_for(self.acks.get(), WAIT_S)

    async def join(self):
        return await asyncio.wait_for(self.joined.get(), WAIT_S)

    async def _open(self, request):
        self.tokens.add(request.headers.get("Authorization"))
        self.opened += 1
        if self.opened <= self.refusals:
            return web.json_response({"ok": False, "error": "internal_error"})
        return web.json_response(
            {"ok": True, "url": f"ws://127.0.0.1:{self.port}/socket?ticket=t0p"}
        )

    async def _socket(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self.joined.put_nowait(socket)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.acks.put_nowait(json.loads(message.data))
        return socket


@pytest.fixture
async def slack():
    server = SocketServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def service():
    return RecordingService()


@pytest.fixture
async def mode(slack, service):
    settings = Slack(
        mode="socket",
        bot_token="xoxb-1",
        app_token="xapp-1-secret",
        api_url=f"http://127.0.0.1:{slack.port}/api",
    )
    connection = SocketMode(build_app(settings, service, now=lambda: NOW), settings)
    yield connection
    await connection.aclose()


async def test_an_event_is_acknowledged_once_it_is_taken(slack, service, mode):
    await mode.start()
    await slack.join()
    assert await mode.connected()
    await slack.send(mention())
    assert await slack.ack() == {"envelope_id": "e1"}
    assert service.only.text.endswith("slow?")
    assert slack.tokens == {"Bearer xapp-1-secret"}


async def test_what_is_not_taken_is_not_acknowledged_and_taken_when_it_comes_again(
    slack, service, mode
):
    await mode.start()
    await slack.join()
    service.ticket = Ticket(Outcome.BUSY)
    await slack.send(mention(), envelope="e1")
    await slack.send({"event": {"type": "other"}, "type": "event_callback"}, envelope="e2")
    assert await slack.ack() == {"envelope_id": "e2"}
    service.ticket = Ticket(Outcome.ACCEPTED, "q1")
    service.inbounds.clear()
    await slack.send(mention(), envelope="e3", retry=1)
    assert await slack.ack() == {"envelope_id": "e3"}
    assert len(service.inbounds) == 1


async def test_a_command_is_acknowledged_with_its_reply(slack, service, mode):
    from bot.failure import failed

    service.ticket = Ticket(Outcome.MISUNDERSTOOD, reply=failed(UsageError("no command 'whi'")))
    await mode.start()
    await slack.join()
    await slack.send(command("whi node-3"), kind="slash_commands")
    ack = await slack.ack()
    assert ack["envelope_id"] == "e1"
    assert ack["payload"]["response_type"] == "ephemeral"
    assert "no command 'whi'" in ack["payload"]["text"]


async def test_a_connection_that_slack_renews_is_replaced(slack, service, mode):
    await mode.start()
    first = await slack.join()
    await first.send_json({"type": "disconnect", "reason": "refresh_requested"})
    await slack.join()
    await slack.send(mention(), envelope="e9")
    assert await slack.ack() == {"envelope_id": "e9"}
    assert len(service.inbounds) == 1


async def test_starting_does_not_wait_for_slack(slack, mode, caplog, monkeypatch):
    slack.refusals = 1
    monkeypatch.setattr("bot.surfaces.slack.socket._PING_S", 0.05)
    await asyncio.wait_for(mode.start(), 1)
    assert not await mode.connected()
    await slack.join()
    assert slack.opened == 2
    assert "xapp" not in caplog.text
    assert "t0p" not in caplog.text


async def test_closing_finishes_what_was_begun_and_takes_nothing_more(slack, service, mode):
    begun, finish = asyncio.Event(), asyncio.Event()
    submit = service.submit

    async def slow(inbound):
        begun.set()
        await finish.wait()
        return await submit(inbound)

    service.submit = slow
    await mode.start()
    await slack.join()
    await slack.send(mention(), envelope="e1")
    await asyncio.wait_for(begun.wait(), WAIT_S)
    closing = asyncio.create_task(mode.aclose())
    await asyncio.sleep(0)
    await slack.send(mention(ts="2.0"), envelope="e2")
    finish.set()
    await asyncio.wait_for(closing, WAIT_S)
    assert await slack.ack() == {"envelope_id": "e1"}
    assert slack.acks.empty()
    assert len(service.inbounds) == 1


async def test_closing_before_slack_answers(slack, mode):
    slack.refusals = 1000
    await mode.start()
    await asyncio.wait_for(mode.aclose(), WAIT_S)
    assert not await mode.connected()


async def test_socket_mode_needs_an_app_token(service):
    settings = Slack(mode="socket", bot_token="xoxb-1")
    with pytest.raises(UsageError, match="GPUWHY_SLACK_APP_TOKEN"):
        SocketMode(build_app(settings, service), settings)
