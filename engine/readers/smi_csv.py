"""Reader of clock event masks from ``nvidia-smi --query-gpu=…`` in CSV form.

The mask comes as a number (``….active``) or as one column a reason; temperatures, power and clocks
in the same row are the readings around it. Column names: ``nvidia-smi --help-query-gpu``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result
from engine.readers.throttle import Around, reasons_of, throttle_finding

_MASK = re.compile(r"^clocks_(?:throttle|event)_reasons\.(supported|active)$")
_UNIT = re.compile(r" \[[A-Za-z%/]{1,8}\]$")
_HEX = re.compile(r"^0[xX]([0-9A-Fa-f]{1,16})$")
_NUMBER = re.compile(r"^(-?\d{1,9}(?:\.\d{1,6})?)(?: ?(?:W|MHz|C))?$")
_FLAG = {"Active": True, "Not Active": False}
# Column: attribute of `Around`.
_READINGS = {
    "temperature.gpu": "gpu_temp_c",
    "temperature.gpu.tlimit": "margin_c",
    "temperature.memory": "memory_temp_c",
    "power.draw": "power_w",
    "power.draw.average": "power_w",
    "power.draw.instant": "power_w",
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "power.default_limit": "power_limit_default_w",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.max.sm": "max_sm_clock_mhz",
}
_IDENTITY = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "pci",
    "gpu_bus_id": "pci",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """A mask of one GPU, where it was first seen, and the readings beside it."""

    which: str
    mask: int
    line: int
    entity: Entity | None
    around: Around


class SmiCsvReader:
    """Reads the mask columns, by their old name (throttle) and their new one (event)."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"clocks_throttle_reasons.", b"clocks_event_reasons.")
    MAX_MASKS = 1_024

    def __init__(self, context: Context) -> None:
        self.open = False
        self._catalogue = context.catalogue
        self._reason_of = _reason_columns(context.catalogue)
        self._columns: list[str] = []
        self._rows: dict[tuple[str | None, str, int], _Row] = {}

    def feed(self, number: int, text: str) -> bool:
        """Take a header line, or while open the values under it."""
        cells = [cell.strip() for cell in text.split(",")]
        columns = [_UNIT.sub("", cell) for cell in cells]
        if any(_MASK.match(c) or c in self._reason_of for c in columns):
            self._columns, self.open = columns, True
            return True
        if not self.open:
            return False
        row = dict(zip(self._columns, cells, strict=False))
        masks = self._masks(row)
        for which, mask in masks:
            entity = _entity(row) if which == "active" else None
            key = (entity.name if entity else None, which, mask)
            if key not in self._rows and len(self._rows) < self.MAX_MASKS:
                self._rows[key] = _Row(which, mask, number, entity, _around(row))
        self.open = bool(masks)
        return self.open

    def finish(self) -> Result:
        """Say what the masks show; a supported mask is no reading of anything active."""
        findings = [
            self._supported(row)
            if row.which == "supported"
            else throttle_finding(
                row.mask,
                row.around,
                self._catalogue,
                entity=row.entity,
                subject=row.entity.name if row.entity else "the GPU",
                line=row.line,
            )
            for row in self._rows.values()
        ]
        findings.sort(key=lambda f: list(Severity).index(f.severity))
        return Result(
            kinds=["nvidia_smi_csv", "throttle"] if findings else [],
            findings=findings,
            causes=[f.cause for f in findings if f.cause],
        )

    def _masks(self, row: Mapping[str, str]) -> list[tuple[str, int]]:
        """Return the masks of a row; single reasons count where the mask itself is not there."""
        masks = [
            (kind[1], int(value[1], 16))
            for column, cell in row.items()
            if (kind := _MASK.match(column)) and (value := _HEX.match(cell))
        ]
        if any(which == "active" for which, _ in masks):
            return masks
        bits = self._catalogue.entries["throttle_reasons"]
        flags = {self._reason_of[c]: _FLAG.get(v) for c, v in row.items() if c in self._reason_of}
        if any(flag is not None for flag in flags.values()):
            masks.append(("active", sum(int(bits[r]["bit"]) for r, on in flags.items() if on)))
        return masks

    def _supported(self, row: _Row) -> Finding:
        reasons, left = reasons_of(row.mask, self._catalogue)
        return Finding(
            kind="throttle",
            id="supported",
            severity=Severity.INFO,
            says=(
                f"This is the supported mask, 0x{row.mask:X}: the {len(reasons)} documented "
                "reasons that this GPU can report, 0x1 to 0x"
                f"{1 << max(row.mask.bit_length() - 1, 0):X}. It is not what is active now and "
                "says nothing about throttling."
            ),
            action=(
                "Query clocks_event_reasons.active (older drivers: clocks_throttle_reasons.active) "
                "to see what holds the clocks now."
            ),
            entity=row.entity,
            line=row.line,
            cause=None,
            data={"supported_mask": row.mask, "supported_reasons": reasons}
            | ({"unknown_bits": left} if left else {}),
        )


def _reason_columns(catalogue: Catalogue) -> dict[str, str]:
    entries = catalogue.entries["throttle_reasons"].values()
    return {column: str(e["id"]) for e in entries for column in e.get("nvidia_smi", ())}


def _entity(row: Mapping[str, str]) -> Entity | None:
    known = {key: row[column] for column, key in _IDENTITY.items() if row.get(column)}
    index = known.get("index", "")
    gpu = int(index) if index.isdecimal() and len(index) < 4 else None
    name = f"GPU {gpu}" if gpu is not None else known.get("pci") or known.get("uuid")
    if name is None:
        return None
    return Entity(
        Kind.GPU,
        name,
        gpu=gpu,
        uuid=known.get("uuid"),
        pci=known.get("pci"),
        model=known.get("name"),
    )


def _around(row: Mapping[str, str]) -> Around:
    around = Around(pstate=row.get("pstate") or None)
    for column, attribute in _READINGS.items():
        value = _NUMBER.match(row.get(column, ""))
        if value and getattr(around, attribute) is None:
            setattr(around, attribute, float(value[1]))
    return around
