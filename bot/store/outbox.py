"""Putting deliveries in the queue, within the transaction that gives rise to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.records import DeliveryState, NewDelivery
from bot.store.tables import deliveries


async def put(
    connection: AsyncConnection,
    news: Sequence[NewDelivery],
    *,
    question_id: str | None,
    now: float,
    new_id: Callable[[float], str],
) -> tuple[str, ...]:
    """Queue deliveries in the given order; return their ids.

    One whose ``coalesce_key`` names a message with a delivery that still waits takes that one's
    place, and gets its id.
    """
    return tuple([await _put_one(connection, new, question_id, now, new_id(now)) for new in news])


async def _put_one(
    connection: AsyncConnection,
    new: NewDelivery,
    question_id: str | None,
    now: float,
    delivery_id: str,
) -> str:
    if new.coalesce_key is not None:
        newest = (
            select(deliveries.c.seq)
            .where(
                deliveries.c.coalesce_key == new.coalesce_key,
                deliveries.c.state == DeliveryState.PENDING,
            )
            .order_by(deliveries.c.seq.desc())
            .limit(1)
            .scalar_subquery()
        )
        replace = (
            update(deliveries)
            # The state again: a sender may take the row while we wait for its lock.
            .where(deliveries.c.seq == newest, deliveries.c.state == DeliveryState.PENDING)
            .values(payload=new.payload)
            .returning(deliveries.c.id)
        )
        replaced: str | None = await connection.scalar(replace)
        if replaced is not None:
            return replaced
    row = {
        "id": delivery_id,
        "question_id": question_id,
        "channel": new.channel,
        "thread": new.thread,
        "kind": new.kind,
        "payload": new.payload,
        "state": DeliveryState.PENDING,
        "attempts": 0,
        "not_before": new.not_before,
        "claimed_until": 0.0,
        "uncertain": False,
        "coalesce_key": new.coalesce_key,
        "created_at": now,
    }
    await connection.execute(insert(deliveries).values(row))
    return delivery_id
