"""Reader of ``nvidia-smi --query-gpu=… --format=csv``: any columns, once or in a loop (``-l``).

With a header the columns are known by it. Without one (``noheader``) only cells that explain
themselves are read: UUID, bus address, product name, P-state, a mask of sixteen hexadecimal digits,
and errors in words. Column names: ``nvidia-smi --help-query-gpu``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.catalogue.types import Catalogue
from engine.model import Class, Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, prompt_host
from engine.readers.smi.csv_fields import CSV
from engine.readers.smi.moments import Moment, csv_time
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState, pci_of, shown
from engine.readers.throttle import Around, reasons_of, throttle_finding

_MASK: Final = re.compile(r"^clocks_(?:throttle|event)_reasons\.(supported|active)$")
_COMMAND: Final = re.compile(
    r"\bnvidia-smi\b.{0,200}--query-(?:gpu|remapped-rows)[= ][\"']?([a-z][a-z0-9_.,]{2,600})"
)
_UNIT: Final = re.compile(r" \[[A-Za-z%/]{1,8}\]$")
_HEX: Final = re.compile(r"^0[xX]([0-9A-Fa-f]{1,16})$")
_FULL_MASK: Final = re.compile(r"^0x[0-9A-Fa-f]{16}$")
_INDEX: Final = re.compile(r"^[0-9]{1,3}$")
_PSTATE: Final = re.compile(r"^P[0-9]{1,2}$")
_NAME: Final = re.compile(r"^(?:NVIDIA|Tesla|Quadro|GeForce) \S.{0,60}$")
_ERROR: Final = re.compile(r"^\[?(GPU requires reset|GPU is lost|Unknown Error|ERR!)\]?$")
_FLAG: Final = {"Active": True, "Not Active": False}
_IDENTITY: Final = {
    "index": "index",
    "gpu_index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "pci",
    "gpu_bus_id": "pci",
    "timestamp": "timestamp",
}
_OWN: Final = frozenset(CSV) | frozenset(_IDENTITY)
# Properties that no other tool's header has; one of them makes a header.
_TELLING: Final = frozenset(
    name for name in CSV if "." in name or name in ("gpu_recovery_action", "pstate")
)
MAX_GPUS: Final = 512
MAX_MASKS: Final = 64
# Rows of a loop that are kept for the rules, for each GPU.
MAX_MOMENTS: Final = 300
# Of more GPUs than stand in one machine, only the newest rows are kept.
MAX_WATCHED: Final = 32
FEW_MOMENTS: Final = 16


@dataclass(slots=True)
class _Rows:
    """What all rows of one GPU hold."""

    state: GpuState
    masks: dict[int, tuple[int, Around]] = field(default_factory=dict)
    supported: dict[int, int] = field(default_factory=dict)
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=MAX_MOMENTS))
    count: int = 0


class SmiCsvReader(Listing[_Rows]):
    """Reads header and rows; repeated rows of a GPU are its course over time."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"clocks_throttle_reasons.",
        b"clocks_event_reasons.",
        b"utilization.gpu",
        b"temperature.gpu",
        b"memory.used",
        b"memory.total",
        b"power.draw",
        b"pcie.link.",
        b"ecc.errors.",
        b"remapped_rows.",
        b"clocks.sm",
        b"gpu_recovery_action",
        b"[GPU requires reset]",
        b"[GPU is lost]",
        b"[Unknown Error]",
        b", 0x0000",
        b"--query-gpu",
        b"--query-remapped-rows",
    )
    PATIENCE: ClassVar[int] = 1

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[_Rows] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._reason_of = _reason_columns(context.catalogue)
        self._columns: list[str] = []
        self._rows: dict[str, _Rows] = {}
        self._since_header = 0

    def take(self, number: int, text: str) -> bool:
        """Take a header line, or the values of one GPU."""
        cells = [cell.strip() for cell in text.split(",")]
        columns = [_UNIT.sub("", cell) for cell in cells]
        command = _COMMAND.search(text) if "--query-" in text else None
        if command is not None:
            # With ``noheader`` the command is all that names the columns.
            self._columns, self._since_header = command[1].split(","), 0
            self.host = prompt_host(text) or self.host
            self.inside = True
            return True
        if self._is_header(columns):
            self._columns, self._since_header = columns, 0
            self.inside = True
            return True
        if self._columns and self.inside:
            if len(cells) < max(len(self._columns) - 1, 1) or len(cells) > len(self._columns) + 4:
                return False
            return self._row(number, dict(zip(self._columns, cells, strict=False)))
        return self._bare(number, cells)

    def end(self) -> None:
        """Forget the columns: rows that come later have a header of their own."""
        self._columns = []

    def judge(self, records: Sequence[_Rows]) -> Result:
        """Say what the rows show; a supported mask is no reading of anything active."""
        states = [rows.state for rows in records]
        extra = [f for rows in records for f in self._masks_of(rows, single=len(records) == 1)]
        supported = {mask: line for r in reversed(records) for mask, line in r.supported.items()}
        extra += [self._supported(mask, line) for mask, line in supported.items()]
        moments = {id(rows.state): list(rows.moments) for rows in records}
        result = report(states, self.context, kind="nvidia_smi_csv", extra=extra, moments=moments)
        if result.findings and any(r.masks or r.supported or r.state.flags for r in records):
            result.kinds = list(dict.fromkeys([*result.kinds, "throttle"]))
        return result

    def _is_header(self, columns: Sequence[str]) -> bool:
        telling = any(c in _TELLING or _MASK.match(c) or c in self._reason_of for c in columns)
        return telling and all(re.fullmatch(r"[A-Za-z][\w. -]{0,80}", c) for c in columns if c)

    def _row(self, number: int, row: Mapping[str, str]) -> bool:
        self._since_header += 1
        if not any(self._is_value(column, cell) for column, cell in row.items()):
            return False
        rows = self._of(number, row)
        state = rows.state
        rows.count += 1
        state.line = state.line or number
        for column, cell in row.items():
            name = CSV.get(column)
            if name is not None:
                state.take(name, cell)
            elif column in self._reason_of and cell in _FLAG:
                state.flags[self._reason_of[column]] = _FLAG[cell]
        masks = [
            (kind[1], int(value[1], 16))
            for column, cell in row.items()
            if (kind := _MASK.match(column)) and (value := _HEX.match(cell))
        ]
        for which, mask in masks:
            if which == "supported":
                if len(rows.supported) < MAX_MASKS:
                    rows.supported.setdefault(mask, number)
            else:
                self._mask(rows, mask, number)
        if state.flags and not any(which == "active" for which, _ in masks):
            bits = self.context.catalogue.entries["throttle_reasons"]
            self._mask(
                rows, sum(int(bits[r]["bit"]) for r, on in state.flags.items() if on), number
            )
        at = csv_time(row.get("timestamp", ""))
        if at is not None:
            rows.moments.append(Moment(at, dict(state.numbers), state.mask))
        return True

    def _mask(self, rows: _Rows, mask: int, number: int) -> None:
        rows.state.mask = mask
        if len(rows.masks) < MAX_MASKS:
            rows.masks.setdefault(mask, (number, rows.state.around()))
        rows.state.flags_line = rows.masks.get(mask, (number,))[0]

    def _is_value(self, column: str, cell: str) -> bool:
        """Return whether a cell can be the value of a column: what ends a table is not."""
        name = CSV.get(column)
        if name is not None:
            return GpuState().take(name, cell) and cell != ""
        if _MASK.match(column):
            return bool(_HEX.match(cell)) or cell.startswith("[")
        return column in self._reason_of and (cell in _FLAG or cell.startswith("["))

    def _of(self, number: int, row: Mapping[str, str]) -> _Rows:
        known = {key: row[column] for column, key in _IDENTITY.items() if row.get(column)}
        index = known.get("index", "")
        key = known.get("uuid") or known.get("pci") or (index if _INDEX.match(index) else "")
        if not key:
            # Without identity the rows of one run stand in the order of the GPUs.
            key = "" if len(self._columns) == 1 else f"row {self._since_header}"
        rows = self._rows.get(key)
        if rows is None:
            rows = _Rows(GpuState(host=self.host, line=number))
            if len(self.kept.items) >= MAX_WATCHED:
                rows.moments = deque(maxlen=FEW_MOMENTS)
            if self.kept.add(rows):
                self._rows[key] = rows
        state = rows.state
        if _INDEX.match(index):
            state.index = int(index)
        state.name = shown(known["name"]) if "name" in known else state.name
        state.uuid = (
            shown(known["uuid"]) if known.get("uuid", "").startswith("GPU-") else state.uuid
        )
        state.pci = pci_of(known.get("pci", "")) or state.pci
        if "driver_version" in row:
            state.run.driver = shown(row["driver_version"])
        return rows

    def _bare(self, number: int, cells: Sequence[str]) -> bool:
        """Take a row without a header, by the cells that explain themselves."""
        errors = [found[1] for cell in cells if (found := _ERROR.match(cell))]
        masks = [cell for cell in cells if _FULL_MASK.match(cell)]
        if len(cells) < 2 or not (errors or masks) or ": " in cells[0]:
            return False
        known: dict[str, str] = {}
        if _INDEX.match(cells[0]):
            known["index"] = cells[0]
        for cell in cells:
            if cell.startswith("GPU-") and len(cell) < 48:
                known["uuid"] = cell
            elif pci_of(cell):
                known["pci.bus_id"] = cell
            elif _NAME.match(cell):
                known["name"] = cell
        if not known:
            return False
        rows = self._of(number, known)
        rows.count += 1
        for cell in cells:
            if _PSTATE.match(cell):
                rows.state.take("pstate", cell)
        for i, word in enumerate(errors):
            rows.state.take(f"field {i}", word)
        if masks:
            self._mask(rows, int(masks[0], 16), number)
        self.inside = True
        return True

    def _masks_of(self, rows: _Rows, *, single: bool) -> Iterator[Finding]:
        """Yield what masks beside the newest one say."""
        taxonomy = self.context.catalogue.taxonomy
        for mask, (line, around) in rows.masks.items():
            if mask == rows.state.mask:
                continue
            one = throttle_finding(
                mask,
                around,
                self.context.catalogue,
                entity=rows.state.entity,
                subject=rows.state.label,
                line=line,
            )
            benign = one.cause is None or taxonomy[one.cause].class_ is Class.BENIGN
            if single or not benign:
                yield one

    def _supported(self, mask: int, line: int) -> Finding:
        reasons, left = reasons_of(mask, self.context.catalogue)
        return Finding(
            kind="throttle",
            id="supported",
            severity=Severity.INFO,
            says=(
                f"This is the supported mask, 0x{mask:X}: the {len(reasons)} documented "
                "reasons that this GPU can report, 0x1 to 0x"
                f"{1 << max(mask.bit_length() - 1, 0):X}. It is not what is active now and "
                "says nothing about throttling."
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


def _reason_columns(catalogue: Catalogue) -> dict[str, str]:
    entries = catalogue.entries["throttle_reasons"].values()
    return {column: str(e["id"]) for e in entries for column in e.get("nvidia_smi", ())}
