"""Reader of ``ip -s link`` (iproute2 ip/ipaddress.c): errors and drops of interfaces, compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.readers.network.counter_changes import Take
from engine.readers.network.counter_facts import CounterFacts
from engine.readers.network.counters import judge_counters
from engine.readers.quantities import integer, listed

_START: Final = re.compile(
    r"^\s{0,4}[0-9]{1,6}: ([\w.-]{1,32})(?:@[\w.-]{1,32})?: <([A-Z0-9_,-]{0,200})> mtu ([0-9]{1,6})"
)
_HEAD: Final = re.compile(r"^\s{0,8}(RX|TX)(?: errors)?:((?:\s{1,24}[a-z]{2,12}){2,8})\s*$")
# Virtual interfaces: their drops are packets that nobody wanted.
_VIRTUAL: Final = re.compile(
    r"^(?:lo|docker|veth|br-|virbr|cali|cni|flannel|tunl|cilium|ifb|dummy|tap|tun)"
)
_NAMES: Final = {
    ("rx", "missed"): "rx_missed_errors",
    ("rx", "overrun"): "rx_missed_errors",
    ("rx", "crc"): "rx_crc_errors",
}


class IpLinkReader(Listing[Take]):
    """Reads the two lines under ``RX:`` and ``TX:`` of each interface."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"> mtu ",)
    PATIENCE = 3

    _current: Take | None = None
    _columns: tuple[str, tuple[str, ...]] | None = None
    _mtu: int | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ip -s link``; without ``-s`` there is nothing to count."""
        start = _START.match(text)
        if start:
            self._current = Take(number, start[1], self.host)
            self._columns, self.inside = None, True
            if "NO-CARRIER" in start[2] and not _VIRTUAL.match(start[1]):
                self._current.add("no_carrier", 1)
            if not _VIRTUAL.match(start[1]):
                self.kept.add(self._current)
            return True
        if not self.inside or self._current is None:
            return False
        head = _HEAD.match(text)
        if head:
            self._columns = (head[1].lower(), tuple(head[2].split()))
            return True
        cells = text.split()
        if self._columns is not None and len(cells) >= len(self._columns[1]):
            way, names = self._columns
            for name, cell in zip(names, cells, strict=False):
                value = integer(cell)
                if value is not None:
                    self._current.add(_NAMES.get((way, name), f"{way}_{name}"), value)
            self._columns = None
            return True
        return text.lstrip().startswith(("link/", "inet ", "inet6 ", "altname ", "valid_lft "))

    def judge(self, records: Sequence[Take]) -> Result:
        """Say what rose, and which interfaces have no carrier."""
        facts = CounterFacts(self.context.catalogue)
        unplugged = [t for t in records if t.values.pop("no_carrier", 0)]
        counted = [t for t in records if t.values]
        found = judge_counters("ip_link", counted, facts, "ip -s link") if counted else []
        if unplugged:
            names = list(dict.fromkeys(t.name for t in unplugged))
            found.append(
                finding(
                    "ip_link",
                    "no_carrier",
                    Severity.INFO,
                    f"{listed(names)} {'is' if len(names) == 1 else 'are'} switched on and "
                    f"{'has' if len(names) == 1 else 'have'} no carrier: no cable, or the other "
                    "end is off. Unused ports look like that too.",
                    "If it should carry traffic: ethtool INTERFACE, cable, switch port.",
                    line=unplugged[0].line,
                    data={"interfaces": names},
                    sources=("iproute2 ip-link(8)",),
                )
            )
        return result_of(["ip_link"] if found else [], found)
