"""Reader of clock event masks from ``nvidia-smi --query-gpu=…`` in CSV form."""

from __future__ import annotations

import re
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.throttle import Around, reasons_of, throttle_finding

_COLUMN = re.compile(r"^clocks_(?:throttle|event)_reasons\.(supported|active)$")
_HEX = re.compile(r"^0[xX]([0-9A-Fa-f]{1,16})$")


class SmiCsvReader:
    """Reads ``clocks_throttle_reasons.supported`` and ``.active`` columns (new name: event)."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"clocks_throttle_reasons.", b"clocks_event_reasons.")
    MAX_MASKS = 1_024

    def __init__(self, context: Context) -> None:
        self.open = False
        self._catalogue = context.catalogue
        self._columns: dict[int, str] = {}
        self._masks: dict[tuple[str, int], int] = {}

    def feed(self, number: int, text: str) -> bool:
        """Take a header line, or while open the values under it."""
        cells = [cell.strip() for cell in text.split(",")]
        header = {i: m[1] for i, cell in enumerate(cells) if (m := _COLUMN.match(cell))}
        if header:
            self._columns, self.open = header, True
            return True
        if not self.open:
            return False
        taken = False
        for column, which in self._columns.items():
            value = _HEX.match(cells[column]) if column < len(cells) else None
            if value:
                if len(self._masks) < self.MAX_MASKS:
                    self._masks.setdefault((which, int(value[1], 16)), number)
                taken = True
        self.open = taken
        return taken

    def finish(self) -> Result:
        """Say what the masks show; a supported mask is no reading of anything active."""
        findings = [
            self._supported(mask, line)
            if which == "supported"
            else throttle_finding(mask, Around(), self._catalogue, line=line)
            for (which, mask), line in self._masks.items()
        ]
        return Result(
            kinds=["nvidia_smi_csv", "throttle"] if findings else [],
            findings=findings,
            causes=[f.cause for f in findings if f.cause],
        )

    def _supported(self, mask: int, line: int) -> Finding:
        reasons, left = reasons_of(mask, self._catalogue)
        count = f"{len(reasons)} documented reasons"
        return Finding(
            kind="throttle",
            id="supported",
            severity=Severity.INFO,
            says=(
                f"This is the supported mask, 0x{mask:X}: the {count} that this GPU can report, "
                "0x1 to 0x"
                f"{1 << max(mask.bit_length() - 1, 0):X}. It is not what is active now and says "
                "nothing about throttling."
            ),
            action=(
                "Query clocks_event_reasons.active (older drivers: clocks_throttle_reasons.active) "
                "to see what holds the clocks now."
            ),
            entity=None,
            line=line,
            cause=None,
            data={"supported_mask": mask, "supported_reasons": reasons}
            | ({"unknown_bits": left} if left else {}),
        )
