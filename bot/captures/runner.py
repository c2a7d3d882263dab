"""The runner: takes approved captures from the store and runs them, one at a time.

A capture is never run twice by itself: when the process that ran it died, what it had begun is
undone (or its file, if that had already come, is handed over), and whoever asked is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bot import answer_json
from bot.answer import Answer
from bot.captures import messages
from bot.captures.journal import StoreJournal
from bot.commands.capture import run_answer
from bot.failure import failed, internal
from bot.store import Job, JsonObject, NewDelivery, Question, Store, StoreError
from engine.capture import (
    CaptureError,
    CapturePlan,
    CaptureResult,
    CaptureSettings,
    plan_from_json,
    reach,
    recover,
    run,
)
from engine.errors import GpuwhyError

log = logging.getLogger(__name__)

_IDLE_S = 2.0
# What cannot be undone now is tried again this often, then told.
_ATTEMPTS = 10

_AGAIN = "ask for the capture again"

Link = Callable[[str, str], str]


class _LaterError(Exception):
    """A capture that was cut off cannot be undone now."""


class Runner:
    """Runs approved captures until it is stopped.

    Args:
        store: holds them.
        settings: how targets are reached.
        name: of this runner; no other process has or had it.
        clock: Unix seconds.
        link: returns the address of a captured file, given its capture and its name.
        wake: called when something is to be sent.
        lease_s: how long a capture stays with a runner that gives no sign of life (s).
    """

    def __init__(
        self,
        store: Store,
        settings: CaptureSettings,
        *,
        name: str,
        clock: Callable[[], float],
        link: Link,
        wake: Callable[[], None],
        lease_s: float,
    ) -> None:
        self._store = store
        self._settings = settings
        self._name = name
        self._clock = clock
        self._link = link
        self._wake_sender = wake
        self._lease_s = lease_s
        self._woken = asyncio.Event()
        self._job: asyncio.Task[None] | None = None
        self._stopping = False

    def wake(self) -> None:
        """Say that a plan was approved."""
        self._woken.set()

    async def run(self) -> None:
        """Take captures until `drain` is called."""
        while not self._stopping:
            self._woken.clear()
            try:
                await self._close_expired()
                job = await self._store.claim_job(
                    self._name, lease_s=self._lease_s, now=self._clock()
                )
            except StoreError as error:
                log.warning("captures: %s", error.one_line())
                job = None
            if job is None:
                await self._pause()
                continue
            self._job = asyncio.create_task(self._work(job), name=f"capture {job.id}")
            await asyncio.wait({self._job})
            if not self._job.cancelled() and (problem := self._job.exception()):
                log.error("a capture broke", exc_info=problem)

    async def drain(self, seconds: float) -> None:
        """Take no more; let the running one end, or undo it if it takes longer."""
        self._stopping = True
        self._woken.set()
        if self._job and not self._job.done():
            await asyncio.wait({self._job}, timeout=seconds)
            self._job.cancel()
            await asyncio.gather(self._job, return_exceptions=True)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_S):
                await self._woken.wait()

    async def _close_expired(self) -> None:
        """Take the buttons off plans on which nobody decided in time."""
        now = self._clock()
        for job in await self._store.expire_jobs(now=now):
            question = await self._question(job)
            shown = question and (question.answer or {}).get("data")
            # A plan that was made twice, since the process died over it, was shown once.
            if question is None or not isinstance(shown, dict) or shown.get("job") != job.id:
                continue
            edit = messages.decided(question, plan_from_json(job.plan), None, "expired", now)
            await self._store.enqueue([edit], question_id=question.id, now=now)
            self._wake_sender()

    async def _work(self, job: Job) -> None:
        running = asyncio.create_task(self._outcome(job))
        keeping = asyncio.create_task(self._keep(job))
        try:
            await asyncio.wait({running, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.cancel()
            answer, done = await running
            await self._finish(job, answer, done=done)
        except asyncio.CancelledError:
            # What had begun is undone before this gets here; a plan is not run twice by itself.
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            error = CaptureError("the server was stopped; the capture was undone", hint=_AGAIN)
            await self._finish(job, failed(error), done=False)
            raise
        except (StoreError, _LaterError) as error:
            # The lease ends by itself, and the capture is picked up then.
            log.warning("capture %s: %s", job.id, error)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _outcome(self, job: Job) -> tuple[Answer, bool]:
        """Run or pick up a capture; return what is said of it, and whether it is good.

        Raises:
            StoreError: the store is away.
            _LaterError: what was begun cannot be undone now.
        """
        try:
            plan = plan_from_json(job.plan)
            return run_answer(plan, await self._captured(job, plan)), True
        except (StoreError, _LaterError):
            raise
        except GpuwhyError as error:
            return failed(error), False
        except Exception as problem:
            log.exception("capture %s", job.id)
            return failed(internal(problem)), False

    async def _captured(self, job: Job, plan: CapturePlan) -> CaptureResult:
        journal = StoreJournal(self._store, job.id, self._name, self._clock)
        executor = reach(plan, self._settings)
        entries = await journal.entries()
        if not entries:
            return await run(plan, executor, journal)
        try:
            result = await recover(plan, entries, executor, journal)
        except CaptureError as error:
            if job.attempts < _ATTEMPTS:
                raise _LaterError(error.one_line()) from None
            raise
        if result is None:
            said = "the server stopped in the middle of the capture; it was undone"
            raise CaptureError(said, hint=_AGAIN)
        return result

    async def _keep(self, job: Job) -> None:
        """Renew the lease; return when another runner has the capture."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                if not await self._store.renew_job(
                    job.id, self._name, lease_s=self._lease_s, now=self._clock()
                ):
                    return
            except StoreError as error:
                log.warning("capture %s: %s", job.id, error.one_line())

    async def _finish(self, job: Job, answer: Answer, *, done: bool) -> None:
        news = await self._news(job, answer, done=done)
        document: JsonObject = {"answer": answer_json.to_json(answer)}
        await self._store.finish_job(
            job.id, self._name, done=done, result=document, deliveries=news, now=self._clock()
        )
        self._wake_sender()

    async def _news(self, job: Job, answer: Answer, *, done: bool) -> tuple[NewDelivery, ...]:
        question = await self._question(job)
        if question is None:
            return ()
        plan = plan_from_json(job.plan)
        link = self._link(plan.id, Path(plan.file).name) if done else None
        sent = await self._store.deliveries_of(question.id)
        return (messages.finished(question, sent, answer, link),)

    async def _question(self, job: Job) -> Question | None:
        return await self._store.get_question(job.question_id) if job.question_id else None
