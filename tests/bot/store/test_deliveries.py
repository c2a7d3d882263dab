"""What is to be sent goes out in order, not too fast, and the newest edit wins."""

from __future__ import annotations

from bot.store import Delivery, DeliveryKind, DeliveryState, Store
from tests.support.stores import LEASE_S, NOW, ask, claim, edit, post, send_next


async def texts(store: Store, *, now: float = NOW, pace_s: float = 0.0) -> list[object]:
    """Send all that may be sent; return it."""
    sent = []
    while delivery := await send_next(store, now=now, pace_s=pace_s):
        await store.mark_sent(delivery.id, message_ts=f"ts-{delivery.seq}", now=now)
        sent.append(delivery.payload["text"])
    return sent


def got(delivery: Delivery | None) -> object:
    return delivery and delivery.payload["text"]


async def test_a_claimed_delivery_holds_all_that_was_given(store: Store) -> None:
    question_id, _ = await ask(store)
    payload = {"text": "\0\ud83d", "blocks": [{"type": "divider"}]}
    (delivery_id,) = await store.enqueue(
        [post(thread="1.2", coalesce_key="m")], question_id=question_id, now=NOW
    )
    await store.enqueue([post(channel="C2")], now=NOW)
    (same_id,) = await store.enqueue(
        [type(post())(DeliveryKind.POST, "C1", payload, coalesce_key="m")], now=NOW
    )

    found = await send_next(store)

    assert same_id == delivery_id
    assert found is not None
    assert (found.id, found.question_id) == (delivery_id, question_id)
    assert (found.channel, found.thread, found.kind) == ("C1", "1.2", DeliveryKind.POST)
    assert (found.state, found.attempts, found.uncertain) == (DeliveryState.SENDING, 1, False)
    assert found.payload == payload
    assert found.message_ts is None


async def test_a_channel_is_served_in_order_and_one_at_a_time(store: Store) -> None:
    await store.enqueue([post("a1", "A"), post("a2", "A"), post("b1", "B")], now=NOW)

    first = await send_next(store)
    second = await send_next(store)
    assert (got(first), got(second)) == ("a1", "b1")
    assert await send_next(store) is None

    assert first is not None
    await store.mark_sent(first.id, message_ts="1", now=NOW)
    assert got(await send_next(store)) == "a2"


async def test_a_channel_rests_between_two_messages(store: Store) -> None:
    await store.enqueue([post("a1", "A"), post("a2", "A"), post("b1", "B")], now=NOW)

    assert await texts(store, pace_s=1.0) == ["a1", "b1"]
    assert await texts(store, now=NOW + 0.999, pace_s=1.0) == []
    assert await texts(store, now=NOW + 1.0, pace_s=1.0) == ["a2"]


async def test_a_delivery_waits_for_its_time_and_its_channel_with_it(store: Store) -> None:
    await store.enqueue(
        [post("a1", "A", not_before=NOW + 5), post("a2", "A"), post("b1", "B")], now=NOW
    )

    assert await texts(store) == ["b1"]
    assert await texts(store, now=NOW + 5) == ["a1", "a2"]


async def test_a_refused_delivery_comes_again_before_the_later_ones(store: Store) -> None:
    await store.enqueue([post("a1", "A"), post("a2", "A")], now=NOW)
    first = await send_next(store)
    assert first is not None

    assert await store.retry_delivery(first.id, "s1", not_before=NOW + 30, error="429")
    assert await send_next(store, now=NOW + 29) is None

    again = await send_next(store, now=NOW + 30)
    assert again is not None
    assert (again.id, again.attempts, again.error) == (first.id, 2, "429")
    assert not again.uncertain
    await store.mark_sent(again.id, message_ts="1", now=NOW + 30)
    (sent, _) = [await send_next(store, now=NOW + 30), None]
    assert got(sent) == "a2"


async def test_a_delivery_given_up_lets_the_next_one_pass(store: Store) -> None:
    question_id, _ = await ask(store)
    await store.enqueue([post("a1"), post("a2")], question_id=question_id, now=NOW)
    first = await send_next(store)
    assert first is not None

    assert await store.kill_delivery(first.id, "s1", error="channel_not_found")

    assert await texts(store) == ["a2"]
    dead, sent = await store.deliveries_of(question_id)
    assert (dead.state, dead.error) == (DeliveryState.DEAD, "channel_not_found")
    assert (sent.state, sent.sent_at, sent.message_ts) == (
        DeliveryState.SENT,
        NOW,
        f"ts-{sent.seq}",
    )


