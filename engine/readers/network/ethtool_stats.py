"""Reader of ``ethtool -S``: the counters of mlx5, bnxt_en, ice and others.

Source: Linux kernel, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst;
drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c; drivers/net/ethernet/intel/ice/ice_ethtool.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.counter_changes import Take
from engine.readers.network.counter_facts import CounterFacts
from engine.readers.network.counters import judge_counters
from engine.readers.quantities import short

_PAIR = re.compile(
    r"^\s{0,12}((?:\[[0-9]{1,4}\]: )?[A-Za-z][\w.\[\]-]{1,63}): {1,4}([0-9]{1,20})\s*$"
)
_COMMAND = re.compile(r"(?:^|[\s#$%|;])ethtool (?:-S|--statistics) ([A-Za-z][\w.@-]{1,31})(?:\s|$)")
# Single lines (after grep) that can only be a port's counters.
_ALONE = re.compile(
    r"(?:_phy|_pause|_discards?|_out_of_buffer|_marked_roce_packets|_pause_duration|"
    r"_pause_transition): {1,4}[0-9]{1,20}\s*$"
)


class EthtoolStatsReader(Listing[Take]):
    """Reads the listing, or lines that ``grep`` left of it.

    The listing does not say whose it is: the interface is taken from the command line above it.
    """

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"NIC statistics:",
        b"ethtool -S",
        b"_phy: ",
        b"_pause: ",
        b"out_of_buffer: ",
    )
    PATIENCE = 4

    _current: Take | None = None
    _interface: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ethtool -S``."""
        command = _COMMAND.search(text[:400])
        if command:
            self._interface = short(command[1], 32)
            self.host = _host_of(text) or self.host
            self._current = None
            return True
        if text.strip() == "NIC statistics:":
            self._start(number)
            return True
        pair = _PAIR.match(text)
        if pair is None or not (self.inside or _ALONE.search(text)):
            return False
        take = self._current
        if take is None or pair[1] in take.values:
            # grep takes the heading away: a counter that comes again starts the next listing.
            take = self._start(number)
        take.add(pair[1], int(pair[2]))
        return True

    def end(self) -> None:
        """Forget the interface: the next listing has its own command line."""
        self._current = self._interface = None

    def judge(self, records: Sequence[Take]) -> Result:
        """Say what the counters show."""
        facts = CounterFacts(self.context.catalogue)
        takes = [t for t in records if t.values]
        found = (
            judge_counters("ethtool_stats", takes, facts, "ethtool -S INTERFACE") if takes else []
        )
        return result_of(["ethtool_stats"] if found else [], found)

    def _start(self, number: int) -> Take:
        self._current = Take(number, self._interface, self.host)
        self.inside = True
        self.kept.add(self._current)
        return self._current


def _host_of(text: str) -> str | None:
    prompt = re.match(r"^\[?(?:[\w.-]{1,32}@)([A-Za-z][\w.-]{0,62})[ :]", text)
    return prompt[1] if prompt else None
