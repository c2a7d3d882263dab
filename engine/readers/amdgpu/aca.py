"""Error records of AMD's Accelerator Check Architecture: what the dumped registers say.

The driver dumps a bank per error, as ``ACA[01/02].STATUS=0x…`` (Linux 6.10 on) or ``aca
entry[00].STATUS=0x…``, behind a line ``Accelerator Check Architecture events logged``. Bits: Linux
drivers/gpu/drm/amd/amdgpu/amdgpu_aca.h; banks by hardware id: amdgpu_aca.c (aca_hwid_mcatypes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_ENTRY: Final = re.compile(
    r"^(?:ACA\[(?P<number>\d{1,3})/\d{1,3}\]|(?:aca|mca) entry\[(?P<old>\d{1,3})\])\."
    r"(?P<register>[A-Z][A-Z0-9_]{1,15})=0x(?P<value>[0-9A-Fa-f]{1,16})"
)
_OVERFLOW, _UNCORRECTED, _DEFERRED, _POISON = (1 << bit for bit in (62, 61, 44, 43))
_VALID: Final = 1 << 63
# Hardware id (IPID bits 32 to 43): block, in words.
_BANKS: Final = {
    0x96: ("umc", "HBM memory"),
    0x50: ("xgmi", "XGMI links"),
    0x01: ("smu", "compute dies and hubs"),
}
# Instance (IPID bits 1 to 31) of a bank of hardware id 1: gfx_v9_4_3.c, mmhub_v1_8.c.
_INSTANCES: Final = {
    0x36430400: ("gfx", "a compute die (XCD)"),
    0x38430400: ("gfx", "a compute die (XCD)"),
    0x40430400: ("gfx", "a compute die (XCD)"),
    0x03B30400: ("mmhub", "an I/O die (copy engines, memory hub)"),
}
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class AcaRecord:
    """One record. ``kind`` is uncorrectable, deferred or corrected; ``block`` None if unknown."""

    kind: str
    status: int
    poison: bool
    overflow: bool
    block: str | None
    words: str
    socket: int | None
    die: int | None


@dataclass(slots=True)
class AcaDump:
    """The registers of one GPU's records, by the number of the record."""

    line: int
    entries: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, number: int, register: str, value: int) -> None:
        """Keep a register."""
        if number in self.entries or len(self.entries) < _MOST:
            self.entries.setdefault(number, {})[register] = value

    def records(self) -> list[AcaRecord]:
        """Return the records whose status was dumped and is valid, the worst first."""
        found = [_decoded(e) for e in self.entries.values() if e.get("STATUS", 0) & _VALID]
        return sorted(found, key=lambda r: ("uncorrectable", "deferred", "corrected").index(r.kind))


def aca_entry(text: str) -> tuple[int, str, int] | None:
    """Return number, register and value of a line of a dump; None for any other line."""
    found = _ENTRY.match(text)
    if found is None:
        return None
    return int(found["number"] or found["old"]), found["register"], int(found["value"], 16)


def _decoded(entry: dict[str, int]) -> AcaRecord:
    status = entry["STATUS"]
    ipid = entry.get("IPID")
    bank = _bank(ipid) if ipid is not None else None
    kind = (
        "uncorrectable"
        if status & _UNCORRECTED
        else "deferred"
        if status & (_DEFERRED | _POISON)
        else "corrected"
    )
    return AcaRecord(
        kind=kind,
        status=status,
        poison=bool(status & _POISON),
        overflow=bool(status & _OVERFLOW),
        block=bank[0] if bank else None,
        words=bank[1] if bank else "a block that the dump does not name",
        # Bits SAASS of a die's number: the lowest of the instance, then four of its upper part.
        socket=None if ipid is None else (ipid & 1) << 2 | ipid >> 44 & 3,
        die=None if ipid is None else ipid >> 46 & 3,
    )


def _bank(ipid: int) -> tuple[str, str] | None:
    hardware = ipid >> 32 & 0xFFF
    known = _INSTANCES.get(ipid & 0xFFFFFFFE) if hardware == 1 else None
    return known or _BANKS.get(hardware)
