"""A stored question is answered once, by whichever worker lives long enough."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bot.answer import Answer, line
from bot.delivery import Parcel
from bot.inbound import Inbound, Outcome, Surface
from bot.policy import Policy, PolicyRule
from bot.policy.groups import GroupBook
from bot.request import Actor, ActorKind, Request
from bot.router import free_question, parse_words, understand
from bot.service import BusyError, Readers, Service
from bot.store import Decision, DeliveryKind, QuestionState, Store, StoreError
from bot.telemetry import Telemetry
from bot.worker import Worker
from engine.errors import SourceError
from tests.support.waiting import eventually, until

ADA = Actor(ActorKind.SLACK, "U1", "ada", channel="C1")


class Echo:
    """A backend that answers with what it was asked, after a while if told so."""

    commands = ("why", "sweep", "decode", "read", "help")

    def __init__(self, wait_s: float = 0.0) -> None:
        self.wait_s = wait_s
        self.ran: list[Request] = []
        self.error: Exception | None = None
        self.data: dict[str, object] = {"verdict": "healthy"}

    async def run(self, request: Request) -> Answer:
        self.ran.append(request)
        await asyncio.sleep(self.wait_s)
        if self.error:
            raise self.error
        return Answer(line(f"answer to {request.text}"), (), dict(self.data))


def service(
    store: Store,
    backend: Echo,
    policy: Policy | None = None,
    wake: Callable[[], None] = lambda: None,
) -> Service:
    async def nobody(group: str) -> tuple[str, ...]:
        return ()

    return Service(
        store=store,
        backend=backend,  # type: ignore[arg-type]
        policy=policy or Policy(),
        groups=GroupBook((), nobody, time.monotonic),
        readers=Readers(parse_words, understand, free_question),
        telemetry=Telemetry(),
        clock=time.time,
        wake=wake,
    )


@asynccontextmanager
async def working(
    store: Store, asked: Service, *, name: str = "w1", lease_s: float = 5.0, at_once: int = 4
) -> AsyncIterator[Worker]:
    worker = Worker(
        store,
        asked,
        name=name,
        clock=time.time,
        telemetry=Telemetry(),
        wake=lambda: None,
        at_once=at_once,
        lease_s=lease_s,
    )
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await worker.drain(0.1)
        await task


def slash(text: str = "decode 0x48", key: str = "t1", **more: object) -> Inbound:
    given = {"surface": Surface.COMMAND, "actor": ADA, "channel": "C1", **more}
    return Inbound(dedupe_key=key, text=text, **given)  # type: ignore[arg-type]


def mention(text: str, key: str = "m1", **more: object) -> Inbound:
    return slash(text, key, **{"surface": Surface.MENTION, "thread": "1.0", **more})


async def answered(store: Store) -> None:
    async def none_open() -> bool:
        return not (await store.backlog()).questions

    await eventually(none_open)


async def parcels(store: Store, question: str) -> list[tuple[DeliveryKind, Parcel]]:
    found = await store.deliveries_of(question)
    return [(d.kind, Parcel.from_json(d.payload)) for d in found]


async def test_a_question_is_stored_with_its_progress_message_before_anybody_works(store):
    ticket = await service(store, Echo()).submit(slash())
    assert ticket.outcome is Outcome.ACCEPTED
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert question.state is QuestionState.RECEIVED
    ((kind, parcel),) = await parcels(store, ticket.question_id)
    assert kind is DeliveryKind.POST
    assert "decode 0x48" in str(parcel.message["blocks"])


async def test_the_answer_is_stored_with_its_evidence_and_its_message(store):
    asked = service(store, Echo())
    ticket = await asked.submit(slash())
    async with working(store, asked):
        await answered(store)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert (question.state, question.verdict) == (QuestionState.ANSWERED, "healthy")
    assert question.answer is not None
    assert question.answer["schema"] == "gpuwhy/answer/1"
    # The progress message was not sent yet, so the answer has taken its place in the queue.
    ((_, parcel),) = await parcels(store, ticket.question_id)
    assert "answer to decode 0x48" in parcel.message["text"]
    assert parcel.placeholder is not None


async def test_the_same_request_twice_is_one_question(store):
    asked = service(store, Echo())
    first, again = await asked.submit(slash()), await asked.submit(slash())
    assert (first.outcome, again.outcome) == (Outcome.ACCEPTED, Outcome.DUPLICATE)
    assert first.question_id == again.question_id
    async with working(store, asked):
        await answered(store)
    assert len(await store.list_audit()) == 1


async def test_an_error_is_an_answer_too(store):
    backend = Echo()
    backend.error = SourceError("http://prom cannot be reached", hint="check that it runs")
    asked = service(store, backend)
    ticket = await asked.submit(slash("why node-3:5"))
    async with working(store, asked):
        await answered(store)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert question.state is QuestionState.FAILED
    assert question.error is not None
    assert question.error["code"] == "source_unreachable"
    ((_, parcel),) = await parcels(store, ticket.question_id)
    assert "http://prom cannot be reached" in parcel.message["text"]


async def test_a_bug_is_told_without_its_words(store):
    backend = Echo()
    backend.error = RuntimeError("xoxb-secret")
    asked = service(store, backend)
    ticket = await asked.submit(slash())
    async with working(store, asked):
        await answered(store)
    ((_, parcel),) = await parcels(store, ticket.question_id)
    assert "internal error: RuntimeError" in parcel.message["text"]
    assert "xoxb" not in str(parcel.to_json())


@pytest.mark.parametrize("text", ["decoed 0x48", "why", "frobnicate", "why node-3:5 --windwo 5m"])
async def test_a_command_that_cannot_be_read_is_told_at_once(store, text):
    ticket = await service(store, Echo()).submit(slash(text))
    assert ticket.outcome is Outcome.MISUNDERSTOOD
    assert ticket.reply is not None
    assert ticket.reply.data["error"]["message"]
    assert (await store.backlog()).questions == 0


async def test_help_comes_with_the_acknowledgement(store):
    ticket = await service(store, Echo()).submit(slash("help"))
    assert (ticket.outcome, ticket.question_id) == (Outcome.ANSWERED, "")
    assert ticket.reply is not None


async def test_what_is_no_question_is_told_once_and_to_the_asker_alone(store):
    asked = service(store, Echo())
    first = await asked.submit(mention("<@U0BOT> thanks a lot!"))
    again = await asked.submit(mention("<@U0BOT> thanks a lot!"))
    assert (first.outcome, again.outcome) == (Outcome.IGNORED, Outcome.DUPLICATE)
    async with working(store, asked):
        await answered(store)
    ((kind, parcel),) = await parcels(store, first.question_id)
    assert (kind, parcel.user) == (DeliveryKind.EPHEMERAL, "U1")


async def test_a_refusal_is_audited_and_told(store):
    rules = [PolicyRule(False, who=("user:U1",), commands=("sweep",))]
    asked = service(store, Echo(), Policy(rules))
    slashed = await asked.submit(slash("sweep"))
    mentioned = await asked.submit(mention("<@U0BOT> anything sick?"))
    assert (slashed.outcome, mentioned.outcome) == (Outcome.REFUSED, Outcome.REFUSED)
    assert slashed.reply is not None
    assert "rule 1 denies" in slashed.reply.data["error"]["message"]
    async with working(store, asked):
        await answered(store)
    ((kind, _),) = await parcels(store, mentioned.question_id)
    assert kind is DeliveryKind.EPHEMERAL
    entries = await store.list_audit()
    assert {(e.command, e.target, e.decision) for e in entries} == {
        ("sweep", "fleet", Decision.DENY)
    }


async def test_captures_are_denied_by_default(store):
    ticket = await service(store, Echo()).submit(slash("capture nsys node-3:5 10s"))
    assert ticket.outcome is Outcome.REFUSED


async def test_an_answer_about_a_denied_host_is_held_back(store):
    """A job names its hosts only when it is answered."""
    backend = Echo()
    backend.data = {
        "target": {"kind": "job", "name": "job/7"},
        "members": [{"kind": "gpu", "name": "secret-1:0", "host": "secret-1"}],
    }
    rules = [PolicyRule(False, targets=("secret-*",))]
    asked = service(store, backend, Policy(rules))
    ticket = await asked.submit(slash("why job/7"))
    async with working(store, asked):
        await answered(store)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert (question.state, question.answer) == (QuestionState.FAILED, None)


async def test_what_is_pasted_is_not_in_the_audit_log(store):
    asked = service(store, Echo())
    await asked.submit(slash("read NVRM: Xid 79 password=hunter2"))
    async with working(store, asked):
        await answered(store)
    (entry,) = await store.list_audit()
    assert (entry.command, entry.reason) == ("read", "allowed by default")
    assert "hunter2" not in str(entry)


async def test_while_the_store_is_away_a_question_is_not_taken(store, monkeypatch):
    async def away(**values):
        raise StoreError("database gone")

    monkeypatch.setattr(store, "add_question", away)
    asked = service(store, Echo())
    ticket = await asked.submit(slash())
    assert ticket.outcome is Outcome.BUSY
    assert ticket.reply is not None
    assert (await asked.submit(mention("<@U0BOT> what is xid 79?"))).outcome is Outcome.BUSY


async def test_a_question_of_a_dead_worker_is_answered_by_another(store):
    asked = service(store, Echo())
    ticket = await asked.submit(slash())
    taken = await store.claim_question("dead", lease_s=0.5, now=time.time())
    assert taken is not None
    async with working(store, asked):
        await answered(store)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert question.attempts == 2
    assert len(await store.deliveries_of(ticket.question_id)) == 1


async def test_a_lease_is_renewed_while_the_answer_takes_long(store):
    backend = Echo(wait_s=2.0)
    asked = service(store, backend)
    await asked.submit(slash())
    async with working(store, asked, lease_s=0.6), working(store, asked, name="w2", lease_s=0.6):
        await answered(store)
    assert len(backend.ran) == 1


async def test_a_worker_that_lost_its_question_stops_and_says_nothing(store):
    backend = Echo(wait_s=1.5)
    asked = service(store, backend)
    ticket = await asked.submit(slash())
    async with working(store, asked, lease_s=0.9) as worker:
        await until(lambda: backend.ran)
        # The process hung for so long that its lease ended, and another worker has the question.
        other = await store.claim_question("other", lease_s=60, now=time.time() + 5)
        assert other is not None
        await until(lambda: not worker.busy)
        question = await store.get_question(ticket.question_id)
    assert question is not None
    assert (question.state, question.claimed_by) == (QuestionState.WORKING, "other")


async def test_draining_gives_back_what_takes_too_long(store):
    backend = Echo(wait_s=30)
    asked = service(store, backend)
    ticket = await asked.submit(slash())
    async with working(store, asked):
        await until(lambda: backend.ran)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert (question.state, question.claimed_until) == (QuestionState.RECEIVED, 0)


async def test_a_question_that_always_kills_the_process_is_given_up(store):
    asked = service(store, Echo())
    ticket = await asked.submit(slash())
    for number in range(5):
        await store.claim_question(f"dead{number}", lease_s=0, now=time.time())
    async with working(store, asked):
        await answered(store)
    question = await store.get_question(ticket.question_id)
    assert question is not None
    assert question.error is not None
    assert question.error["code"] == "given_up"


async def test_two_workers_never_answer_one_question_twice(store):
    backend = Echo()
    asked = service(store, backend)
    tickets = [await asked.submit(slash(f"decode {n}", f"t{n}")) for n in range(40)]
    async with working(store, asked), working(store, asked, name="w2"):
        await answered(store)
    assert len(backend.ran) == 40
    for ticket in tickets:
        assert len(await store.deliveries_of(ticket.question_id)) == 1


async def test_asking_at_once_is_limited(store):
    backend = Echo(wait_s=0.5)
    asked = service(store, backend)
    actor = Actor(ActorKind.TOKEN, "ci")
    many = [asked.ask(actor, Request("decode", {"text": str(n)})) for n in range(80)]
    found = await asyncio.gather(*many, return_exceptions=True)
    busy = [one for one in found if isinstance(one, BusyError)]
    assert len(busy) == 16
    assert all(isinstance(one, Answer | BusyError) for one in found)
