"""Files: fetched from a message, and a long answer attached to its thread."""

from __future__ import annotations

import pytest
from aiohttp import web

from bot.answer import Answer, bullets, line
from bot.attachments import MAX_FILE, FileRef, refs_of
from bot.delivery.compose import Route
from bot.delivery.compose import final as answered
from bot.delivery.messenger import AwayError, RejectedError
from bot.delivery.slack import SlackMessenger
from bot.request import Actor, ActorKind, Request
from engine.errors import InputError
from tests.bot.delivery.test_sender import queue, sending, text
from tests.support.slackserver import BOT_TOKEN
from tests.support.waiting import drained

ROUTE = Route("C1", "1699999999.000001", "q1")
ALICE = Actor(ActorKind.SLACK, "U0ALICE")


def long_answer(rows: int) -> Answer:
    return Answer(line("Found"), (bullets(line(f"finding {n} " * 20) for n in range(rows)),), {})


async def test_a_file_is_fetched_by_its_id(slack):
    file = slack.add_file("dmesg.log", b"NVRM: Xid")
    messenger = SlackMessenger(BOT_TOKEN, slack.url)
    assert await messenger.fetch(FileRef(file, "dmesg.log", 9, "text/plain")) == b"NVRM: Xid"
    with pytest.raises(InputError, match="cannot be fetched: file_not_found"):
        await messenger.fetch(FileRef("F000999", "gone.log", 1, "text/plain"))
    await messenger.aclose()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"size": MAX_FILE + 1}, "32 MiB are read here"),
        ({"mimetype": "image/png"}, "image/png, which cannot be read"),
        ({"url_private_download": "https://evil.example/x"}, "address_elsewhere"),
        ({"is_external": True}, "not kept at Slack"),
    ],
)
async def test_size_type_and_place_are_checked_before_anything_is_read(slack, more, says):
    file = slack.add_file("dmesg.log", b"x", **more)
    messenger = SlackMessenger(BOT_TOKEN, slack.url)
    with pytest.raises(InputError, match=says):
        await messenger.fetch(FileRef(file, "dmesg.log", 1, "text/plain"))
    await messenger.aclose()
    assert {name for name, _, _ in slack.calls} == {"files.info"}


async def test_a_sign_in_page_is_no_log(slack):
    file = slack.add_file("dmesg.log", b"x")
    messenger = SlackMessenger("xoxb-other", slack.url)
    with pytest.raises(AwayError):
        await messenger.fetch(FileRef(file, "dmesg.log", 1, "text/plain"))
    await messenger.aclose()


def test_only_what_slack_lets_us_see_is_taken():
    event = {"files": [{"id": "F1AB", "name": "a"}, {"id": "../x"}, "F2", {"id": "F3CD"}]}
    assert [ref.id for ref in refs_of(event)] == ["F1AB", "F3CD"]
    assert refs_of({"files": "F1AB"}) == refs_of({}) == ()


async def test_a_long_answer_goes_on_in_a_file(store, slack):
    await queue(store, answered(ROUTE, ALICE, Request("read"), long_answer(400)))
    async with sending(store, slack):
        await drained(store)
    posted = slack.in_channel("C1")
    assert len(posted) == 2
    (share,) = slack.shared
    assert (share["channel_id"], share["thread_ts"]) == ("C1", ROUTE.thread)
    kept = slack.files[share["files"][0]["id"]]
    assert kept["name"] == "gpuwhy-read.txt"
    assert "finding 0 " in kept["raw"]
    assert "finding 399 " in kept["raw"]


async def test_where_files_are_forbidden_it_is_said(store, slack):
    def without_scope(method, args):

        if method == "files.getUploadURLExternal":
            return web.json_response({"ok": False, "error": "missing_scope"})
        return None

    slack.fault = without_scope
    await queue(store, answered(ROUTE, ALICE, Request("read"), long_answer(400)))
    async with sending(store, slack):
        await drained(store)
    assert "files:write" in slack.in_channel("C1")[-1].content["text"]


async def test_a_short_answer_needs_no_file(store, slack):
    await queue(store, answered(ROUTE, ALICE, Request("read"), long_answer(2)))
    async with sending(store, slack):
        await drained(store)
    assert len(slack.in_channel("C1")) == 1
    assert slack.shared == []


async def test_bytes_are_sent_to_slack_alone(slack):
    messenger = SlackMessenger(BOT_TOKEN, slack.url)

    def elsewhere(method, args):

        if method == "files.getUploadURLExternal":
            answer = {"ok": True, "file_id": "F1AB", "upload_url": "https://evil.example/u"}
            return web.json_response(answer)
        return None

    slack.fault = elsewhere
    with pytest.raises(RejectedError, match="address_elsewhere"):
        await messenger.attach("C1", None, name="a.txt", text="x", comment=text("y")["text"])
    await messenger.aclose()
