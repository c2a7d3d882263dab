"""The readers' view of the knowledge about kernel events: entries, NVLink 5 rows, severities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from engine.catalogue.types import Catalogue
from engine.model import Severity
from engine.readers.bursts import Burst, XidBurst

SEVERITIES = tuple(Severity)
# Recovery action codes of Xid 154 (NVIDIA open-gpu-kernel-modules 595.45.04, gpu.c): how urgent.
RECOVERY_SEVERITY = {
    0: Severity.INFO,
    1: Severity.CRITICAL,
    2: Severity.CRITICAL,
    3: Severity.HIGH,
    4: Severity.HIGH,
    5: Severity.HIGH,
}
_ROW_SEVERITY = {
    "RESET_GPU": Severity.HIGH,
    "XID_154_EVAL": Severity.MEDIUM,
    "IGNORE": Severity.LOW,
}


class Facts:
    """Looks kernel events up in a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._entries = catalogue.entries
        self.taxonomy = catalogue.taxonomy

    def xid(self, code: int) -> Mapping[str, Any] | None:
        """Return the entry of an Xid, None if the code is not documented."""
        return self._entries.get("xid", {}).get(str(code))

    def sxid(self, code: int) -> Mapping[str, Any] | None:
        """Return the entry of an SXid, None if the code is not documented."""
        return self._entries.get("sxid", {}).get(str(code))

    @cached_property
    def nvlink5(self) -> tuple[Mapping[str, Any], ...]:
        """Rows of NVIDIA's table for Xids 144 to 150."""
        return tuple(e for e in self._entries.get("nvlink5", {}).values() if "subcode_v1" in e)

    def nvlink5_reason(self, code: int) -> str | None:
        """Return what a link-down reason code means."""
        entry = self._entries.get("nvlink5_reasons", {}).get(str(code))
        return None if entry is None else str(entry["meaning"])

    def bucket(self, name: str) -> str:
        """Return what one of NVIDIA's bucket names asks for; empty if it is not known."""
        entry = self._entries.get("xid_buckets", {}).get(name)
        return "" if entry is None else str(entry["meaning"]).strip()

    def recovery(self, code: int | None) -> str:
        """Return what a recovery action of Xid 154 asks for; empty if it is not known."""
        entry = self._entries.get("xid154_actions", {}).get(str(code))
        return "" if entry is None else str(entry["meaning"]).strip()

    @cached_property
    def reasons(self) -> Mapping[int, tuple[int, ...]]:
        """Which Xids may have come before an Xid, in the order of the knowledge."""
        found: dict[int, list[int]] = {}
        for entry in self._entries.get("xid_follow_on", {}).values():
            for code in entry["then"]:
                found.setdefault(int(code), []).append(int(entry["first"]))
        return {code: tuple(firsts) for code, firsts in found.items()}

    def register_readings(self, register: int, bits: list[int]) -> list[str]:
        """Return what the set bits of an Xid 74 register mean, in the order of the table."""
        return [
            f"register {register} bits {', '.join(map(str, hit))}: {entry['reading']}"
            if len(hit) > 1
            else f"register {register} bit {hit[0]}: {entry['reading']}"
            for entry in self._entries.get("nvlink4_registers", {}).values()
            if entry["register"] == register and (hit := [b for b in bits if b in entry["bits"]])
        ]

    def severity(self, burst: Burst) -> Severity:
        """Return how bad an event is: its entry's severity, sharpened by its message."""
        if isinstance(burst, XidBurst):
            if burst.code == 154:
                return RECOVERY_SEVERITY.get(burst.detail.get("recovery_code", -1), Severity.HIGH)
            row = burst.detail.get("table_row")
            if isinstance(row, Mapping):
                return _ROW_SEVERITY.get(str(row["resolution"]), Severity.HIGH)
            if burst.detail.get("severity") in ("Nonfatal", "Non-fatal"):
                return Severity.MEDIUM
            entry = self.xid(burst.code)
        else:
            entry = self.sxid(burst.code)
        return Severity(entry["severity"]) if entry else Severity.MEDIUM

    def weigh(self, burst: Burst) -> int:
        """Return the severity as a number, 0 the worst; what nobody documents comes last."""
        known = self.xid(burst.code) if isinstance(burst, XidBurst) else self.sxid(burst.code)
        if known is None:
            return len(SEVERITIES)
        return SEVERITIES.index(self.severity(burst))
