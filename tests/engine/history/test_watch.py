"""A watch looks once an interval, one look at a time; a source that fails is said once."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import SourceError
from engine.history import EventKind, Holds, MemoryBook, Pace, Watcher, watch_name
from tests.support.sightings import AT_ONCE, NOW, WATCH, incident, sight


class Site:
    """A source that shows what it is told to, and a clock that is set by hand."""

    def __init__(self, *, holds=AT_ONCE, every_s=60.0, deadline_s=5.0, book=None):
        self.now = NOW
        self.found = ()
        self.error = None
        self.takes_s = 0.0
        self.looks = 0
        self.looking = 0
        self.most_at_once = 0
        self.watcher = Watcher(
            book or MemoryBook(),
            self.look,
            name=WATCH,
            pace=Pace(every_s, deadline_s, 30.0),
            holds=holds,
            clock=lambda: self.now,
        )

    async def look(self, known):
        self.looks += 1
        self.looking += 1
        self.most_at_once = max(self.most_at_once, self.looking)
        try:
            await asyncio.sleep(self.takes_s)
            if self.error:
                raise self.error
            return sight(*self.found)
        finally:
            self.looking -= 1

    async def events(self):
        outcome = await self.watcher.turn()
        return None if outcome is None else [event.event.value for event in outcome.events]


async def test_it_looks_once_an_interval():
    site = Site()
    assert await site.events() == []
    assert await site.events() is None
    site.now += 59
    assert await site.events() is None
    site.now += 1
    assert await site.events() == []
    assert site.looks == 2


async def test_missed_intervals_are_skipped_and_the_rhythm_stays():
    site = Site()
    await site.events()
    site.now += 3 * 60 + 25
    assert await site.events() == []
    assert await site.events() is None
    site.now += 34
    assert await site.events() is None
    site.now += 1
    assert await site.events() == []
    assert site.looks == 3


async def test_a_slow_source_has_a_deadline_and_nothing_stacks_up():
    site = Site(deadline_s=0.05)
    site.takes_s = 30.0
    outcome = await site.watcher.turn()
    assert outcome.error.code == "timeout"
    assert (site.looking, site.most_at_once) == (0, 1)


async def test_a_source_that_fails_is_told_once_and_so_is_its_return():
    site = Site(holds=Holds(open_s=120.0))
    site.error = SourceError("no answer")
    told, before = [], []
    for _ in range(10):
        outcome = await site.watcher.turn()
        told += [event.event for event in outcome.events]
        before.append(outcome.failed_before)
        site.now += 60
    assert told == [EventKind.BLIND]
    assert before == [False] + [True] * 9
    site.error = None
    assert await site.events() == ["seeing"]
    site.now += 60
    assert await site.events() == []


async def test_a_hiccup_of_the_source_is_not_told():
    site = Site(holds=Holds(open_s=120.0))
    site.error = SourceError("no answer")
    assert await site.events() == []
    site.error = None
    site.now += 60
    assert await site.events() == []


async def test_incidents_stay_open_while_the_source_fails():
    site = Site()
    site.found = (incident(),)
    assert await site.events() == ["opened"]
    site.error = SourceError("no answer")
    for _ in range(5):
        site.now += 600
        await site.events()
    assert [one.diagnosis.cause for one in await site.watcher.open()] == ["power_brake"]


async def test_a_look_that_is_cancelled_gives_the_right_back():
    site = Site()
    site.takes_s = 30.0
    task = asyncio.create_task(site.watcher.turn())
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert site.looking == 0
    site.takes_s = 0.0
    assert await site.events() == []


async def test_a_look_whose_right_was_taken_is_dropped():
    class Taken(MemoryBook):
        async def renew(self, claim, *, lease_s, now):
            return False

    site = Site(book=Taken())
    site.watcher._pace = Pace(60.0, 5.0, 0.03)
    site.takes_s = 30.0
    site.found = (incident(),)
    assert await site.events() is None
    assert site.looking == 0


def test_a_long_name_keeps_what_is_watched_apart():
    long = 'Hostname=~"' + "node-1|" * 100
    names = {watch_name(WATCH, long + end) for end in ('a"', 'b"')}
    assert len(names) == 2
    assert max(map(len, names)) < 220
    assert watch_name(WATCH) == WATCH
    assert watch_name(WATCH, 'cluster="a"') == f'{WATCH} {{cluster="a"}}'


async def test_a_look_that_breaks_is_logged_once_and_the_watch_goes_on(caplog):
    site = Site()
    site.error = ZeroDivisionError("x")
    for _ in range(3):
        outcome = await site.watcher.turn()
        assert outcome.error.one_line() == "internal error: ZeroDivisionError; please report it"
        site.now += 60
    assert caplog.text.count("Traceback") == 1
    site.error = None
    assert await site.events() == ["seeing"]


async def test_a_look_that_fails_begins_the_absence_anew():
    site = Site(holds=Holds(open_s=0.0, resolve_s=120.0))
    site.found = (incident(),)
    assert await site.events() == ["opened"]
    site.found = ()
    told = []
    for failing in (False, True, False, False, False):
        site.now += 60
        site.error = SourceError("no answer") if failing else None
        told.append(await site.events())
    assert told == [[], ["blind"], ["seeing"], [], ["closed"]]
