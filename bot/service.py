"""The service: what every surface calls to have a question answered.

`Service.submit` takes a question that is answered later, in the conversation; it only reads the
words, asks the policy and writes to the store, so that it can be acknowledged at once.
`Service.ask` answers while the caller waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot import answer_json
from bot.answer import Answer
from bot.backend import Backend
from bot.captures import Desk
from bot.delivery.compose import Route, progress
from bot.failure import failed
from bot.inbound import Inbound, Outcome, Surface, Ticket
from bot.policy import Decision as Verdict
from bot.policy import Policy
from bot.policy.groups import GroupBook
from bot.policy.names import names_of
from bot.policy.policy import refusal
from bot.request import Actor, Json, Request
from bot.store import Decision, Question, Store, StoreError
from bot.telemetry import Telemetry
from engine.catalogue.nearest import did_you_mean
from engine.errors import GpuwhyError, UsageError
from engine.redact import redact

__all__ = ["SAID", "BusyError", "Inbound", "Outcome", "Service", "Surface", "Ticket"]

log = logging.getLogger(__name__)

# What a refused or misunderstood question is stored as: whoever answers it says the stored error.
SAID = "said"
# Words beside a file that ask for no more than reading it.
_READ_INSTEAD = frozenset({"read", "help", "ask", "decode"})
_ASKING_AT_ONCE = 16
_WAITING = 64
# Characters of the questions before that a question in the same thread is given.
_REMEMBERED = 1500


class BusyError(GpuwhyError):
    """Too many questions at once."""

    exit_status = 3
    default_code = "busy"


@dataclass(frozen=True, slots=True)
class Readers:
    """How words become a request.

    Attributes:
        words: reads the words of a command; raises `UsageError`.
        speech: understands plain words; None if they ask for no command.
        question: takes plain words for a question to the knowledge base; None if they are none.
    """

    words: Callable[[str], Request]
    speech: Callable[[str], Request | None]
    question: Callable[[str], Request | None]


class Service:
    """Takes questions from every surface.

    Args:
        store: keeps questions until they are answered.
        backend: answers those whose asker waits.
        policy: says who may ask what.
        groups: knows the Slack user groups that the policy names.
        readers: turn words into requests.
        telemetry: counts.
        clock: Unix seconds.
        wake: called when a question was stored.
        desk: plans captures; None: there are none.
    """

    def __init__(
        self,
        *,
        store: Store,
        backend: Backend,
        policy: Policy,
        groups: GroupBook,
        readers: Readers,
        telemetry: Telemetry,
        clock: Callable[[], float],
        wake: Callable[[], None],
        desk: Desk | None = None,
    ) -> None:
        self._store = store
        self._desk = desk
        self._backend = backend
        self._policy = policy
        self._groups = groups
        self._readers = readers
        self._telemetry = telemetry
        self._clock = clock
        self._wake = wake
        self._asking = asyncio.Semaphore(_ASKING_AT_ONCE)
        self._waiting = 0

    async def submit(self, inbound: Inbound) -> Ticket:
        """Take a question that is answered later, unless it was taken before.

        A question that is understood and allowed is stored together with the message that says so.
        Whatever cannot be answered is said by the reply of a command, and otherwise stored too, so
        that it is said once.
        """
        began = time.perf_counter()
        command = "none"
        try:
            request = self._understood(inbound)
        except UsageError as error:
            ticket = await self._say(inbound, Outcome.MISUNDERSTOOD, error)
        else:
            if request is None:
                ticket = await self._small_talk(inbound)
            else:
                command = request.command
                ticket = await self._take(inbound, request)
        labels = (str(inbound.surface), self._known(command), str(ticket.outcome))
        self._telemetry.received.labels(*labels).inc()
        self._telemetry.accepting.labels(str(inbound.surface)).observe(time.perf_counter() - began)
        return ticket

    @property
    def commands(self) -> tuple[str, ...]:
        """Names of everything that can be asked for."""
        return (*self._backend.commands, *(self._desk.commands if self._desk else ()))

    async def decide(self, job_id: str, actor: Actor, approve: bool) -> None:
        """Approve or deny a plan; what is to be said about it goes through the delivery queue.

        Raises:
            StoreError: the decision could not be kept.
        """
        if self._desk:
            await self._desk.decide(job_id, self._groups.known(actor), approve=approve)

    async def ask(self, actor: Actor, request: Request) -> Answer:
        """Answer a request at once.

        Raises:
            RefusedError: policy says no.
            BusyError: too many wait already.
            GpuwhyError: there is no answer.
        """
        if self._desk and request.command in self._desk.commands:
            return await self._desk.ask(actor, request)
        if request.command not in self._backend.commands:
            raise unknown_command(request.command, self.commands)
        if "files" in request.args:
            # The bot may see files that the holder of a token may not.
            raise UsageError("files are taken from Slack messages only", hint="send 'inputs'")
        decision = self._policy.decide(actor, request)
        await self._audit(actor, Surface.API, request, decision.allowed, decision.reason, None)
        outcome = Outcome.ACCEPTED if decision.allowed else Outcome.REFUSED
        labels = (str(Surface.API), self._known(request.command), str(outcome))
        self._telemetry.received.labels(*labels).inc()
        if not decision.allowed:
            raise refusal(request.command, names_of(request).shown, decision)
        if self._waiting >= _WAITING:
            raise BusyError("too many questions at once", hint="ask again in a few seconds")
        self._waiting += 1
        try:
            async with self._asking:
                return await self.run(actor, request)
        finally:
            self._waiting -= 1

    async def audit_start(self, question: Question, actor: Actor, request: Request) -> None:
        """Write down an allowed use before it happens; once more if a worker was lost over it.

        It is not done on arrival: the acknowledgement would wait for it.

        Raises:
            StoreError: it cannot be written; then it must not happen.
        """
        again = f" (attempt {question.attempts})" if question.attempts > 1 else ""
        reason = f"{Route.of(question).reason}{again}"
        surface = Surface(question.surface)
        await self._audit(actor, surface, request, True, reason, question.id)

    async def run(self, actor: Actor, request: Request) -> Answer:
        """Run an allowed request and time it; what an answer turns out to show must be allowed too.

        Raises:
            RefusedError: it is about something that the actor may not see.
            GpuwhyError: there is no answer.
        """
        command = self._known(request.command)
        outcome = "internal"
        began = time.perf_counter()
        try:
            answer = await self._backend.run(request)
            again = self._policy.recheck(actor, request, answer.data)
            if not again.allowed:
                raise refusal(request.command, names_of(request).shown, again)
            outcome = "ok"
        except GpuwhyError as error:
            outcome = error.code
            raise
        finally:
            self._telemetry.answers.labels(command, outcome).inc()
            self._telemetry.answering.labels(command).observe(time.perf_counter() - began)
        return answer

    def _understood(self, inbound: Inbound) -> Request | None:
        if isinstance(inbound.text, Request):
            return _with_files(inbound.text, inbound)
        if inbound.surface is Surface.COMMAND:
            return self._readers.words(inbound.text)
        asked = self._readers.speech(inbound.text)
        if inbound.files and (asked is None or asked.command in _READ_INSTEAD):
            return _with_files(asked or Request("read", text=inbound.text), inbound)
        return asked or self._readers.question(inbound.text)

    async def _take(self, inbound: Inbound, request: Request) -> Ticket:
        actor = self._groups.known(inbound.actor)
        decision = self._policy.decide(actor, request)
        if not decision.allowed:
            error = refusal(request.command, names_of(request).shown, decision)
            ticket = await self._say(inbound, Outcome.REFUSED, error)
        elif request.command == "help" and inbound.surface is Surface.COMMAND:
            ticket = await self._answered(request)
        else:
            ticket = await self._stored(inbound, actor, request, decision.reason)
        if ticket.outcome in {Outcome.REFUSED, Outcome.ANSWERED}:
            await self._audit_or_log(inbound, actor, request, decision, ticket.question_id)
        return ticket

    async def _answered(self, request: Request) -> Ticket:
        try:
            return Ticket(Outcome.ANSWERED, reply=await self._backend.run(request))
        except GpuwhyError as error:
            return Ticket(Outcome.MISUNDERSTOOD, reply=failed(error))

    async def _stored(
        self, inbound: Inbound, actor: Actor, request: Request, reason: str
    ) -> Ticket:
        route = _route(inbound, private=False, reason=reason)
        request = _kept(await self._in_context(inbound, request))
        return await self._add(inbound, actor, request, route, Outcome.ACCEPTED)

    async def _in_context(self, inbound: Inbound, request: Request) -> Request:
        """Return a question with the one before it in the thread, which it may follow."""
        if request.command != "ask" or not inbound.thread or "after" in request.args:
            return request
        try:
            before = await self._store.asked_before(inbound.channel, inbound.thread, "ask")
        except StoreError:
            log.warning("the question before could not be looked up", exc_info=True)
            return request
        said = before.get("args") if before else None
        if not isinstance(said, dict):
            return request
        told = "\n".join(str(said[key]) for key in ("after", "text") if said.get(key))
        args = {**request.args, "after": told[-_REMEMBERED:]}
        return replace(request, args=args) if told else request

    async def _small_talk(self, inbound: Inbound) -> Ticket:
        if inbound.surface is Surface.COMMAND:
            return Ticket(Outcome.IGNORED)
        hint = 'try "why is gpu 5 on node-3 slow?", "anything sick?", "what is xid 79", or "help"'
        error = UsageError("that is no question I can answer", hint=hint, code="not_understood")
        ticket = await self._say(inbound, Outcome.IGNORED, error)
        return Ticket(ticket.outcome, ticket.question_id)

    async def _say(self, inbound: Inbound, outcome: Outcome, error: GpuwhyError) -> Ticket:
        """Tell the asker alone what is wrong: with the acknowledgement, or by the queue, once."""
        if inbound.surface is Surface.COMMAND:
            return Ticket(outcome, reply=failed(error))
        request = Request(SAID, answer_json.error_to_json(error))
        route = _route(inbound, private=True)
        return await self._add(inbound, inbound.actor, request, route, outcome)

    async def _add(
        self, inbound: Inbound, actor: Actor, request: Request, route: Route, outcome: Outcome
    ) -> Ticket:
        said = request.command == SAID
        try:
            added = await self._store.add_question(
                dedupe_key=inbound.dedupe_key,
                surface=str(inbound.surface),
                actor=actor.to_json(),
                request=route.into(request.to_json()),
                channel=inbound.channel,
                thread=inbound.thread,
                deliveries=() if said else (progress(route, actor, request),),
                now=self._clock(),
            )
        except StoreError as error:
            log.warning("a question could not be stored: %s", error.one_line())
            busy = BusyError("the question could not be kept", hint="ask again in a minute")
            reply = failed(busy) if inbound.surface is Surface.COMMAND else None
            return Ticket(Outcome.BUSY, reply=reply)
        if not added.is_new:
            return Ticket(Outcome.DUPLICATE, added.id)
        self._wake()
        return Ticket(outcome, added.id)

    async def _audit_or_log(
        self,
        inbound: Inbound,
        actor: Actor,
        request: Request,
        decision: Verdict,
        question_id: str,
    ) -> None:
        """Write down a use that has been taken already: if not in the store, then in the log."""
        try:
            await self._audit(
                actor,
                inbound.surface,
                request,
                decision.allowed,
                decision.reason,
                question_id or None,
            )
        except StoreError as error:
            log.warning(
                "audit: %s %s asks %s %s: %s (%s)",
                actor.kind,
                actor.id,
                request.command,
                names_of(request).shown,
                decision.reason,
                error.one_line(),
            )

    async def _audit(
        self,
        actor: Actor,
        surface: Surface,
        request: Request,
        allowed: bool,
        reason: str,
        question_id: str | None,
    ) -> None:
        """Write down a use; what was pasted is left out, it may hold secrets.

        Raises:
            StoreError: it cannot be written; then it must not happen.
        """
        await self._store.add_audit(
            actor=actor.to_json(),
            surface=str(surface),
            command=request.command,
            target=names_of(request).shown,
            decision=Decision.ALLOW if allowed else Decision.DENY,
            reason=reason,
            request_id=question_id,
            now=self._clock(),
        )

    def _known(self, command: str) -> str:
        """Return a command's name for a metric; anything unknown under one name."""
        return command if command in self.commands else "other"


