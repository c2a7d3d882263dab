"""Deliveries: a queue for each channel, sent in order and not too fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.database import Database
from bot.store.outbox import put
from bot.store.records import Delivery, DeliveryKind, DeliveryState, NewDelivery, QuestionState
from bot.store.tables import UNSENT, channels, deliveries, one_of, questions


class Deliveries(Database):
    """The deliveries of a database."""

    async def enqueue(
        self,
        news: Sequence[NewDelivery],
        *,
        question_id: str | None = None,
        worker: str | None = None,
        now: float,
    ) -> tuple[str, ...]:
        """Queue deliveries in the given order.

        Args:
            news: what is to be sent; see `NewDelivery.coalesce_key` for what is replaced.
            question_id: the question to which they belong.
            worker: queue them only while this worker has the question, so that progress can never
                come after the answer.
            now: the current time (Unix seconds).

        Returns:
            Their ids; none if another worker has the question by now, or it is answered.

        Raises:
            StoreError: the database cannot be used; then none is queued.
        """

        async def work(connection: AsyncConnection) -> tuple[str, ...]:
            if worker is not None and not await _works_on(connection, worker, question_id):
                return ()
            return await put(
                connection, news, question_id=question_id, now=now, new_id=self._new_id
            )

        return await self._write(work)

    async def claim_delivery(
        self, sender: str, *, lease_s: float, pace_s: float, now: float
    ) -> Delivery | None:
        """Take the next delivery that may be sent now.

        Of each channel only the oldest one not sent yet may be: a channel waits while one is being
        sent, or is to be tried again later, or the last one was sent less than ``pace_s`` ago.

        Args:
            sender: a name that no other process has or had.
            lease_s: for how long others leave it alone (s); longer than sending can take.
            pace_s: shortest time between two deliveries of a channel (s).
            now: the current time (Unix seconds).

        Raises:
            StoreError: the database cannot be used.
        """
        unsent = one_of(deliveries.c.state, UNSENT)
        heads = select(func.min(deliveries.c.seq)).where(unsent).group_by(deliveries.c.channel)
        next_one = (
            select(deliveries.c.seq)
            .where(
                deliveries.c.seq.in_(heads),
                unsent,  # again: a row may change between being found and being locked
                deliveries.c.not_before <= now,
                deliveries.c.claimed_until <= now,
                ~exists().where(
                    channels.c.channel == deliveries.c.channel,
                    channels.c.last_sent_at > now - pace_s,
                ),
            )
            .order_by(deliveries.c.seq)
            .limit(1)
            .with_for_update(skip_locked=True, of=deliveries)
            .scalar_subquery()
        )
        claim = (
            update(deliveries)
            .where(deliveries.c.seq == next_one)
            .values(
                state=DeliveryState.SENDING,
                claimed_by=sender,
                claimed_until=now + lease_s,
                attempts=deliveries.c.attempts + 1,
                # Its last sender did not come back: what it sent may have arrived.
                uncertain=or_(deliveries.c.uncertain, deliveries.c.state == DeliveryState.SENDING),
            )
            .returning(*deliveries.c)
        )

        async def work(connection: AsyncConnection) -> Delivery | None:
            row = (await connection.execute(claim)).one_or_none()
            if row is None:
                return None
            found = _delivery(row)
            if found.kind is DeliveryKind.UPDATE and found.coalesce_key is not None:
                found = replace(found, message_ts=await _message(connection, found.coalesce_key))
            return found

        return await self._write(work)

    async def mark_sent(self, delivery_id: str, *, message_ts: str | None, now: float) -> None:
        """Store that a delivery was sent, by whomever; its channel's pace counts from ``now``.

        Args:
            delivery_id: the delivery.
            message_ts: id of the message that was made or edited, if there is one.
            now: the current time (Unix seconds).

        Raises:
            StoreError: the database cannot be used; then try again.
        """
        sent = (
            update(deliveries)
            .where(deliveries.c.id == delivery_id, deliveries.c.state != DeliveryState.SENT)
            .values(
                state=DeliveryState.SENT,
                sent_at=now,
                message_ts=message_ts,
                claimed_until=0.0,
                error=None,
            )
            .returning(deliveries.c.channel)
        )

        async def work(connection: AsyncConnection) -> None:
            channel = await connection.scalar(sent)
            if channel is None:
                return
            paced = self._insert(channels).values(channel=channel, last_sent_at=now)
            await connection.execute(
                paced.on_conflict_do_update(
                    index_elements=[channels.c.channel],
                    set_={"last_sent_at": paced.excluded.last_sent_at},
                )
            )

        await self._write(work)

    async def retry_delivery(
        self,
        delivery_id: str,
        sender: str,
        *,
        not_before: float,
        error: str,
        uncertain: bool = False,
    ) -> bool:
        """Put a delivery back, to be tried again later; its channel waits for it.

        Args:
            delivery_id: the delivery.
            sender: who has it.
            not_before: the moment from which it may be tried (Unix seconds).
            error: why it failed, in one line.
            uncertain: there was no reply, so it may have been sent.

        Returns:
            False if this sender does not have it any more: nothing is changed.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {
            "state": DeliveryState.PENDING,
            "not_before": not_before,
            "claimed_until": 0.0,
            "error": error,
        }
        if uncertain:
            values["uncertain"] = True
        return await self._change_delivery(delivery_id, sender, values)

    async def kill_delivery(self, delivery_id: str, sender: str, *, error: str) -> bool:
        """Give a delivery up; its channel goes on with the next. Else as `retry_delivery`.

        Raises:
            StoreError: the database cannot be used.
        """
        values = {"state": DeliveryState.DEAD, "claimed_until": 0.0, "error": error}
        return await self._change_delivery(delivery_id, sender, values)

    async def deliveries_of(self, question_id: str) -> tuple[Delivery, ...]:
        """Return the deliveries of a question, in order.

        Raises:
            StoreError: the database cannot be used.
        """
        query = select(deliveries).where(deliveries.c.question_id == question_id)
        rows = await self._rows(query.order_by(deliveries.c.seq))
        return tuple(_delivery(row) for row in rows)

    async def _change_delivery(
        self, delivery_id: str, sender: str, values: Mapping[str, Any]
    ) -> bool:
        statement = (
            update(deliveries)
            .where(
                deliveries.c.id == delivery_id,
                deliveries.c.state == DeliveryState.SENDING,
                deliveries.c.claimed_by == sender,
            )
            .values(values)
            .returning(deliveries.c.id)
        )
        return bool(await self._changed(statement))


async def _works_on(connection: AsyncConnection, worker: str, question_id: str | None) -> bool:
    held = (
        select(questions.c.id)
        .where(
            questions.c.id == question_id,
            questions.c.state == QuestionState.WORKING,
            questions.c.claimed_by == worker,
        )
        # Nobody finishes the question before this transaction ends.
        .with_for_update()
    )
    return await connection.scalar(held) is not None


async def _message(connection: AsyncConnection, coalesce_key: str) -> str | None:
    """Return the id of the newest message that was sent under a name."""
    query = (
        select(deliveries.c.message_ts)
        .where(
            deliveries.c.coalesce_key == coalesce_key,
            deliveries.c.state == DeliveryState.SENT,
            deliveries.c.message_ts.is_not(None),
        )
        .order_by(deliveries.c.seq.desc())
        .limit(1)
    )
    found: str | None = await connection.scalar(query)
    return found


def _delivery(row: Row[Any]) -> Delivery:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in spite of the underscore
    values["kind"] = DeliveryKind(values["kind"])
    values["state"] = DeliveryState(values["state"])
    return Delivery(**values)
