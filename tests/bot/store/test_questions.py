"""A question is stored once, worked on by one worker at a time, and answered once."""

from __future__ import annotations

import pytest

from bot.store import DeliveryState, QuestionState, Store
from engine.errors import UsageError
from tests.support.stores import LEASE_S, NOW, ask, claim, post


async def test_what_was_asked_is_read_back_unchanged(store: Store) -> None:
    odd = {"text": "a\0b \ud800 \N{SNOWMAN} <!channel>", "z": 1, "a": [1.5, None, True], "m": {}}

    question_id, is_new = await ask(store, request=odd, thread="17.5")
    found = await store.get_question(question_id)

    assert is_new
    assert found is not None
    assert found.request == odd
    assert list(found.request) == list(odd)
    assert (found.state, found.attempts, found.claimed_by) == (QuestionState.RECEIVED, 0, None)
    assert (found.channel, found.thread, found.created_at) == ("C1", "17.5", NOW)
    assert (found.answer, found.error, found.answered_at) == (None, None, None)
    assert await store.get_question("other") is None


async def test_text_that_no_database_takes_is_mended(store: Store) -> None:
    first = await ask(store, "key\0 \udfff", channel="C\0")
    again = await ask(store, "key\0 \udfff")

    assert again == (first.id, False)
    found = await store.get_question(first.id)
    assert found is not None
    assert found.channel == "C\N{REPLACEMENT CHARACTER}"


async def test_the_second_delivery_of_a_request_changes_nothing(store: Store) -> None:
    first = await ask(store, deliveries=[post("looking")])
    second = await ask(store, now=NOW + 9, channel="C2", deliveries=[post("looking again")])

    assert second == (first.id, False)
    (question,) = await store.list_questions()
    assert question.channel == "C1"
    assert [d.payload for d in await store.deliveries_of(first.id)] == [{"text": "looking"}]


async def test_the_oldest_question_is_claimed_first(store: Store) -> None:
    late = await ask(store, "late", now=NOW + 2)
    early = await ask(store, "early", now=NOW)

    claimed = [await claim(store, now=NOW + 3) for _ in range(3)]

    assert [q and q.id for q in claimed] == [early.id, late.id, None]


async def test_a_claimed_question_is_left_alone_until_the_lease_ends(store: Store) -> None:
    await ask(store)
    first = await claim(store, "w1")
    assert first is not None
    assert (first.claimed_by, first.claimed_until) == ("w1", NOW + LEASE_S)

    assert await claim(store, "w2", now=NOW + LEASE_S - 0.001) is None
    second = await claim(store, "w2", now=NOW + LEASE_S)

    assert second is not None
    assert (second.id, second.claimed_by, second.attempts) == (first.id, "w2", 2)


async def test_a_renewed_lease_lasts_longer(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store, "w1")

    assert await store.renew_question(question_id, "w1", lease_s=LEASE_S, now=NOW + 50)
    assert await claim(store, "w2", now=NOW + LEASE_S + 49) is None
    assert await claim(store, "w2", now=NOW + LEASE_S + 50)

    assert not await store.renew_question(question_id, "w1", lease_s=LEASE_S, now=NOW + 200)


async def test_a_released_question_is_claimable_at_once(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store, "w1")

    assert not await store.release_question(question_id, "w2")
    assert await store.release_question(question_id, "w1")

    again = await claim(store, "w2")
    assert again is not None
    assert again.attempts == 2
    assert not await store.release_question(question_id, "w1")


async def test_an_answer_comes_with_its_deliveries(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store)

    answer = {"verdict": "degraded", "evidence": [{"signal": "sm_clock", "value": 900}]}
    done = await store.finish_question(
        question_id,
        "w1",
        answer=answer,
        verdict="degraded",
        cause="power_brake",
        deliveries=[post("one"), post("two")],
        now=NOW + 1,
    )

    assert done
    found = await store.get_question(question_id)
    assert found is not None
    assert found.state is QuestionState.ANSWERED
    assert (found.answer, found.verdict, found.cause) == (answer, "degraded", "power_brake")
    assert found.answered_at == NOW + 1
    sent = await store.deliveries_of(question_id)
    assert [d.payload["text"] for d in sent] == ["one", "two"]
    assert {d.state for d in sent} == {DeliveryState.PENDING}
    assert await claim(store, "w2", now=NOW + 9 * LEASE_S) is None


async def test_a_worker_that_lost_its_question_answers_nothing(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store, "w1")
    await claim(store, "w2", now=NOW + LEASE_S)

    late = {"answer": {"n": 1}, "deliveries": [post("late")], "now": NOW + LEASE_S + 1}
    assert not await store.finish_question(question_id, "w1", **late)
    assert not await store.fail_question(question_id, "w1", error={}, now=NOW)

    assert await store.finish_question(question_id, "w2", answer={"n": 2}, now=NOW + LEASE_S + 2)
    assert not await store.finish_question(question_id, "w2", **late)
    found = await store.get_question(question_id)
    assert found is not None
    assert found.answer == {"n": 2}
    assert await store.deliveries_of(question_id) == ()


async def test_a_late_worker_may_answer_if_nobody_else_took_over(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store, "w1")

    assert await store.finish_question(question_id, "w1", answer={}, now=NOW + 9 * LEASE_S)


async def test_a_failed_question_says_why_and_is_not_tried_again(store: Store) -> None:
    question_id, _ = await ask(store)
    await claim(store)

    error = {"code": "source_unreachable", "message": "Prometheus does not answer"}
    assert await store.fail_question(
        question_id, "w1", error=error, deliveries=[post("sorry")], now=NOW + 1
    )

    found = await store.get_question(question_id)
    assert found is not None
    assert (found.state, found.error, found.answer) == (QuestionState.FAILED, error, None)
    assert len(await store.deliveries_of(question_id)) == 1
    assert await claim(store, now=NOW + 9 * LEASE_S) is None


async def test_the_newest_questions_come_first(store: Store) -> None:
    for n in range(4):
        await ask(store, f"k{n}", now=NOW + n, channel=f"C{n % 2}")

    keys = [q.dedupe_key for q in await store.list_questions(limit=3)]
    assert keys == ["k3", "k2", "k1"]
    keys = [q.dedupe_key for q in await store.list_questions(channel="C0")]
    assert keys == ["k2", "k0"]


async def test_the_backlog_counts_what_waits(store: Store) -> None:
    assert await store.backlog() == (0, 0, None, None)

    question_id, _ = await ask(store, "k1")
    await ask(store, "k2", now=NOW + 5)
    await claim(store)
    assert await store.backlog() == (2, 0, NOW, None)

    await store.finish_question(question_id, "w1", answer={}, deliveries=[post()], now=NOW + 7)
    assert await store.backlog() == (1, 1, NOW + 5, NOW + 7)


async def test_a_key_without_end_is_refused(store: Store) -> None:
    await ask(store, "\N{GRINNING FACE}" * 500)
    with pytest.raises(UsageError, match="more than 500 characters"):
        await ask(store, "k" * 501)
