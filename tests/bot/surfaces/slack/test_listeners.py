"""What people do in Slack, as signed requests and as envelopes, and what the service is handed."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from bot.answer import Answer, line, strong
from bot.failure import failed
from bot.inbound import Outcome, Surface, Ticket
from bot.render.blockkit import validate
from bot.request import ActorKind, Request
from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.listeners import handover
from engine.errors import UsageError
from tests.support.slackrequests import (
    CHANNEL,
    DM,
    NOW,
    SETTINGS,
    USER,
    RecordingService,
    as_form,
    as_interaction,
    as_json,
    click,
    command,
    direct,
    event,
    mention,
    message_shortcut,
    socket,
)


@pytest.fixture
def service():
    return RecordingService()


@pytest.fixture
def app(service):
    return build_app(SETTINGS, service, now=lambda: NOW)


def over(transport, payload):
    """Return a payload as it comes over HTTP (signed) or over Socket Mode."""
    if transport == "socket":
        return socket(payload, retry=0 if payload.get("event") else None)
    if "command" in payload:
        return as_form(payload)
    return as_json(payload) if "event" in payload else as_interaction(payload)


both = pytest.mark.parametrize("transport", ["http", "socket"])


@both
async def test_a_mention_is_handed_over_with_its_thread(app, service, transport):
    response = await app.async_dispatch(over(transport, mention()))
    assert (response.status, response.body) == (200, "")
    asked = service.only
    assert asked.surface is Surface.MENTION
    assert asked.text == "<@U0BOT> why is gpu 5 on node-3 slow?"
    assert (asked.channel, asked.thread) == (CHANNEL, "1764432000.000100")
    assert (asked.actor.kind, asked.actor.id, asked.actor.channel) == (
        ActorKind.SLACK,
        USER,
        CHANNEL,
    )


@both
async def test_a_mention_in_a_thread_is_answered_in_that_thread(app, service, transport):
    await app.async_dispatch(over(transport, mention(thread_ts="1764431000.000900")))
    assert service.only.thread == "1764431000.000900"


@both
async def test_a_direct_message_is_the_root_of_its_thread(app, service, transport):
    await app.async_dispatch(over(transport, direct()))
    assert service.only.surface is Surface.DIRECT
    assert (service.only.channel, service.only.thread) == (DM, "1764432000.000100")


async def test_a_reply_in_a_direct_message_stays_in_its_thread(app, service):
    await app.async_dispatch(socket(direct(thread_ts="1764431000.000900")))
    assert service.only.thread == "1764431000.000900"


async def test_retry_number_0_is_a_first_delivery(app, service):
    await app.async_dispatch(socket(mention(), retry=0))
    assert len(service.inbounds) == 1


async def test_repeated_deliveries_have_the_same_key(app, service):
    for retry in (0, 1, 2, 3):
        response = await app.async_dispatch(socket(mention(), retry=retry))
        assert response.status == 200
    assert service.calls == 4
    assert len(service.inbounds) == 1


async def test_a_repetition_is_answered_if_the_first_was_lost(app, service):
    await app.async_dispatch(socket(mention(), retry=1))
    assert len(service.inbounds) == 1


async def test_a_mention_that_comes_as_a_message_too_is_handed_over_once(app, service):
    await app.async_dispatch(as_json(mention(event_id="Ev1")))
    await app.async_dispatch(as_json(event("message", "Ev2", text="x", channel_type="channel")))
    assert len(service.inbounds) == 1


async def test_a_mention_in_a_direct_message_is_handed_over_once(app, service):
    await app.async_dispatch(as_json(direct("<@U0BOT> what is 0x48", event_id="Ev1")))
    await app.async_dispatch(as_json(mention("<@U0BOT> what is 0x48", channel=DM, event_id="Ev2")))
    assert service.calls == 2
    assert len(service.inbounds) == 1


async def test_different_messages_have_different_keys(app, service):
    await app.async_dispatch(as_json(mention(ts="1.1")))
    await app.async_dispatch(as_json(mention(ts="1.2")))
    await app.async_dispatch(as_json(mention(ts="1.2", channel="C0OTHER")))
    assert len(service.inbounds) == 3


@pytest.mark.parametrize(
    "payload",
    [
        direct(bot_id="B0SOME"),
        direct(subtype="bot_message", bot_id="B0SOME", user=None),
        direct(subtype="message_changed", message={"text": "x"}, user=None),
        direct(subtype="message_deleted", user=None),
        direct(edited={"user": USER, "ts": "2.0"}),
        direct(subtype="channel_join"),
        direct(user=None),
        mention(bot_id="B0SOME"),
        mention(edited={"user": USER, "ts": "2.0"}),
        event("message", text="why is gpu 5 slow", channel_type="channel"),
        event("message", text="why is gpu 5 slow", channel_type="group"),
        event("reaction_added", reaction="eyes"),
        event("app_home_opened", tab="home"),
    ],
    ids=lambda payload: f"{payload['event']['type']}-{sorted(payload['event'])}"[:60],
)
async def test_bots_edits_and_chatter_are_acknowledged_and_ignored(app, service, payload):
    for request in (as_json(payload), socket(payload)):
        assert (await app.async_dispatch(request)).status == 200
    assert service.calls == 0


async def test_a_message_with_a_file_is_handed_over(app, service):
    await app.async_dispatch(as_json(direct("what is this", subtype="file_share", files=[{}])))
    assert service.only.text == "what is this"


@both
async def test_a_paste_of_40000_characters_arrives_whole(app, service, transport):
    paste = ("NVRM: Xid (PCI:0000:1a:00): 79, <&> é漢👍\n" * 1200)[:40_000]
    await app.async_dispatch(over(transport, direct(paste)))
    assert service.only.text == paste


@both
async def test_a_command_is_acknowledged_with_nothing_and_handed_over(app, service, transport):
    response = await app.async_dispatch(over(transport, command()))
    assert (response.status, response.body) == (200, "")
    asked = service.only
    assert asked.surface is Surface.COMMAND
    assert asked.text == "why node-3:5"
    assert asked.thread is None
    assert asked.actor.name == "alice"
    assert asked.response_url == "https://hooks.slack.com/commands/T01TEST/1/secret"
    assert "secret" not in asked.dedupe_key


async def test_two_uses_of_a_command_are_two_questions(app, service):
    await app.async_dispatch(as_form(command(trigger_id="1.1")))
    await app.async_dispatch(as_form(command(trigger_id="1.2")))
    await app.async_dispatch(as_form(command(trigger_id="1.2")))
    assert len(service.inbounds) == 2


@both
@pytest.mark.parametrize(
    "reply",
    [
        Answer(line(strong("What to ask")), (), {}),
        failed(UsageError("no command 'whi'", hint="did you mean 'why'?")),
        failed(UsageError("<!channel> & *you* may not use why node-3")),
    ],
)
async def test_help_and_refusals_are_told_to_the_asker_alone(app, service, transport, reply):
    service.ticket = Ticket(Outcome.REFUSED, reply=reply)
    response = await app.async_dispatch(over(transport, command("")))
    told = json.loads(response.body)
    assert response.status == 200
    assert told["response_type"] == "ephemeral"
    assert validate(told) == ()
    assert "<!channel>" not in response.body


@both
async def test_approve_and_deny_carry_an_opaque_id(app, service, transport):
    assert (await app.async_dispatch(over(transport, click("job_approve", "j7")))).status == 200
    assert (await app.async_dispatch(over(transport, click("job_deny", "j8")))).status == 200
    (first, actor, yes), (second, _, no) = service.decisions
    assert (first, yes, second, no) == ("j7", True, "j8", False)
    assert (actor.id, actor.name, actor.channel) == (USER, "alice", CHANNEL)


async def test_a_button_of_a_message_from_before_is_acknowledged(app, service):
    response = await app.async_dispatch(as_interaction(click("gone", "x")))
    assert response.status == 200
    assert service.decisions == []


@both
async def test_the_shortcut_reads_the_message(app, service, transport):
    message = {"ts": "1764430000.000200", "text": "NVRM: Xid (PCI:0000:1a:00): 79 &lt;x&gt;"}
    await app.async_dispatch(over(transport, message_shortcut(message)))
    asked = service.only
    assert asked.surface is Surface.SHORTCUT
    assert isinstance(asked.text, Request)
    assert asked.text.command == "read"
    assert asked.text.args == {"text": "NVRM: Xid (PCI:0000:1a:00): 79 <x>"}
    assert asked.thread == "1764430000.000200"


async def test_the_shortcut_reads_an_alert_in_its_attachments(app, service):
    alert = {
        "ts": "1.0",
        "bot_id": "B0ALERTS",
        "text": "",
        "attachments": [
            {
                "title": "[FIRING:1] GpuXid",
                "text": "Xid 79 on node-3",
                "fallback": "not shown",
                "fields": [{"title": "gpu", "value": "5"}, "odd"],
            },
            {"fallback": "only this"},
            "odd",
        ],
    }
    await app.async_dispatch(as_interaction(message_shortcut(alert)))
    read = service.only.text.args["text"]
    assert read == "[FIRING:1] GpuXid\nXid 79 on node-3\ngpu: 5\nonly this"


async def test_the_shortcut_reads_blocks_where_there_is_no_text(app, service):
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "Xid 48"}}]
    await app.async_dispatch(as_interaction(message_shortcut({"ts": "1.0", "blocks": blocks})))
    assert service.only.text.args["text"] == "Xid 48"


@both
@pytest.mark.parametrize("payload", [mention(), direct(), command(), message_shortcut({"ts": "1"})])
async def test_what_is_not_taken_is_not_acknowledged(app, service, transport, payload):
    service.ticket = Ticket(Outcome.BUSY)
    assert (await app.async_dispatch(over(transport, payload))).status == 503


async def test_a_busy_service_says_so_to_whoever_used_the_command(app, service):
    service.ticket = Ticket(Outcome.BUSY, reply=failed(UsageError("ask again")))
    response = await app.async_dispatch(as_form(command()))
    assert response.status == 200
    assert "ask again" in response.body


@both
@pytest.mark.parametrize(
    "payload",
    [mention(), direct(), command(), message_shortcut({"ts": "1"}), click("job_deny", "j")],
)
async def test_an_error_is_not_acknowledged_and_tells_no_secret(
    app, service, transport, payload, caplog
):
    service.error = RuntimeError("at https://hooks.slack.com/commands/T/1/s with xoxb-1-2-abc")
    assert (await app.async_dispatch(over(transport, payload))).status == 500
    assert "RuntimeError" in caplog.text
    assert "hooks.slack.com" not in caplog.text
    assert "xoxb-1" not in caplog.text


async def test_a_service_that_hangs_is_given_up_in_time(app, service, monkeypatch):
    monkeypatch.setattr(handover, "WITHIN_S", 0.05)
    service.submit = lambda inbound: asyncio.sleep(60)
    started = time.monotonic()
    assert (await app.async_dispatch(as_json(mention()))).status == 503
    told = await app.async_dispatch(as_form(command()))
    assert told.status == 200
    assert "could not be kept in time" in told.body
    assert time.monotonic() - started < 5
