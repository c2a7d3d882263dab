"""Messages reach Slack once, in order, and not too fast, whatever Slack does meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web

from bot.delivery import Parcel, Sender
from bot.delivery.sender import Clocks
from bot.delivery.slack import SlackMessenger
from bot.store import DeliveryKind, DeliveryState, NewDelivery, Store
from bot.telemetry import Telemetry
from tests.support.slackserver import BOT_TOKEN, SlackServer, limited
from tests.support.stores import ask
from tests.support.waiting import drained, eventually, until

CLOCKS = Clocks(time.time, time.monotonic)


@asynccontextmanager
async def sending(
    store: Store, slack: SlackServer, *, pace_s: float = 0.0, lease_s: float = 5.0, name: str = "s1"
) -> AsyncIterator[Sender]:
    messenger = SlackMessenger(BOT_TOKEN, slack.url)
    sender = Sender(
        store,
        messenger,
        name=name,
        clocks=CLOCKS,
        telemetry=Telemetry(),
        lease_s=lease_s,
        pace_s=pace_s,
        backoff_s=0.1,
    )
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        sender.stop()
        await task
        await messenger.aclose()


def text(said: str) -> dict[str, str]:
    return {"text": said}


def post(said: str, channel: str = "C1", **more: object) -> NewDelivery:
    given = {"coalesce_key": None, "thread": None, **more}
    parcel = Parcel(text(said), **given.pop("parcel", {}))  # type: ignore[arg-type]
    return NewDelivery(DeliveryKind.POST, channel, parcel.to_json(), **given)  # type: ignore[arg-type]


def final(said: str, channel: str = "C1", key: str = "q1", **more: object) -> NewDelivery:
    parcel = Parcel(text(said), placeholder=text("looking"), **more)  # type: ignore[arg-type]
    return NewDelivery(DeliveryKind.UPDATE, channel, parcel.to_json(), coalesce_key=key)


async def queue(store: Store, *news: NewDelivery, question: str | None = None) -> None:
    await store.enqueue(news, question_id=question, now=time.time())


def said(slack: SlackServer, channel: str = "C1") -> list[str]:
    return [m.content["text"] for m in slack.in_channel(channel)]


async def test_the_answer_takes_the_place_of_the_progress_message(store, slack):
    async with sending(store, slack) as sender:
        await queue(store, post("looking", coalesce_key="q1"))
        sender.wake()
        await until(lambda: said(slack) == ["looking"])
        await queue(store, final("degraded", more=(text("page 2"), text("page 3"))))
        sender.wake()
        await drained(store)
    first, *rest = slack.in_channel("C1")
    assert first.content["text"] == "degraded"
    assert [m.content["text"] for m in rest] == ["page 2", "page 3"]
    assert {m.thread for m in rest} == {first.ts}


async def test_an_answer_that_overtakes_its_progress_message_is_still_an_edit(store, slack):
    """A post whose outcome is lost could come twice; so the placeholder is posted, then edited."""
    await queue(store, post("looking", coalesce_key="q1"))
    await queue(store, final("degraded"))
    async with sending(store, slack):
        await drained(store)
    (message,) = slack.in_channel("C1")
    assert message.content["text"] == "degraded"
    assert [edit["text"] for edit in message.edits] == ["looking"]


async def test_a_channel_gets_its_messages_in_order_and_at_its_pace(store, slack):
    for number in range(4):
        await queue(store, post(f"a{number}", "CA"), post(f"b{number}", "CB"))
    async with sending(store, slack, pace_s=0.3):
        await drained(store)
    for channel, letter in (("CA", "a"), ("CB", "b")):
        messages = slack.in_channel(channel)
        assert [m.content["text"] for m in messages] == [f"{letter}{n}" for n in range(4)]
        gaps = [later.at - m.at for m, later in pairwise(messages)]
        assert min(gaps) >= 0.25
    # Channels do not wait for each other.
    assert slack.in_channel("CB")[0].at < slack.in_channel("CA")[1].at


async def test_slack_may_be_away_for_a_while_and_nothing_is_lost_or_doubled(store, slack):
    await slack.stop()
    for number in range(5):
        await queue(store, post(f"m{number}"))
    async with sending(store, slack):
        await asyncio.sleep(1.2)
        await slack.start()
        await drained(store)
    assert said(slack) == [f"m{n}" for n in range(5)]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(status=502, text="<html>bad gateway</html>"),
        lambda: web.Response(status=503, text="upstream away", content_type="text/plain"),
        lambda: web.json_response({"ok": False, "error": "internal_error"}, status=500),
        lambda: web.json_response({"ok": False, "error": "token_revoked"}),
        lambda: web.Response(text="not json at all"),
        lambda: web.json_response([1, 2]),
    ],
)
async def test_trouble_of_slack_is_waited_out(store, slack, answer):
    times = []

    def fault(method, args):
        if method == "chat.postMessage" and len(times) < 2:
            times.append(1)
            return answer()
        return None

    slack.fault = fault
    await queue(store, post("hello"), post("world"))
    async with sending(store, slack):
        await drained(store)
    assert said(slack) == ["hello", "world"]


async def test_429_is_obeyed_to_the_second(store, slack):
    refused = []

    def fault(method, args):
        if method == "chat.postMessage" and not refused:
            refused.append(time.monotonic())
            return limited(1.5)
        return None

    slack.fault = fault
    await queue(store, post("hello"))
    async with sending(store, slack):
        await drained(store)
    assert slack.in_channel("C1")[0].at - refused[0] >= 1.4
    assert len(slack.named("chat.postMessage")) == 2


async def test_when_edits_are_limited_other_channels_still_get_posts(store, slack):
    refused = []

    def fault(method, args):
        if method == "chat.update" and not refused:
            refused.append(time.monotonic())
            return limited(2)
        return None

    slack.fault = fault
    async with sending(store, slack) as sender:
        await queue(store, post("looking", "CA", coalesce_key="qa"))
        await queue(store, post("looking", "CB", coalesce_key="qb"))
        sender.wake()
        await until(lambda: len(slack.messages) == 2)
        await queue(store, final("a", "CA", "qa"), final("b", "CB", "qb"), post("c", "CC"))
        sender.wake()
        await until(lambda: said(slack, "CC") == ["c"], 1.5)
        await drained(store)
    edits = [at for name, _, at in slack.calls if name == "chat.update"]
    assert said(slack, "CA") == ["a"]
    assert said(slack, "CB") == ["b"]
    assert all(at - refused[0] > 1.8 for at in edits if at > refused[0] + 0.3)


async def test_a_post_whose_outcome_is_unknown_is_looked_for_before_it_is_repeated(store, slack):
    """The connection breaks after Slack has taken the message."""
    broken = []

    def fault(method, args):
        if method == "chat.postMessage" and not broken:
            broken.append(1)
            slack._answer(method, args)
            return web.Response(status=504, text="timeout")
        return None

    slack.fault = fault
    await queue(store, post("hello", thread="1.0"))
    async with sending(store, slack):
        await drained(store)
    assert said(slack) == ["hello"]
    assert len(slack.named("conversations.replies")) == 1


async def test_without_the_scope_to_look_a_post_is_repeated_rather_than_lost(store, slack):
    slack.readable = False
    broken = []

    def fault(method, args):
        if method == "chat.postMessage" and len(broken) < 1:
            broken.append(1)
            return web.Response(status=504, text="timeout")
        return None

    slack.fault = fault
    await queue(store, post("hello"), post("world"))
    async with sending(store, slack):
        await drained(store)
    assert said(slack) == ["hello", "world"]
    assert len(slack.named("conversations.history")) == 1


async def test_a_refusal_for_good_does_not_hold_up_the_channel(store, slack):
    def fault(method, args):
        if args.get("text") == "bad":
            return web.json_response({"ok": False, "error": "invalid_blocks"})
        return None

    slack.fault = fault
    question = await ask(store)
    await queue(store, post("bad"), post("good"), question=question.id)
    async with sending(store, slack):
        await until(lambda: said(slack) == ["good"])
    assert said(slack) == ["good"]
    bad, good = await store.deliveries_of(question.id)
    assert (bad.state, good.state) == (DeliveryState.DEAD, DeliveryState.SENT)
    assert "invalid_blocks" in (bad.error or "")


async def test_where_the_bot_is_no_member_the_response_url_is_used(store, slack):
    slack.gone.add("C1")
    url = slack.response_url("r1")
    async with sending(store, slack) as sender:
        await queue(store, post("looking", coalesce_key="q1", parcel={"response_url": url}))
        sender.wake()
        await until(lambda: len(slack.responses) == 1)
        await queue(store, final("degraded", response_url=url, more=(text("page 2"),)))
        sender.wake()
        await drained(store)
    sent = [(body["text"], body["replace_original"]) for _, body in slack.responses]
    assert sent == [("looking", False), ("degraded", True), ("page 2", False)]


async def test_a_response_url_that_leads_elsewhere_is_never_called(store, slack):
    slack.gone.add("C1")
    elsewhere = "http://169.254.169.254/latest/meta-data"
    question = await ask(store)
    news = post("looking", parcel={"response_url": elsewhere})
    await queue(store, news, question=question.id)

    async def dead() -> bool:
        (delivery,) = await store.deliveries_of(question.id)
        return delivery.state is DeliveryState.DEAD

    async with sending(store, slack):
        await eventually(dead)
    (delivery,) = await store.deliveries_of(question.id)
    assert "169.254" not in (delivery.error or "")


async def test_an_answer_is_posted_anew_when_its_message_was_deleted(store, slack):
    async with sending(store, slack) as sender:
        await queue(store, post("looking", coalesce_key="q1"))
        sender.wake()
        await until(lambda: slack.messages)
        slack.messages.clear()
        await queue(store, final("degraded"))
        sender.wake()
        await drained(store)
    assert said(slack) == ["degraded"]


async def test_a_sender_that_dies_after_sending_leaves_one_message(store, slack):
    """Its successor edits again, which changes nothing, and posts what follows once."""
    async with sending(store, slack) as sender:
        await queue(store, post("looking", coalesce_key="q1"))
        sender.wake()
        await drained(store)
    await queue(store, final("degraded", more=(text("page 2"),)))
    # What a sender does up to the moment before it notes that it is done.
    messenger = SlackMessenger(BOT_TOKEN, slack.url)
    from bot.delivery.postman import Postman

    dying = await store.claim_delivery("dead", lease_s=0.3, pace_s=0, now=time.time())
    assert dying is not None
    await Postman(messenger, store, time.time).bring(dying)
    await messenger.aclose()
    async with sending(store, slack):
        await asyncio.sleep(0.3)
        await drained(store)
    assert said(slack) == ["degraded", "page 2"]


async def test_two_senders_share_the_queue_without_doubling(store, slack):
    for number in range(10):
        await queue(store, *(post(f"m{number}", f"C{c}") for c in range(4)))
    async with sending(store, slack), sending(store, slack, name="s2"):
        await drained(store)
    for c in range(4):
        assert said(slack, f"C{c}") == [f"m{n}" for n in range(10)]


async def test_stopping_lets_a_call_that_has_begun_come_to_its_end(store, slack):
    gate = asyncio.Event()
    inner = slack._call

    async def slow(request):
        gate.set()
        await asyncio.sleep(0.5)
        return await inner(request)

    await slack.stop()
    slack._call = slow
    await slack.start()
    await queue(store, post("hello"), post("later"))
    async with sending(store, slack):
        await gate.wait()
    assert said(slack) == ["hello"]
    assert (await store.backlog()).deliveries == 1


async def test_secrets_stay_out_of_reprs():
    parcel = Parcel(text("x"), response_url="https://hooks.slack.com/secret")
    assert "secret" not in repr(parcel)
