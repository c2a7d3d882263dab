"""Reader of transfers that people time by hand: ``dd``, and the summary of IOR.

Sources: GNU coreutils dd.c; hpc/ior src/ior-output.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import decimal, integer
from engine.readers.storage.ceilings import (
    BELOW_ONE_DISK,
    ENOUGH_S,
    LARGE_BYTES,
    below_one_disk,
    nic_note,
)
from engine.units import number

_RECORDS: Final = re.compile(r"^\s{0,4}([0-9]{1,15})\+[0-9]{1,15} records (in|out)\s*$")
_COPIED: Final = re.compile(
    r"^\s{0,4}([0-9]{1,20}) bytes(?: \([^()]{1,40}\))? copied, ([0-9.,e+-]{1,16}) s, "
    r"[0-9.,]{1,10} [kMGT]?i?B/s\s*$"
)
_IOR: Final = re.compile(r"^\s{0,4}Max (Write|Read):\s{1,8}([0-9.]{1,16}) MiB/sec")


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer; ``seconds`` and ``block`` (bytes) where the tool tells them."""

    line: int
    host: str | None
    tool: str
    way: str
    gbs: float
    size: float = 0.0
    seconds: float | None = None
    block: float | None = None


class TransferReader(Listing[Transfer]):
    """Reads the line with the rate, and the count of records above it."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b" records in",
        b" records out",
        b" copied, ",
        b"Max Write:",
        b"Max Read:",
    )
    PATIENCE = 1

    _records = 0

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``dd`` or the summary of IOR."""
        records, copied, ior = _RECORDS.match(text), _COPIED.match(text), _IOR.match(text)
        if records:
            self._records, self.inside = int(records[1]), True
        elif copied:
            size, seconds = integer(copied[1]) or 0, decimal(copied[2])
            block = size / self._records if self._records else None
            self._records = 0
            if seconds and seconds > 0:
                rate = size / seconds / 1e9
                self.kept.add(Transfer(number, self.host, "dd", "copy", rate, size, seconds, block))
        elif ior:
            rate = (decimal(ior[2]) or 0.0) * 1_048_576 / 1e9
            self.kept.add(Transfer(number, self.host, "IOR", ior[1].lower(), rate))
        return bool(records or copied or ior)

    def judge(self, records: Sequence[Transfer]) -> Result:
        """Say what each transfer reached."""
        return result_of(["transfer"], [_judged(one) for one in records[:256]])


def _judged(one: Transfer) -> Finding:
    enough = one.seconds is None or one.seconds >= ENOUGH_S
    large = one.block is None or one.block >= LARGE_BYTES
    slow = one.tool == "dd" and below_one_disk(one.gbs, seconds=one.seconds, block=one.block)
    notes = []
    if slow:
        notes.append(f"{BELOW_ONE_DISK}.")
    elif one.tool == "dd" and not enough:
        notes.append("So short a copy shows the page cache: write more than the memory holds.")
    elif one.tool == "dd" and not large:
        notes.append("In such small blocks it shows calls, not the storage.")
    elif one.tool == "dd":
        notes.append(nic_note(one.gbs))
    took = (
        f" ({number(round(one.size / 1e9, 3))} GB in {number(round(one.seconds, 2))} s)"
        if one.seconds
        else ""
    )
    many = " over all clients together" if one.tool == "IOR" else " by one process"
    return finding(
        "transfer",
        f"{one.way}_slow" if slow else one.way,
        Severity.MEDIUM if slow else Severity.INFO,
        f"{at(one.host)}{one.tool}, {one.way}: {number(one.gbs)} GB/s{took}{many}. "
        f"{' '.join(notes)}".rstrip(),
        "Look at the mount's client: nfsiostat 1, lctl get_param osc.*.import, mmdiag --waiters; "
        "for a local disk iostat -x 1."
        if slow
        else "dd writes to the page cache unless told oflag=direct or conv=fsync; fio with several "
        "jobs shows what the storage can do."
        if one.tool == "dd"
        else "Compare with the same run of another day, and with the clients' NICs together.",
        line=one.line,
        cause="storage_slow" if slow else None,
        data={
            "bandwidth_gbs": round(one.gbs, 6),
            "io_gb": round(one.size / 1e9, 3) if one.size else None,
            "runtime_s": one.seconds,
            "block_bytes": round(one.block) if one.block else None,
        },
        entity=node(one.host),
        sources=("GNU coreutils dd(1)", "hpc/ior README"),
    )
