"""Watches in a store: one looks at a time, and what it saw is stored with what is sent."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text, update

from bot.store import Store, StoreError
from bot.store.incidentbook import StoreBook
from bot.store.tables import incidents
from engine.history import EventKind, Failure, Record, advance
from tests.support.sightings import AT_ONCE, HOLDS, NOW, WATCH, incident, sight
from tests.support.stores import post, send_next


def announce(events):
    return [post(f"{e.event} {e.id}", coalesce_key=f"incident/{e.id}") for e in events]


async def claim(book, holder="a", *, now=NOW, every_s=60.0, lease_s=30.0, watch=WATCH):
    return await book.claim(watch, holder, every_s=every_s, lease_s=lease_s, now=now)


async def look(book, *found, now=NOW, holder="a", unread=(), holds=AT_ONCE):
    """Claim, see, record; return what was told."""
    held = await claim(book, holder, now=now, every_s=0.0)
    assert held is not None
    step = advance(held.known, sight(*found, unread=unread), now, holds=holds, watch=WATCH)
    record = Record(step.known, step.events, now + 60.0)
    assert await book.record(held, record, now=now)
    return step.events


async def sent(store: Store) -> list[str]:
    out = []
    while delivery := await send_next(store, f"s{len(out)}"):
        out.append(str(delivery.payload["text"]))
        await store.mark_sent(delivery.id, message_ts="1.0", now=NOW)
    return out


async def test_what_was_seen_is_known_after_a_restart(store: Store, url: str) -> None:
    await look(StoreBook(store), incident(says="die 90 °C \0\ud800"), incident(cause="gpu_off_bus"))
    again = Store(url)
    await again.open()
    known = await StoreBook(again).known(WATCH)
    await again.close()
    assert sorted(one.diagnosis.cause for one in known) == ["gpu_off_bus", "power_brake"]
    assert {one.diagnosis.says for one in known} == {"die 90 °C \0\ud800", "it is slow"}


async def test_only_one_looks_at_a_time_and_once_an_interval(store: Store) -> None:
    book = StoreBook(store)
    first = await claim(book, "a")
    assert first is not None
    assert await claim(book, "b") is None
    assert await book.record(first, Record((), (), NOW + 60.0), now=NOW + 1)
    assert await claim(book, "b", now=NOW + 59) is None
    assert await claim(book, "b", now=NOW + 60) is not None


async def test_many_who_want_to_look_at_once_get_one_look(store: Store) -> None:
    book = StoreBook(store)
    claims = await asyncio.gather(*(claim(book, f"h{n}") for n in range(20)))
    assert sum(one is not None for one in claims) == 1


async def test_who_died_while_looking_is_followed_by_another(store: Store) -> None:
    book = StoreBook(store)
    dead = await claim(book, "dead", lease_s=30.0)
    assert dead is not None
    assert await claim(book, "b", now=NOW + 29) is None
    other = await claim(book, "b", now=NOW + 30)
    assert other is not None
    # It was not dead but slow: what it saw counts for nothing, and sends nothing.
    step = advance((), sight(incident()), NOW, holds=AT_ONCE, watch=WATCH)
    late = StoreBook(store, announce)
    assert not await late.record(dead, Record(step.known, step.events, NOW + 60), now=NOW + 31)
    assert not await late.renew(dead, lease_s=30.0, now=NOW + 31)
    assert await book.known(WATCH) == ()
    assert await sent(store) == []


async def test_a_lease_that_is_renewed_keeps_others_away(store: Store) -> None:
    book = StoreBook(store)
    held = await claim(book, "a", lease_s=30.0)
    assert held is not None
    assert await book.renew(held, lease_s=30.0, now=NOW + 20)
    assert await claim(book, "b", now=NOW + 40) is None
    assert await claim(book, "b", now=NOW + 50) is not None


async def test_a_shorter_interval_counts_at_once(store: Store) -> None:
    book = StoreBook(store)
    held = await claim(book, every_s=3600.0)
    assert held is not None
    assert await book.record(held, Record((), (), NOW + 3600.0), now=NOW)
    assert await claim(book, "b", now=NOW + 61, every_s=60.0) is not None


async def test_an_incident_and_its_announcement_are_stored_together(store: Store) -> None:
    book = StoreBook(store, announce)
    (opened,) = await look(book, incident())
    assert opened.event is EventKind.OPENED
    assert await look(book, incident(), now=NOW + 60, holder="b") == ()
    (closed,) = await look(book, now=NOW + 120, holder="c")
    (again,) = await look(book, incident(), now=NOW + 180, holder="d")
    assert (closed.event, again.event) == (EventKind.CLOSED, EventKind.REOPENED)
    # What was not sent yet is replaced by what is newer.
    assert await sent(store) == [f"reopened {opened.id}"]


async def test_an_incident_that_moves_keeps_its_row_and_its_message(store: Store, url: str) -> None:
    book = StoreBook(store, announce)
    node = incident("node-1", members=["node-1:0"])
    rack = incident("rack/r1", members=["node-1:0", "node-2:0"])
    (opened,) = await look(book, node)
    (changed,) = await look(book, rack, now=NOW + 60)
    assert (changed.id, changed.event) == (opened.id, EventKind.CHANGED)
    again = Store(url)
    await again.open()
    assert await look(StoreBook(again, announce), rack, now=NOW + 120, holder="b") == ()
    (back,) = await look(StoreBook(again, announce), node, now=NOW + 180, holder="c")
    await again.close()
    assert (back.id, back.revision) == (opened.id, 3)
    rows = await store._rows(text("SELECT id, state, entity FROM incidents"))
    assert [tuple(row) for row in rows] == [(opened.id, "open", "node-1")]


async def test_what_another_one_took_the_name_of_is_history(store: Store) -> None:
    book = StoreBook(store)
    nodes = [incident(f"node-{k}", members=[f"node-{k}:0"]) for k in (1, 2)]
    rack = incident("rack/r1", members=["node-1:0", "node-2:0"])
    first, second = await look(book, *nodes)
    await look(book, rack, now=NOW + 60)
    (changed,) = await look(book, nodes[1], now=NOW + 120)
    assert (changed.id, changed.event) == (first.id, EventKind.CHANGED)
    rows = await store._rows(text("SELECT id, state, entity FROM incidents"))
    assert {tuple(row) for row in rows} == {
        (first.id, "open", "node-2"),
        (second.id, "past", "node-2"),
    }


async def test_an_incident_stored_by_an_older_version_goes_on(store: Store) -> None:
    book = StoreBook(store)
    (opened,) = await look(book, incident("node-1", members=["node-1:0"]))
    (row,) = await store.known_incidents(WATCH)
    document = {key: value for key, value in row.document.items() if key != "moved_since"}
    await store._changed(update(incidents).values(document=document))
    rack = incident("rack/r1", members=["node-1:0", "node-2:0"])
    (changed,) = await look(book, rack, now=NOW + 60)
    assert changed.id == opened.id


async def test_what_was_never_open_leaves_nothing_behind(store: Store) -> None:
    book = StoreBook(store)
    await look(book, incident(), holds=HOLDS)
    await look(book, now=NOW + 60, holds=HOLDS)
    rows = await store._rows(text("SELECT count(*) FROM incidents"))
    assert rows[0][0] == 0


async def test_what_is_over_stays_as_history_and_is_not_known(store: Store) -> None:
    book = StoreBook(store)
    await look(book, incident())
    await look(book, now=NOW + 60)
    await look(book, now=NOW + 60 + AT_ONCE.quiet_s + 1)
    assert await book.known(WATCH) == ()
    rows = await store._rows(text("SELECT state, cause, entity FROM incidents"))
    assert [tuple(row) for row in rows] == [("past", "power_brake", "node-1:0")]


async def test_watches_do_not_see_each_other(store: Store) -> None:
    book = StoreBook(store)
    await look(book, incident())
    other = await claim(book, watch="another")
    assert other is not None
    assert other.known == ()


async def test_a_failure_is_remembered(store: Store) -> None:
    book = StoreBook(store)
    held = await claim(book)
    assert held is not None
    failure = Failure(NOW, "no answer", told=True)
    assert await book.record(held, Record((), (), NOW + 60, failure), now=NOW)
    after = await claim(book, "b", now=NOW + 60)
    assert after is not None
    assert after.failure == failure


async def test_a_stored_incident_that_cannot_be_read_is_said_in_one_line(store: Store) -> None:
    book = StoreBook(store)
    await look(book, incident())
    await store._changed(text("UPDATE incidents SET document = '{}'"))
    for use in (book.known(WATCH), claim(book, "b", now=NOW + 60)):
        with pytest.raises(StoreError, match="cannot be read; start with new state") as caught:
            await use
        assert caught.value.code == "store_damaged"