def _with_files(request: Request, inbound: Inbound) -> Request:
    """Return a request to read what was attached, with what was pasted beside it."""
    if not inbound.files:
        return request
    pasted = request.args.get("text", "") if request.command == "read" else ""
    args: dict[str, Json] = {"files": [ref.to_json() for ref in inbound.files]}
    if pasted:
        args["text"] = pasted
    names = ", ".join(ref.name for ref in inbound.files)
    return Request("read", args, text=f"read {names}")


def _kept(request: Request) -> Request:
    """Return a request as it is stored: without the secrets in what was pasted."""
    text = request.args.get("text")
    if request.command != "read" or not isinstance(text, str):
        return request
    return replace(request, args={**request.args, "text": redact(text)}, text=redact(request.text))


def unknown_command(name: str, known: Sequence[str]) -> UsageError:
    """Return the error for a command that there is not."""
    hint = did_you_mean(name, known, otherwise=f"use one of {', '.join(known)}")
    return UsageError(f"no command {name[:40]!r} here", hint=hint, code="unknown_command")


def _route(inbound: Inbound, *, private: bool, reason: str = "") -> Route:
    # A direct message is between the two of us already.
    alone = private and inbound.surface is not Surface.DIRECT
    return Route(
        channel=inbound.channel,
        thread=inbound.thread,
        name=inbound.dedupe_key,
        user=inbound.actor.id if alone else "",
        response_url=inbound.response_url,
        reason=reason,
    )
