"""The desk: plans captures and takes decisions on them.

Nothing is run here. A plan that is approved is found in the store by a `Runner`, of this process
or of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.answer import Answer, Text, line, strong
from bot.captures import messages
from bot.commands.arguments import Arguments
from bot.commands.capture import make_plan, plan_answer
from bot.policy import Policy
from bot.policy.policy import refusal
from bot.request import Actor, Request
from bot.store import Decision, Job, JobState, NewDelivery, Question, Store
from bot.times import utc
from engine.capture import CapturePlan, CaptureSettings, plan_from_json
from engine.errors import UsageError
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
        except StoreAwayError:
            raise
        except GpuwhyError as error:
            await self._store.enqueue([messages.whisper(actor, error)], now=self._clock())
        self._wake()