async def test_a_lost_senders_delivery_is_taken_over_as_uncertain(store: Store) -> None:
    await store.enqueue([post("a1"), post("a2")], now=NOW)
    first = await send_next(store, "s1")
    assert first is not None

    assert await send_next(store, "s2", now=NOW + LEASE_S - 0.001) is None
    second = await send_next(store, "s2", now=NOW + LEASE_S)

    assert second is not None
    assert (second.id, second.claimed_by, second.attempts) == (first.id, "s2", 2)
    assert second.uncertain
    # The first one wakes up again: it must not disturb the second.
    assert not await store.retry_delivery(first.id, "s1", not_before=NOW, error="late")
    assert not await store.kill_delivery(first.id, "s1", error="late")
    assert await send_next(store, "s3", now=NOW + LEASE_S) is None


async def test_a_late_report_of_success_is_believed(store: Store) -> None:
    question_id, _ = await ask(store)
    await store.enqueue([post()], question_id=question_id, now=NOW)
    first = await send_next(store, "s1")
    assert first is not None
    await send_next(store, "s2", now=NOW + LEASE_S)

    await store.mark_sent(first.id, message_ts="1.0", now=NOW + LEASE_S + 1)
    await store.mark_sent(first.id, message_ts="2.0", now=NOW + LEASE_S + 2)
    assert not await store.retry_delivery(first.id, "s2", not_before=NOW, error="late")

    (sent,) = await store.deliveries_of(question_id)
    assert (sent.state, sent.message_ts, sent.sent_at) == (
        DeliveryState.SENT,
        "1.0",
        NOW + LEASE_S + 1,
    )


async def test_no_reply_is_remembered_as_uncertain(store: Store) -> None:
    await store.enqueue([post()], now=NOW)
    first = await send_next(store)
    assert first is not None

    await store.retry_delivery(first.id, "s1", not_before=NOW, error="time-out", uncertain=True)
    second = await send_next(store)
    assert second is not None
    assert second.uncertain
    await store.retry_delivery(first.id, "s1", not_before=NOW, error="503")
    third = await send_next(store)
    assert third is not None
    assert third.uncertain


async def test_waiting_edits_of_one_message_become_the_newest(store: Store) -> None:
    await store.enqueue([post("start", coalesce_key="m")], now=NOW)
    assert await texts(store) == ["start"]
    await store.enqueue([edit("10%", coalesce_key="m")], now=NOW)
    await store.enqueue([post("other")], now=NOW)
    await store.enqueue([edit("20%", coalesce_key="m"), edit("other", coalesce_key="n")], now=NOW)
    await store.enqueue([edit("done", coalesce_key="m")], now=NOW)

    assert await texts(store) == ["done", "other", "other"]


async def test_an_edit_of_a_message_not_yet_posted_becomes_the_post(store: Store) -> None:
    await store.enqueue([post("start", coalesce_key="m")], now=NOW)
    await store.enqueue([edit("done", coalesce_key="m")], now=NOW)

    only = await send_next(store)
    assert only is not None
    assert (only.kind, only.payload) == (DeliveryKind.POST, {"text": "done"})
    await store.mark_sent(only.id, message_ts="1", now=NOW)
    assert await send_next(store) is None


async def test_an_edit_during_sending_follows_and_knows_its_message(store: Store) -> None:
    await store.enqueue([post("start", coalesce_key="m")], now=NOW)
    first = await send_next(store)
    assert first is not None
    await store.enqueue([edit("10%", coalesce_key="m"), edit("done", coalesce_key="m")], now=NOW)
    await store.mark_sent(first.id, message_ts="17.5", now=NOW)

    second = await send_next(store)

    assert second is not None
    assert (second.kind, second.payload) == (DeliveryKind.UPDATE, {"text": "done"})
    assert second.message_ts == "17.5"


async def test_an_edit_whose_post_was_given_up_knows_no_message(store: Store) -> None:
    await store.enqueue([post("start", coalesce_key="m")], now=NOW)
    first = await send_next(store)
    assert first is not None
    await store.enqueue([edit("done", coalesce_key="m")], now=NOW)
    await store.kill_delivery(first.id, "s1", error="gone")

    second = await send_next(store)

    assert second is not None
    assert (second.kind, second.message_ts) == (DeliveryKind.UPDATE, None)


async def test_progress_never_comes_after_the_answer(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store, "w1")
    progress = {"question_id": question_id, "worker": "w1", "now": NOW}

    assert len(await store.enqueue([post("reading", coalesce_key="m")], **progress)) == 1
    assert await store.enqueue([post("x")], question_id=question_id, worker="w2", now=NOW) == ()
    await store.finish_question(
        question_id, "w1", answer={}, deliveries=[edit("answer", coalesce_key="m")], now=NOW
    )
    assert await store.enqueue([edit("still reading", coalesce_key="m")], **progress) == ()

    assert await texts(store) == ["answer"]


async def test_a_payload_is_not_shown_by_accident(store: Store) -> None:
    await store.enqueue([post("https://hooks.slack.example/T0/secret")], now=NOW)

    assert "secret" not in repr(post("secret"))
    assert "secret" not in repr(await send_next(store))
