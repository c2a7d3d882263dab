"""Free questions in Slack: stored as such, and understood by what was asked before in the thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bot.backend import Backend
from bot.inbound import Inbound, Outcome, Surface
from bot.policy import Policy
from bot.policy.groups import GroupBook
from bot.request import Actor, ActorKind, Request
from bot.router import free_question, parse_words, understand
from bot.service import Readers, Service
from bot.store import Store
from bot.telemetry import Telemetry

ADA = Actor(ActorKind.SLACK, "U1", "ada", channel="C1")


@pytest.fixture
def asked(store: Store) -> Service:
    async def nobody(group: str) -> tuple[str, ...]:
        return ()

    return Service(
        store=store,
        backend=Backend(None),
        policy=Policy(),
        groups=GroupBook((), nobody, time.monotonic),
        readers=Readers(parse_words, understand, free_question),
        telemetry=Telemetry(),
        clock=time.time,
        wake=lambda: None,
    )


@pytest.fixture
def stored(asked: Service, store: Store) -> Callable[..., object]:
    """Mention the bot and return the request as it was stored."""
    numbers = iter(range(100))

    async def mention(text: str, thread: str = "1.0", channel: str = "C1") -> Request:
        ticket = await asked.submit(
            Inbound(
                dedupe_key=f"m{next(numbers)}",
                text=text,
                surface=Surface.MENTION,
                actor=ADA,
                channel=channel,
                thread=thread,
            )
        )
        assert ticket.outcome is Outcome.ACCEPTED
        question = await store.get_question(ticket.question_id)
        assert question is not None
        return Request(question.request["command"], question.request["args"])

    return mention


async def test_a_symptom_in_words_is_asked(stored) -> None:
    request = await stored("<@UBOT> allreduce crawls")
    assert request == Request("ask", {"text": "allreduce crawls"})


async def test_a_follow_up_knows_what_was_asked_before(stored) -> None:
    await stored("which tool shows gaps between kernels?")
    request = await stored("and on AMD?")
    assert request.args["after"] == "which tool shows gaps between kernels?"


async def test_it_knows_all_of_them_in_order(stored) -> None:
    for text in ("which tool shows gaps between kernels?", "and on AMD?"):
        await stored(text)
    request = await stored("and for memory copies?")
    assert request.args["after"] == "which tool shows gaps between kernels?\nand on AMD?"


@pytest.mark.parametrize(("thread", "channel"), [("2.0", "C1"), ("1.0", "C2")])
async def test_another_thread_is_another_conversation(stored, thread, channel) -> None:
    await stored("which tool shows gaps between kernels?")
    request = await stored("and on AMD?", thread=thread, channel=channel)
    assert "after" not in request.args


async def test_other_commands_between_do_not_count(stored) -> None:
    await stored("which tool shows gaps between kernels?")
    await stored("what is 0x48")
    request = await stored("and on AMD?")
    assert request.args["after"] == "which tool shows gaps between kernels?"


async def test_the_backend_answers_it(asked: Service) -> None:
    backend = Backend(None)
    await backend.start()
    try:
        answer = await backend.run(
            Request("ask", {"text": "for 1003?", "after": "what is dcgm field 1002"})
        )
        calculated = await backend.run(
            Request("calc", {"words": ["busbw", "algbw=188.5", "ranks=8"]})
        )
        shown = await backend.run(Request("kb", {"action": "show", "text": "xid/79"}))
    finally:
        await backend.aclose()
    assert answer.data["answers"][0]["id"] == "dcgm_fields/1003"
    assert calculated.data["results"][0]["value"] == pytest.approx(329.875)
    assert shown.data["entry"]["id"] == 79
