"""Jobs: planned, decided once, run by one worker, with a journal that outlives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Update, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.database import Database
from bot.store.outbox import put
from bot.store.records import Job, JobState, JournalEntry, JsonObject, NewDelivery
from bot.store.tables import RUNNABLE_JOBS, job_journal, jobs, one_of


class Jobs(Database):
    """The jobs of a database."""

    async def create_job(
        self,
        *,
        kind: str,
        plan: JsonObject,
        expires_at: float,
        question_id: str | None = None,
        now: float,
    ) -> str:
        """Store a plan on which somebody has to decide; return the job's id.

        Raises:
            StoreError: the database cannot be used.
        """
        row = {
            "id": self._new_id(now),
            "kind": kind,
            "question_id": question_id,
            "plan": plan,
            "state": JobState.PLANNED,
            "created_at": now,
            "expires_at": expires_at,
            "claimed_until": 0.0,
            "attempts": 0,
        }
        await self._changed(insert(jobs).values(row))
        return str(row["id"])

    async def decide_job(
        self,
        job_id: str,
        *,
        approve: bool,
        by: JsonObject,
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> bool:
        """Approve or deny a plan. The first decision counts.

        Args:
            job_id: the job.
            approve: whether it may run.
            by: who decides.
            deliveries: queued only if this call decides.
            now: the current time (Unix seconds).

        Returns:
            Whether this call decided; False: somebody has, or the plan has expired; see `get_job`.

        Raises:
            StoreError: the database cannot be used.
        """
        decide = (
            update(jobs)
            .where(jobs.c.id == job_id, jobs.c.state == JobState.PLANNED, jobs.c.expires_at > now)
            .values(
                state=JobState.APPROVED if approve else JobState.DENIED,
                decided_by=by,
                decided_at=now,
            )
        )
        return await self._change_job(decide, deliveries, now=now)

    async def expire_jobs(self, *, now: float) -> tuple[Job, ...]:
        """Close the plans on which nobody decided in time, and return them.

        Raises:
            StoreError: the database cannot be used.
        """
        expire = (
            update(jobs)
            .where(jobs.c.state == JobState.PLANNED, jobs.c.expires_at <= now)
            .values(state=JobState.EXPIRED)
            .returning(*jobs.c)
        )
        found = [_job(row) for row in await self._changed(expire)]
        return tuple(sorted(found, key=lambda job: job.id))

    async def claim_job(self, worker: str, *, lease_s: float, now: float) -> Job | None:
        """Take the oldest approved job, or one whose worker's lease has ended.

        A job with more than one attempt was begun before: `list_journal` says how far it came.

        Raises:
            StoreError: the database cannot be used.
        """
        oldest = (
            select(jobs.c.id)
            .where(one_of(jobs.c.state, RUNNABLE_JOBS), jobs.c.claimed_until <= now)
            .order_by(jobs.c.decided_at, jobs.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)
            .scalar_subquery()
        )
        claim = (
            update(jobs)
            .where(jobs.c.id == oldest)
            .values(
                state=JobState.RUNNING,
                claimed_by=worker,
                claimed_until=now + lease_s,
                attempts=jobs.c.attempts + 1,
            )
            .returning(*jobs.c)
        )
        return _only(await self._changed(claim))

    async def renew_job(self, job_id: str, worker: str, *, lease_s: float, now: float) -> bool:
        """Keep a job for longer; False: another worker has it, stop.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._change_job(_held(job_id, worker, {"claimed_until": now + lease_s}))

    async def append_journal(
        self, job_id: str, worker: str, *, step: str, detail: JsonObject, now: float
    ) -> bool:
        """Write down a step before it is taken.

        Returns:
            False if another worker has the job by now: nothing is written; do not take the step.

        Raises:
            StoreError: the database cannot be used; do not take the step.
        """
        held = (
            select(jobs.c.id)
            .where(
                jobs.c.id == job_id,
                jobs.c.state == JobState.RUNNING,
                jobs.c.claimed_by == worker,
            )
            .with_for_update()
        )
        last = select(func.coalesce(func.max(job_journal.c.seq), 0)).where(
            job_journal.c.job_id == job_id
        )

        async def work(connection: AsyncConnection) -> bool:
            if await connection.scalar(held) is None:
                return False
            seq = (await connection.execute(last)).scalar_one() + 1
            entry = {"job_id": job_id, "seq": seq, "step": step, "detail": detail, "at": now}
            await connection.execute(insert(job_journal).values(entry))
            return True

        return await self._write(work)

    async def finish_job(
        self,
        job_id: str,
        worker: str,
        *,
        done: bool,
        result: JsonObject,
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> bool:
        """Store a job's result and queue what is to be sent, both or neither.

        Args:
            job_id: the job.
            worker: who runs it.
            done: True: it is done; False: it failed.
            result: what came of it.
            deliveries: queued only if this worker still has the job.
            now: the current time (Unix seconds).

        Returns:
            False if another worker has the job by now, or it is finished: nothing is changed.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {
            "state": JobState.DONE if done else JobState.FAILED,
            "result": result,
            "finished_at": now,
        }
        return await self._change_job(_held(job_id, worker, values), deliveries, now=now)

    async def get_job(self, job_id: str) -> Job | None:
        """Return a job, or None if there is no such.

        Raises:
            StoreError: the database cannot be used.
        """
        return _only(await self._rows(select(jobs).where(jobs.c.id == job_id)))

    async def list_journal(self, job_id: str) -> tuple[JournalEntry, ...]:
        """Return the steps of a job, in order.

        Raises:
            StoreError: the database cannot be used.
        """
        query = select(job_journal).where(job_journal.c.job_id == job_id)
        rows = await self._rows(query.order_by(job_journal.c.seq))
        return tuple(JournalEntry(**row._mapping) for row in rows)  # noqa: SLF001

    async def _change_job(
        self, change: Update, deliveries: Sequence[NewDelivery] = (), *, now: float = 0.0
    ) -> bool:
        """Change one job; queue deliveries if it was changed; return whether it was."""
        settle = change.returning(jobs.c.question_id)

        async def work(connection: AsyncConnection) -> bool:
            row = (await connection.execute(settle)).one_or_none()
            if row is None:
                return False
            await put(
                connection, deliveries, question_id=row.question_id, now=now, new_id=self._new_id
            )
            return True

        return await self._write(work)


def _held(job_id: str, worker: str, values: Mapping[str, Any]) -> Update:
    return (
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.state == JobState.RUNNING, jobs.c.claimed_by == worker)
        .values(values)
    )


def _only(rows: Sequence[Row[Any]]) -> Job | None:
    return _job(rows[0]) if rows else None


def _job(row: Row[Any]) -> Job:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in spite of the underscore
    values["state"] = JobState(values["state"])
    return Job(**values)
