"""The book of watches (`engine.history.Book`) in a store.

What a look leads to and what tells people of it are stored in one step, so that an incident is told
once whatever happens in between, and whoever looks next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bot.store.errors import StoreError
from bot.store.records import IncidentState, NewDelivery, StoredIncident
from bot.store.store import Store
from engine.errors import InputError
from engine.history import Claim, Event, Record, Tracked
from engine.history.codec import (
    failure_from_json,
    failure_to_json,
    tracked_from_json,
    tracked_to_json,
)

Announce = Callable[[Sequence[Event]], Sequence[NewDelivery]]


def nobody(events: Sequence[Event]) -> Sequence[NewDelivery]:
    """Announce nothing: whoever records the events tells them."""
    del events
    return ()


class StoreBook:
    """Keeps watches in a store; see `engine.history.Book`.

    Args:
        store: the store.
        announce: what is sent for the events of a look.
    """

    def __init__(self, store: Store, announce: Announce = nobody) -> None:
        self._store = store
        self._announce = announce

    async def claim(
        self, watch: str, holder: str, *, every_s: float, lease_s: float, now: float
    ) -> Claim | None:
        """Take the right to look; see the port.

        Raises:
            StoreError: the database cannot be used, or holds what cannot be read.
        """
        found = await self._store.claim_watch(
            watch, holder, every_s=every_s, lease_s=lease_s, now=now
        )
        if found is None:
            return None
        try:
            known = await asyncio.to_thread(_read, found.incidents)
            failure = failure_from_json(found.failure)
        except InputError as error:
            await self._store.release_watch(watch, holder)
            raise self._damaged(error) from None
        return Claim(watch, holder, found.due_at, known, failure)

    async def renew(self, claim: Claim, *, lease_s: float, now: float) -> bool:
        """Keep the right for longer; see the port."""
        return await self._store.renew_watch(claim.watch, claim.holder, lease_s=lease_s, now=now)

    async def record(self, claim: Claim, record: Record, *, now: float) -> bool:
        """Store what a look leads to, with what is sent; see the port."""
        before = {one.id: one for one in claim.known}
        after = {one.id for one in record.known}
        new = [one for one in record.known if before.get(one.id) != one]
        changed = await asyncio.to_thread(_written, new)
        deliveries = await asyncio.to_thread(self._announce, record.events)
        return await self._store.record_watch(
            claim.watch,
            claim.holder,
            due_at=record.due_at,
            failure=failure_to_json(record.failure),
            changed=changed,
            dropped=[id_ for id_ in before if id_ not in after],
            deliveries=deliveries,
            now=now,
        )

    async def release(self, claim: Claim) -> None:
        """Give the right back; see the port."""
        await self._store.release_watch(claim.watch, claim.holder)

    async def known(self, watch: str) -> tuple[Tracked, ...]:
        """Return the incidents as they are now; see the port.

        Raises:
            StoreError: the database cannot be used, or holds what cannot be read.
        """
        found = await self._store.known_incidents(watch)
        try:
            return await asyncio.to_thread(_read, found)
        except InputError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: InputError) -> StoreError:
        said = f"{self._store.place}: {error.message}"
        return StoreError(said, hint=error.hint, code="store_damaged")


# What follows is done in a thread: it takes tenths of a second where a thousand incidents are open.


def _read(found: Sequence[StoredIncident]) -> tuple[Tracked, ...]:
    return tuple(tracked_from_json(one.document) for one in found)


def _written(known: Sequence[Tracked]) -> list[StoredIncident]:
    return [_stored(one) for one in known]


def _stored(one: Tracked) -> StoredIncident:
    cause, (cluster, _, name) = one.key
    return StoredIncident(
        id=one.id,
        state=IncidentState(str(one.state)),
        cause=cause,
        entity=f"{cluster}::{name}" if cluster else name,
        opened_at=one.opened_at,
        closed_at=one.closed_at,
        document=tracked_to_json(one),
    )
