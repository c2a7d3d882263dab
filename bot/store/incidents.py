"""Watches and their incidents: one process looks at a time, and records what it saw in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, Update, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.database import Database
from bot.store.outbox import put
from bot.store.records import (
    IncidentState,
    JsonObject,
    NewDelivery,
    StoredIncident,
    StoredWatch,
)
from bot.store.tables import KNOWN_INCIDENTS, incidents, one_of, watches


class Incidents(Database):
    """The watches and incidents of a database."""

    async def claim_watch(
        self, watch: str, holder: str, *, every_s: float, lease_s: float, now: float
    ) -> StoredWatch | None:
        """Take the right to look, unless nothing is due or somebody else has it.

        Args:
            watch: what is watched; made if it is new.
            holder: a name that no other claim has or had.
            every_s: the interval (s): a look that is due later than that was due by another one.
            lease_s: for how long others stay away (s); see `renew_watch`.
            now: the current time (Unix seconds).

        Raises:
            StoreError: the database cannot be used.
        """
        new = {"watch": watch, "claimed_until": 0.0, "due_at": 0.0}
        make = self._insert(watches).values(new).on_conflict_do_nothing()
        claim = (
            update(watches)
            .where(
                watches.c.watch == watch,
                watches.c.claimed_until <= now,
                or_(watches.c.due_at <= now, watches.c.due_at > now + every_s),
            )
            .values(claimed_by=holder, claimed_until=now + lease_s)
            .returning(watches.c.due_at, watches.c.failure)
        )

        async def work(connection: AsyncConnection) -> StoredWatch | None:
            await connection.execute(make)
            row = (await connection.execute(claim)).one_or_none()
            if row is None:
                return None
            known = (await connection.execute(_known(watch))).all()
            return StoredWatch(row.due_at, row.failure, tuple(_incident(one) for one in known))

        return await self._write(work)

    async def renew_watch(self, watch: str, holder: str, *, lease_s: float, now: float) -> bool:
        """Keep the right to look for longer; False: somebody else has it, stop.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._change_watch(watch, holder, {"claimed_until": now + lease_s})

    async def release_watch(self, watch: str, holder: str) -> bool:
        """Give the right to look back without having looked.

        Raises:
            StoreError: the database cannot be used.
        """
        return await self._change_watch(watch, holder, {"claimed_until": 0.0, "claimed_by": None})

    async def record_watch(
        self,
        watch: str,
        holder: str,
        *,
        due_at: float,
        failure: JsonObject | None,
        changed: Sequence[StoredIncident] = (),
        dropped: Sequence[str] = (),
        deliveries: Sequence[NewDelivery] = (),
        now: float,
    ) -> bool:
        """Store what a look led to and queue what is to be sent, all or nothing.

        Args:
            watch: what was watched.
            holder: who looked.
            due_at: when the next look is due (Unix seconds).
            failure: why it failed, if it did.
            changed: incidents that are new or differ from what is stored.
            dropped: ids of incidents that are over: those that were never open are deleted.
            deliveries: what tells people.
            now: the current time (Unix seconds).

        Returns:
            False if somebody else has the right by now: nothing is changed.

        Raises:
            StoreError: the database cannot be used.
        """
        given_back = {
            "claimed_until": 0.0,
            "claimed_by": None,
            "due_at": due_at,
            "looked_at": now,
            "failure": failure,
        }
        upsert = self._insert(incidents)
        columns = [c.name for c in incidents.columns if c.name not in {"id", "watch"}]
        upsert = upsert.on_conflict_do_update(
            index_elements=[incidents.c.id],
            set_={name: getattr(upsert.excluded, name) for name in columns},
        )
        over = incidents.c.id.in_(dropped)
        unborn = incidents.c.state == IncidentState.PENDING

        async def work(connection: AsyncConnection) -> bool:
            held = _held(watch, holder).values(given_back)
            if (await connection.execute(held)).rowcount == 0:
                return False
            if changed:
                rows = [{**one.row(), "watch": watch} for one in changed]
                await connection.execute(upsert, rows)
            if dropped:
                await connection.execute(delete(incidents).where(over, unborn))
                past = update(incidents).where(over).values(state=IncidentState.PAST)
                await connection.execute(past)
            await put(connection, deliveries, question_id=None, now=now, new_id=self._new_id)
            return True

        return await self._write(work)

    async def known_incidents(self, watch: str) -> tuple[StoredIncident, ...]:
        """Return the incidents of a watch that are not over, in the order of their ids.

        Raises:
            StoreError: the database cannot be used.
        """
        return tuple(_incident(row) for row in await self._rows(_known(watch)))

    async def _change_watch(self, watch: str, holder: str, values: Mapping[str, Any]) -> bool:
        statement = _held(watch, holder).values(values).returning(watches.c.watch)
        return bool(await self._changed(statement))


def _held(watch: str, holder: str) -> Update:
    """Return the change of a watch, made only while the holder has it."""
    return update(watches).where(watches.c.watch == watch, watches.c.claimed_by == holder)


def _known(watch: str) -> Select[Any]:
    """Return the query for the incidents of a watch that are not over."""
    known = one_of(incidents.c.state, KNOWN_INCIDENTS)
    return select(incidents).where(incidents.c.watch == watch, known).order_by(incidents.c.id)


def _incident(row: Row[Any]) -> StoredIncident:
    return StoredIncident(
        id=row.id,
        state=IncidentState(row.state),
        cause=row.cause,
        entity=row.entity,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        document=row.document,
    )
