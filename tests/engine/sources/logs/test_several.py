"""Several log sources: a fault in one is told and logged, and hides no other."""

from __future__ import annotations

import asyncio
import logging

import pytest

from engine.sources.logs.port import LogEvent
from engine.sources.logs.several import SeveralLogs


class Source:
    """A log source that answers, or fails with what it was given."""

    needs_hosts = False
    queries = 1
    timeout_s = 5.0

    def __init__(self, name, given):
        self.name = name
        self.given = given

    async def events(self, hosts, start, end):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    def take_unread(self):
        return []

    def take_warnings(self):
        return []

    async def aclose(self):
        pass


@pytest.mark.parametrize(
    "fault",
    [
        TypeError("'int' object is not iterable"),
        ValueError("token=abcdef123456\n" + "x" * 5_000),
        RecursionError(),
        KeyError("data"),
        MemoryError(),
    ],
)
async def test_an_unexpected_fault_is_told_logged_and_hides_no_other(fault, caplog):
    event = LogEvent(10.0, 79, "n1")
    logs = SeveralLogs([Source("Loki http://a", fault), Source("file b", [event])])
    with caplog.at_level(logging.ERROR):
        assert await logs.events(None, 0.0, 20.0) == [event]
    (unread,) = logs.take_unread()
    line = unread.one_line()
    assert line.startswith("logs could not be read: Loki http://a: unexpected ")
    assert type(fault).__name__ in line
    assert "abcdef" not in line
    assert "\n" not in line
    assert len(line) < 300
    assert "GPUWHY_DEBUG" in unread.fix
    (record,) = caplog.records
    assert record.exc_info[1] is fault
    assert "Loki http://a" in record.getMessage()
    assert logs.take_unread() == []


async def test_being_cancelled_is_no_fault():
    logs = SeveralLogs([Source("a", asyncio.CancelledError())])
    with pytest.raises(asyncio.CancelledError):
        await logs.events(None, 0.0, 20.0)
    assert logs.take_unread() == []
