"""Readers of ``perfquery`` and ``ibqueryerrors`` (linux-rdma/rdma-core, infiniband-diags)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.counter_changes import Take
from engine.readers.network.counter_facts import CounterFacts
from engine.readers.network.counters import judge_counters
from engine.readers.quantities import integer, short

_START = re.compile(
    r"^\s{0,4}# Port (extended )?counters: (?:Lid ([0-9]{1,5})|DR path ([\w ;,:-]{1,60}?)) port "
    r"([0-9]{1,3})(?: .{0,80})?$"
)
_PAIR = re.compile(
    r"^\s{0,4}([A-Za-z0-9]{3,40}):\.{0,40}\s{0,4}(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})\s*$"
)
_NO_COUNTERS = frozenset({"portselect", "counterselect", "counterselect2"})


class PerfqueryReader(Listing[Take]):
    """Reads one block a port, classic or extended (``-x``)."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"# Port counters: ", b"# Port extended counters: ")

    _current: Take | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``perfquery``."""
        start = _START.match(text)
        if start:
            place = f"lid {start[2]}" if start[2] else f"path {short(start[3])}"
            self._current = Take(
                number, f"{place} port {start[4]}", self.host, narrow=start[1] is None
            )
            self.inside = True
            self.kept.add(self._current)
            return True
        pair = _PAIR.match(text) if self.inside and self._current is not None else None
        if pair is None or self._current is None:
            return False
        value = integer(pair[2])
        if value is not None and pair[1].lower() not in _NO_COUNTERS:
            self._current.add(pair[1], value)
        return True

    def judge(self, records: Sequence[Take]) -> Result:
        """Say what the counters show."""
        facts = CounterFacts(self.context.catalogue)
        return result_of(
            ["perfquery"], judge_counters("perfquery", records, facts, "perfquery -x LID PORT")
        )


_ERRORS = re.compile(r'^\s{0,4}Errors for (?:0x[0-9a-f]{1,16} )?"([^"]{1,64})"')
_PORT = re.compile(
    r"^\s{1,8}GUID 0x[0-9a-f]{1,16} port (ALL|[0-9]{1,3}):((?: \[\w{1,40} == [0-9]{1,20}"
    r"(?: \([^)]{0,24}\))?\]){1,40})"
)
_VALUE = re.compile(r"\[(\w{1,40}) == ([0-9]{1,20})")


class IbqueryerrorsReader(Listing[Take]):
    """Reads the lines of ports whose counters passed a threshold."""

    triggers: ClassVar[tuple[bytes, ...]] = (b'Errors for "', b"Errors for 0x")
    PATIENCE = 6

    _node = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ibqueryerrors``."""
        start = _ERRORS.match(text)
        if start:
            self._node, self.inside = short(start[1]), True
            return True
        port = _PORT.match(text) if self.inside else None
        if port is None:
            return False
        if port[1] != "ALL":
            take = Take(number, f"{self._node} port {port[1]}", self.host)
            for name, value in _VALUE.findall(port[2]):
                take.add(name, int(value))
            self.kept.add(take)
        return True

    def judge(self, records: Sequence[Take]) -> Result:
        """Say what the counters show."""
        facts = CounterFacts(self.context.catalogue)
        return result_of(
            ["ibqueryerrors"], judge_counters("ibqueryerrors", records, facts, "ibqueryerrors")
        )
