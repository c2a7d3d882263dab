"""What the listeners need of the service; `bot.service.Service` is one."""

from __future__ import annotations

from typing import Protocol

from bot.inbound import Inbound, Ticket
from bot.request import Actor


class Service(Protocol):
    """Takes questions and decisions. Every method ends well within Slack's three seconds."""

    async def submit(self, inbound: Inbound) -> Ticket:
        """Take a question: check it against the policy, store it, and say what became of it.

        When this returns, the question is stored or there is nothing to store: it survives a crash.
        """
        ...

    async def decide(self, job_id: str, actor: Actor, approve: bool) -> object:
        """Approve or deny a plan.

        Whether the actor may is checked here. The first decision counts; what is to be said, to
        everybody or to the actor alone, goes through the delivery queue.
        """
        ...
