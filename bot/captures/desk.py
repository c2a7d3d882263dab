"""The desk: plans captures and takes decisions on them.

Nothing is run here. A plan that is approved is found in the store by a `Runner`, of this process
or of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bot.answer import Answer, Fields, line, strong
from bot.captures import messages
from bot.commands.arguments import Arguments
from bot.commands.capture import make_plan, plan_answer
from bot.policy import Decision as Verdict
from bot.policy import Policy
from bot.policy.policy import refusal
from bot.request import Actor, Request
from bot.store import Decision, Job, JobState, NewDelivery, Question, Store, StoreError
from bot.times import utc
from engine.capture import CapturePlan, CaptureSettings, plan_from_json
from engine.errors import GpuwhyError, UsageError
from engine.model import to_json

KIND = "capture"
APPROVE = "approve"
DENY = "deny"
SHOW = "job"


@dataclass(frozen=True, slots=True)
class _Case:
    """A job that somebody wants to decide on or see."""

    job: Job
    plan: CapturePlan
    question: Question | None


class Desk:
    """Plans captures, and says who decided what.

    Args:
        store: keeps plans and decisions.
        policy: says who may approve.
        settings: how targets are reached, and where files go.
        clock: Unix seconds.
        decide_within_s: how long a plan can be approved (s).
        wake: called when a plan was approved or something is to be sent.
    """

    # What can be asked here, over the HTTP API.
    commands = (KIND, APPROVE, DENY, SHOW)

    def __init__(
        self,
        store: Store,
        policy: Policy,
        settings: CaptureSettings,
        *,
        clock: Callable[[], float],
        decide_within_s: float,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._policy = policy
        self._settings = settings
        self._clock = clock
        self._within_s = decide_within_s
        self._wake = wake

    async def answer(
        self, question: Question, actor: Actor, request: Request
    ) -> tuple[Answer, NewDelivery]:
        """Return the plan that a question asks for, and the message with its buttons.

        Raises:
            GpuwhyError: there is no plan, and why.
        """
        answer, job_id, expires_at = await self._planned(request, question.id)
        return answer, messages.planned(question, actor, answer, job_id, expires_at)

    async def ask(self, actor: Actor, request: Request) -> Answer:
        """Plan a capture, decide on one, or show one, for a caller who waits.

        Raises:
            GpuwhyError: it is not allowed, or not possible.
        """
        if request.command == KIND:
            await self._allowed(actor, request)
            answer, _, _ = await self._planned(request, None)
            return answer
        args = Arguments(request.command, request.args)
        job_id = args.text("job")
        args.done()
        case = await self._case(job_id)
        if request.command == SHOW:
            await self._allowed(actor, Request(KIND, {"target": case.plan.target.name}))
        else:
            case = await self._decided(case, actor, approve=request.command == APPROVE)
        return _state(case)

    async def decide(self, job_id: str, actor: Actor, *, approve: bool) -> None:
        """Take a decision by a button; what is to be said goes through the queue.

        Raises:
            StoreError: the database cannot be used; nothing was decided.
        """
        try:
            await self._decided(await self._case(job_id), actor, approve=approve)
        except StoreError:
            raise
        except GpuwhyError as error:
            await self._store.enqueue([messages.whisper(actor, error)], now=self._clock())
        self._wake()

    async def _planned(
        self, request: Request, question_id: str | None
    ) -> tuple[Answer, str, float]:
        """Return a plan's answer, its job, and until when it can be approved (Unix seconds)."""
        args = Arguments(request.command, request.args)
        profiler, target = args.text("profiler"), args.text("target")
        duration_s = args.number("duration_s")
        args.done()
        plan = await make_plan(
            profiler,
            target,
            duration_s,
            capture_id=question_id or str(uuid4()),
            settings=self._settings,
        )
        now = self._clock()
        expires_at = now + self._within_s
        job_id = await self._store.create_job(
            kind=KIND, plan=to_json(plan), expires_at=expires_at, question_id=question_id, now=now
        )
        return messages.with_job(plan_answer(plan), job_id, expires_at), job_id, expires_at

    async def _case(self, job_id: str) -> _Case:
        job = await self._store.get_job(job_id)
        if job is None or job.kind != KIND:
            raise UsageError("there is no such plan", hint="ask for the capture again")
        question = await self._store.get_question(job.question_id) if job.question_id else None
        return _Case(job, plan_from_json(job.plan), question)

    async def _decided(self, case: _Case, actor: Actor, *, approve: bool) -> _Case:
        """Take the first decision on a plan; whoever asked for it may deny it, too.

        Raises:
            RefusedError: the actor may not decide.
            UsageError: it was decided before, or too late.
        """
        target = case.plan.target.name
        asker = case.question.actor if case.question else {}
        own = (asker.get("kind"), asker.get("id")) == (str(actor.kind), actor.id)
        if approve or not own:
            await self._allowed(actor, Request(APPROVE, {"target": target}), case.job.id)
        else:
            mine = Verdict(True, "whoever asks for a capture may deny it")
            await self._audit(actor, Request(DENY, {"target": target}), mine, case.job.id)
        now = self._clock()
        outcome = "approved" if approve else "denied"
        news = (
            (messages.decided(case.question, case.plan, actor, outcome, now),)
            if case.question
            else ()
        )
        decided = await self._store.decide_job(
            case.job.id, approve=approve, by=actor.to_json(), deliveries=news, now=now
        )
        after = await self._case(case.job.id)
        if not decided:
            late = after.job.state in {JobState.PLANNED, JobState.EXPIRED}
            said = "too late: this plan has expired" if late else f"too late: it is {_word(after)}"
            raise UsageError(said, hint="ask for the capture again", code="decided")
        self._wake()
        return after

    async def _allowed(self, actor: Actor, request: Request, job_id: str | None = None) -> None:
        decision = self._policy.decide(actor, request)
        await self._audit(actor, request, decision, job_id)
        if not decision.allowed:
            raise refusal(request.command, _target(request), decision)

    async def _audit(
        self, actor: Actor, request: Request, decision: Verdict, job_id: str | None
    ) -> None:
        await self._store.add_audit(
            actor=actor.to_json(),
            surface=str(actor.kind),
            command=request.command,
            target=_target(request),
            decision=Decision.ALLOW if decision.allowed else Decision.DENY,
            reason=decision.reason,
            request_id=job_id,
            now=self._clock(),
        )


def _target(request: Request) -> str:
    return str(request.args.get("target", ""))


def _word(case: _Case) -> str:
    by = case.job.decided_by or {}
    name = by.get("name") or by.get("id")
    return f"{case.job.state}, decided by {name}" if name else str(case.job.state)


def _state(case: _Case) -> Answer:
    """Return how far a capture has come."""
    job, plan = case.job, case.plan
    data: dict[str, Any] = {
        "schema": "gpuwhy/capture-job/1",
        "job": job.id,
        "state": str(job.state),
        "expires_at": job.expires_at,
        "decided_by": job.decided_by,
        "result": job.result,
        "plan": job.plan,
    }
    file = plan.file.rpartition("/")[2]
    rows = [("capture", line(plan.id)), ("decide before", line(utc(job.expires_at)))]
    if job.state is JobState.DONE:
        data["path"] = f"/captures/{plan.id}/{file}"
        rows = [("capture", line(plan.id)), ("file", line(data["path"]))]
    title = line(strong(f"Capture of {plan.target.name}"), f" is {_word(case)}")
    return Answer(title=title, blocks=(Fields(tuple(rows)),), data=data)
