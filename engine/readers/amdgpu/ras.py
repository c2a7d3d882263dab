"""RAS counts of amdgpu: correctable, uncorrectable, deferred; per block, new and in total.

The driver prints totals also where they are 0, and old versions say "no uncorrectable hardware
errors detected": both are all-clears that hold the text of a fault. Sources: Linux drivers/gpu/drm/
amd/amdgpu/amdgpu_ras.c (5.10 to 7.1) and drivers/gpu/drm/amd/ras (6.18 on).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COUNT = re.compile(
    r"^(?:socket: ?(?P<socket>\d{1,4}),? ?(?:die: ?(?P<die>\d{1,4}),? ?)?)?"
    r"(?:new )?(?P<count>\d{1,18}|[Nn]o) (?P<new>new )?"
    r"(?:(?P<kind>uncorrectable|correctable|deferred) hardware errors?"
    r"|(?P<poison>poison) consumption)"
    r" (?:and (?P<more>\d{1,18}) deferred hardware errors? )?"
    r"detected in (?P<total>total in )?(?P<block>[\w.]{1,24}) block"
)
# Counter garbage of a card that was asleep when it was read: multiples of this (public reports).
GARBAGE = 1_048_560
# The memory blocks of the driver, in words.
BLOCKS = {
    "umc": "HBM or GDDR memory",
    "gfx": "compute engine",
    "sdma": "copy engine",
    "mmhub": "memory hub",
    "xgmi_wafl": "XGMI links",
    "pcie_bif": "PCIe interface",
    "athub": "address translation hub",
    "df": "data fabric",
    "hdp": "host data path",
    "vcn": "video engine",
    "jpeg": "JPEG engine",
}


@dataclass(frozen=True, slots=True)
class RasLine:
    """One printed count. ``kind`` is uncorrectable, correctable, deferred or poison."""

    kind: str
    block: str
    count: int
    total: bool
    socket: int | None
    die: int | None
    deferred_too: int = 0


@dataclass(slots=True)
class RasCount:
    """The counts of one kind in one block, over all dies and lines."""

    line: int
    new: int = 0
    totals: dict[tuple[int | None, int | None], int] = field(default_factory=dict)

    def add(self, one: RasLine) -> None:
        """Add a line: totals replace each other, counts of new errors add up."""
        if one.total:
            if len(self.totals) < 256:
                self.totals[one.socket, one.die] = one.count
        else:
            self.new += one.count

    @property
    def count(self) -> int:
        """Errors in all: the totals where they are printed, else the sum of what was new."""
        return max(sum(self.totals.values()), self.new)

    @property
    def dies(self) -> list[str]:
        """Which dies have errors, as ``socket 0 die 2``."""
        places = [p for p, count in self.totals.items() if count and p[0] is not None]
        return [f"socket {s}" + (f" die {d}" if d is not None else "") for s, d in places[:8]]

    @property
    def garbage(self) -> bool:
        """Whether the count is the one that a sleeping card gives."""
        return self.count > 0 and self.count % GARBAGE == 0


def ras_line(text: str) -> RasLine | None:
    """Return the count that a message prints."""
    found = _COUNT.match(text)
    if found is None:
        return None
    count = 0 if found["count"] in ("no", "No") else int(found["count"])
    return RasLine(
        kind=found["kind"] or found["poison"],
        block=found["block"].lower(),
        count=count,
        total=bool(found["total"]) or found["new"] is None,
        socket=_number(found["socket"]),
        die=_number(found["die"]),
        deferred_too=int(found["more"] or 0),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
