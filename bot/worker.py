"""The worker: takes questions from the store and answers them, several at a time.

A question stays with a worker while the worker renews its lease; when the process dies, the lease
ends and another one (or the next start) takes the question. The answer and the message that brings
it are stored in one step, so a question is answered once whatever happens in between.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping

from bot import answer_json
from bot.answer import Answer
from bot.delivery.compose import Route, final, progress
from bot.failure import failed, internal
from bot.hints import Hints
from bot.request import Actor, Request
from bot.service import SAID, Service
from bot.store import NewDelivery, Question, Store, StoreError
from bot.telemetry import Telemetry
from engine.errors import GpuwhyError

log = logging.getLogger(__name__)

Special = Callable[[Question, Actor, Request], Awaitable[tuple[Answer, NewDelivery]]]

# How soon the store is looked at again for questions of other replicas, and after an outage.
_IDLE_S = 1.0
# From when on, and how often, the progress message says for how long it has been.
_PROGRESS_S = 5.0
# A question that brought the process down this often is not tried again.
_ATTEMPTS = 5
_STORE_PAUSES_S = (0.2, 1.0, 3.0)


class Worker:
    """Answers stored questions until it is stopped.

    Args:
        store: holds the questions.
        service: runs them.
        name: of this worker; no other process has or had it.
        clock: Unix seconds.
        telemetry: times.
        wake: called when something was put in the delivery queue.
        at_once: questions answered at the same time.
        lease_s: how long a question stays with a worker that gives no sign of life (s).
        special: commands that make their own message, by name.
    """

    def __init__(
        self,
        store: Store,
        service: Service,
        *,
        name: str,
        clock: Callable[[], float],
        telemetry: Telemetry,
        wake: Callable[[], None],
        at_once: int = 8,
        lease_s: float = 30.0,
        special: Mapping[str, Special] | None = None,
    ) -> None:
        self._store = store
        self._service = service
        self._name = name
        self._clock = clock
        self._telemetry = telemetry
        self._wake_sender = wake
        self._at_once = at_once
        self._lease_s = lease_s
        self._special = dict(special or {})
        self._claims = itertools.count(1)
        self._hints = Hints()
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def busy(self) -> int:
        """How many questions are being answered."""
        return len(self._running)

    def wake(self) -> None:
        """Say that a question was stored."""
        self._hints.add()

    async def run(self) -> None:
        """Take questions until `stop` is called."""
        while not self._stopping:
            if len(self._running) >= self._at_once:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                continue
            question = await self._claim()
            self._hints.looked(found=question is not None)
            if question is not None:
                self._start(question)
            await self._hints.wait(_IDLE_S)

    def stop(self) -> None:
        """Take no more questions; those begun go on."""
        self._stopping = True
        self._hints.nudge()

    async def drain(self, seconds: float) -> None:
        """Wait for what has begun; give back what does not end in time, for another worker."""
        self.stop()
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        left = list(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _claim(self) -> Question | None:
        try:
            # A name for each claim: one whose lease has ended has no say about the next.
            name = f"{self._name}/{next(self._claims)}"
            return await self._store.claim_question(name, lease_s=self._lease_s, now=self._clock())
        except StoreError as error:
            log.warning("questions: %s", error.one_line())
            return None

    def _start(self, question: Question) -> None:
        task = asyncio.create_task(self._work(question), name=f"answer {question.id}")
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (problem := task.exception()):
            log.error("a question broke", exc_info=problem)

    async def _work(self, question: Question) -> None:
        self._telemetry.waiting.observe(max(0.0, self._clock() - question.created_at))
        try:
            request = Request.from_json(question.request)
            actor = Actor.from_json(question.actor)
            answer, delivery, error = await self._answered(question, actor, request)
            if delivery is None:
                route = Route.of(question)
                delivery = await asyncio.to_thread(final, route, actor, request, answer)
            if error is None:
                await self._finish(question, answer, delivery)
            else:
                await self._fail(question, error, delivery)
        except asyncio.CancelledError:
            await self._give_back(question)
            raise
        except StoreError as error:
            # The lease ends by itself, and the question is answered then.
            log.warning("question %s: %s", question.id, error.one_line())
        self._wake_sender()

    async def _answered(
        self, question: Question, actor: Actor, request: Request
    ) -> tuple[Answer, NewDelivery | None, GpuwhyError | None]:
        """Run a request while its lease is renewed.

        Returns:
            The answer, its message if the command makes its own, and the error if it is one.

        Raises:
            CancelledError: the server stops, or another worker has the question.
            StoreError: the database cannot be used; the question is tried again.
        """
        running = asyncio.create_task(self._run(question, actor, request))
        keeping = asyncio.create_task(self._keep(question, actor, request))
        try:
            await asyncio.wait({running, keeping}, return_when=asyncio.FIRST_COMPLETED)
            # If it is the lease that ended, the work is cancelled, and so is whoever waits for it.
            if not running.done():
                running.cancel()
            return *await running, None
        except StoreError:
            raise
        except GpuwhyError as error:
            return failed(error), None, error
        except Exception as problem:
            log.exception("question %s", question.id)
            broken = internal(problem)
            return failed(broken), None, broken
        finally:
            running.cancel()
            keeping.cancel()
            await asyncio.gather(running, keeping, return_exceptions=True)

    async def _run(
        self, question: Question, actor: Actor, request: Request
    ) -> tuple[Answer, NewDelivery | None]:
        if request.command == SAID:
            raise answer_json.error_from_json(request.args)
        if question.attempts > _ATTEMPTS:
            said = f"the server stopped {_ATTEMPTS} times over this question"
            raise GpuwhyError(said, hint="ask about less at once", code="given_up")
        await self._service.audit_start(question, actor, request)
        if special := self._special.get(request.command):
            return await special(question, actor, request)
        return await self._service.run(actor, request), None

    async def _keep(self, question: Question, actor: Actor, request: Request) -> None:
        """Renew the lease and tell how long it takes; return when another worker has it."""
        began = self._clock()
        route = Route.of(question)
        shown = began
        while True:
            await asyncio.sleep(min(self._lease_s / 3, _PROGRESS_S))
            now = self._clock()
            try:
                if not await self._store.renew_question(
                    question.id, _claim(question), lease_s=self._lease_s, now=now
                ):
                    return
                if now - shown >= _PROGRESS_S and request.command != SAID:
                    shown = now
                    edit = progress(route, actor, request, running_s=now - began)
                    await self._store.enqueue(
                        [edit], question_id=question.id, worker=_claim(question), now=now
                    )
                    self._wake_sender()
            except StoreError as error:
                log.warning("question %s: %s", question.id, error.one_line())

    async def _finish(self, question: Question, answer: Answer, delivery: NewDelivery) -> None:
        verdict, cause = _verdict(answer)
        document = await asyncio.to_thread(answer_json.to_json, answer)
        for pause_s in (*_STORE_PAUSES_S, None):
            try:
                await self._store.finish_question(
                    question.id,
                    _claim(question),
                    answer=document,
                    verdict=verdict,
                    cause=cause,
                    deliveries=(delivery,),
                    now=self._clock(),
                )
            except StoreError:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return

    async def _fail(self, question: Question, error: GpuwhyError, delivery: NewDelivery) -> None:
        document = answer_json.error_to_json(error)
        await self._store.fail_question(
            question.id, _claim(question), error=document, deliveries=(delivery,), now=self._clock()
        )

    async def _give_back(self, question: Question) -> None:
        try:
            await self._store.release_question(question.id, _claim(question))
        except StoreError as error:
            log.warning("question %s: %s", question.id, error.one_line())


def _claim(question: Question) -> str:
    """Return the name under which we hold a question."""
    return question.claimed_by or ""


def _verdict(answer: Answer) -> tuple[str | None, str | None]:
    """Return the verdict and the first cause of an answer, for looking it up later."""
    data = answer.data
    causes = data.get("causes") or [d.get("cause") for d in data.get("diagnoses") or ()]
    incidents = [i.get("cause") for i in data.get("incidents") or ()]
    first = next(iter([*causes, *incidents]), None)
    return data.get("verdict"), first
