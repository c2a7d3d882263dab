"""The store: everything that must outlive the process."""

from __future__ import annotations

from sqlalchemy import func, select

from bot.store.audits import Audits
from bot.store.deliveries import Deliveries
from bot.store.incidents import Incidents
from bot.store.jobs import Jobs
from bot.store.questions import Questions
from bot.store.records import Backlog
from bot.store.tables import OPEN_QUESTIONS, UNSENT, deliveries, one_of, questions


class Store(Questions, Deliveries, Jobs, Incidents, Audits):
    """Questions, deliveries, jobs, incidents and the audit log in one database.

    Several processes may use one database. Their clocks have to agree within a second or so: leases
    and paces are compared across them.
    """

    async def backlog(self) -> Backlog:
        """Return what waits to be answered and to be sent.

        Raises:
            StoreError: the database cannot be used.
        """
        waiting = func.count().label("waiting")
        asked = select(waiting, func.min(questions.c.created_at).label("oldest")).where(
            one_of(questions.c.state, OPEN_QUESTIONS)
        )
        queued = select(waiting, func.min(deliveries.c.created_at).label("oldest")).where(
            one_of(deliveries.c.state, UNSENT)
        )
        (to_answer,) = await self._rows(asked)
        (to_send,) = await self._rows(queued)
        return Backlog(to_answer.waiting, to_send.waiting, to_answer.oldest, to_send.oldest)
