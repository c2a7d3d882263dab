"""Reader of ``free``, with any unit (procps-ng)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import size_bytes
from engine.units import number

_HEADER: Final = re.compile(
    r"^\s{4,24}total\s{1,16}used\s{1,16}free\s{1,16}shared\s{1,16}buff/cache\s{1,16}available\s*$"
)
_ROW: Final = re.compile(r"^\s{0,4}(Mem|Swap):((?:\s{1,20}[0-9.,]{1,20}[KMGTPE]?i?B?){3,6})\s*$")
# Parts of the memory and of the swap; the readings of node_exporter are held against the same.
LOW: Final = 0.03
SWAPPED: Final = 0.2


@dataclass(slots=True)
class Memory:
    """One listing; sizes in the unit of the listing."""

    line: int
    host: str | None
    total: float
    available: float
    swap: float = 0.0
    swap_used: float = 0.0


class FreeReader(Listing[Memory]):
    """Reads the lines of memory and swap under their header."""

    pattern: ClassVar[bytes] = rb"total +used +free +shared +buff/cache +available"
    PATIENCE = 0

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``free``."""
        if _HEADER.match(text.expandtabs()):
            self.inside = True
            return True
        row = _ROW.match(text) if self.inside else None
        if row is None:
            return False
        cells = [size_bytes(cell) or 0.0 for cell in row[2].split()]
        if row[1] == "Mem" and len(cells) == 6:
            self.kept.add(Memory(number, self.host, cells[0], cells[5]))
        elif row[1] == "Swap" and self.kept.items:
            self.kept.items[-1].swap, self.kept.items[-1].swap_used = cells[0], cells[1]
        return True

    def judge(self, records: Sequence[Memory]) -> Result:
        """Say whether memory is nearly gone; the last listing of a host counts."""
        last = {r.host: r for r in records if r.total > 0}
        return result_of(["free"], [_judged(one) for one in last.values()])


def _judged(one: Memory) -> Finding:
    share = one.available / one.total
    used = one.swap_used / one.swap if one.swap else 0.0
    bad = share < LOW or (share < 2 * LOW and used > SWAPPED)
    swapped = f", {number(round(100 * used))} % of the swap is used" if one.swap else ", no swap"
    return finding(
        "free",
        "memory_low" if bad else "memory",
        Severity.HIGH if bad else Severity.INFO,
        f"{at(one.host)}{number(round(100 * share, 1))} % of the host's memory are available"
        f"{swapped}."
        + (" Data loading and pinned copies stall, and the OOM killer is near." if bad else ""),
        "ps aux --sort=-rss | head; look for data loader workers, page cache limits of the "
        "container, leaks; dmesg | grep -i oom."
        if bad
        else "Nothing to do; used swap is no fault by itself: vmstat 1 shows whether it moves "
        "(si, so).",
        line=one.line,
        cause="host_memory_pressure" if bad else None,
        data={
            "available_percent": round(100 * share, 2),
            "swap_percent": round(100 * used, 1) if one.swap else None,
        },
        entity=node(one.host),
        sources=("procps-ng free(1)",),
    )
