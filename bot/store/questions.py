"""Questions: stored on arrival, claimed by one worker, answered once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.database import Database
from bot.store.outbox import put
from bot.store.records import Added, JsonObject, NewDelivery, Question, QuestionState
from bot.store.tables import OPEN_QUESTIONS, one_of, questions
from engine.errors import UsageError

# An index entry of PostgreSQL holds at most 2,704 bytes, and a character takes up to four.
_MAX_KEY = 500
# How many requests of a thread are looked through for the question before.
_LOOKED_THROUGH = 10


class Questions(Database):
    """The questions of a database."""

    async def add_question(
        self,
        *,
        dedupe_key: str,
        surface: str,
        actor: JsonObject,
        request: JsonObject,
        channel: str = "",
        thread: str | None = None,
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> Added:
        """Store a question, and what is to be sent at once, unless it was stored before.

        Returns:
            The question's id, and whether it is new. For a known ``dedupe_key`` nothing is changed.

        Raises:
            StoreError: the database cannot be used; then nothing is stored.
            UsageError: the key is longer than 500 characters.
        """
        if len(dedupe_key) > _MAX_KEY:
            raise UsageError(f"the key of a request has more than {_MAX_KEY} characters")
        row = {
            "id": self._new_id(now),
            "dedupe_key": dedupe_key,
            "surface": surface,
            "actor": actor,
            "channel": channel,
            "thread": thread,
            "request": request,
            "state": QuestionState.RECEIVED,
            "claimed_until": 0.0,
            "attempts": 0,
            "created_at": now,
        }
        insert = self._insert(questions).values(row).on_conflict_do_nothing()
        same = select(questions.c.id).where(questions.c.dedupe_key == dedupe_key)

        async def work(connection: AsyncConnection) -> Added:
            new_id = await connection.scalar(insert.returning(questions.c.id))
            if new_id is None:
                return Added((await connection.execute(same)).scalar_one(), is_new=False)
            await put(connection, deliveries, question_id=new_id, now=now, new_id=self._new_id)
            return Added(new_id, is_new=True)

        return await self._write(work)

    async def asked_before(self, channel: str, thread: str, command: str) -> JsonObject | None:
        """Return the newest request of one command in a thread, as it was stored.

        Looked through are the last few requests of the thread.

        Raises:
            StoreError: the database cannot be used.
        """
        newest = (
            select(questions.c.request)
            .where(questions.c.channel == channel, questions.c.thread == thread)
            .order_by(questions.c.id.desc())
            .limit(_LOOKED_THROUGH)
        )

        async def work(connection: AsyncConnection) -> JsonObject | None:
            found = (await connection.execute(newest)).scalars()
            return next((one for one in found if one.get("command") == command), None)

        return await self._read(work)

    async def claim_question(self, worker: str, *, lease_s: float, now: float) -> Question | None:
        """Take the oldest question that nobody works on, or whose worker's lease has ended.

        Args:
            worker: a name that no other process has or had.
            lease_s: how long the question stays with this worker (s); see `renew_question`.
            now: the current time (Unix seconds).

        Raises:
            StoreError: the database cannot be used.
        """
        oldest = (
            select(questions.c.id)
            .where(one_of(questions.c.state, OPEN_QUESTIONS), questions.c.claimed_until <= now)
            .order_by(questions.c.created_at, questions.c.id)
            .limit(1)
            # Others pass over a row that is being claimed (SQLite: one writer at a time anyhow).
            .with_for_update(skip_locked=True)
            .scalar_subquery()
        )
        claim = (
            update(questions)
            .where(questions.c.id == oldest)
            .values(
                state=QuestionState.WORKING,
                claimed_by=worker,
                claimed_until=now + lease_s,
                attempts=questions.c.attempts + 1,
            )
            .returning(*questions.c)
        )
        return _only(await self._changed(claim))

    async def renew_question(
        self, question_id: str, worker: str, *, lease_s: float, now: float
    ) -> bool:
        """Keep a question for longer; False: another worker has it, stop.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._change_question(question_id, worker, {"claimed_until": now + lease_s})

    async def release_question(self, question_id: str, worker: str) -> bool:
        """Give a question back, so that another worker can take it at once.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {"state": QuestionState.RECEIVED, "claimed_until": 0.0}
        return await self._change_question(question_id, worker, values)

    async def finish_question(
        self,
        question_id: str,
        worker: str,
        *,
        answer: JsonObject,
        verdict: str | None = None,
        cause: str | None = None,
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> bool:
        """Store the answer and queue what is to be sent, both or neither.

        Returns:
            False if another worker has the question by now, or it is answered: nothing is changed.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {
            "state": QuestionState.ANSWERED,
            "answered_at": now,
            "answer": answer,
            "verdict": verdict,
            "cause": cause,
        }
        return await self._change_question(question_id, worker, values, deliveries, now=now)

    async def fail_question(
        self,
        question_id: str,
        worker: str,
        *,
        error: JsonObject,
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> bool:
        """Store that there is no answer, and why; else as `finish_question`.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {"state": QuestionState.FAILED, "answered_at": now, "error": error}
        return await self._change_question(question_id, worker, values, deliveries, now=now)

    async def get_question(self, question_id: str) -> Question | None:
        """Return a question, or None if there is no such.

        Raises:
            StoreError: the database cannot be used.
        """
        query = select(questions).where(questions.c.id == question_id)
        return _only(await self._rows(query))

    async def list_questions(
        self, *, limit: int = 20, channel: str | None = None
    ) -> tuple[Question, ...]:
        """Return the newest questions, newest first; of one channel if it is given.

        Raises:
            StoreError: the database cannot be used.
        """
        query = select(questions)
        if channel is not None:
            query = query.where(questions.c.channel == channel)
        query = query.order_by(questions.c.created_at.desc(), questions.c.id.desc()).limit(limit)
        return tuple(_question(row) for row in await self._rows(query))

    async def _change_question(
        self,
        question_id: str,
        worker: str,
        values: Mapping[str, Any],
        deliveries: Sequence[NewDelivery] = (),
        *,
        now: float = 0.0,
    ) -> bool:
        """Change a question if this worker still has it, and queue deliveries with it."""
        statement = (
            update(questions)
            .where(
                questions.c.id == question_id,
                questions.c.state == QuestionState.WORKING,
                questions.c.claimed_by == worker,
            )
            .values(values)
        )

        async def work(connection: AsyncConnection) -> bool:
            if (await connection.execute(statement)).rowcount == 0:
                return False
            await put(connection, deliveries, question_id=question_id, now=now, new_id=self._new_id)
            return True

        return await self._write(work)


def _only(rows: Sequence[Row[Any]]) -> Question | None:
    return _question(rows[0]) if rows else None


def _question(row: Row[Any]) -> Question:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in spite of the underscore
    values["state"] = QuestionState(values["state"])
    return Question(**values)
