"""The reader of ``amd-smi`` and ``rocm-smi`` text: a line is offered to the form that is open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

from engine.readers.amd_smi.cper import Cper, CperForm
from engine.readers.amd_smi.judge import judge
from engine.readers.amd_smi.listing import ListingForm
from engine.readers.amd_smi.matrices import Matrix, MatrixForm, XgmiForm
from engine.readers.amd_smi.rocm import RocmLinesForm, RocmTableForm
from engine.readers.amd_smi.state import AmdGpu, Groups, LowPower, Version
from engine.readers.amd_smi.table_csv import CsvForm
from engine.readers.amd_smi.tables import BoxForm, MonitorForm
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing

Record = AmdGpu | Matrix | Version | LowPower | Groups | Cper
_LOW_POWER: Final = "WARNING: AMD GPU device(s) is/are in a low-power state"
_VERSION: Final = re.compile(
    r"AMDSMI Tool: (?P<tool>[\w.+-]{1,40}) \| AMDSMI Library version: (?P<library>[\w.+-]{1,40})"
    r"(?: \| ROCm version: (?P<rocm>[\w.+/-]{1,24}))?"
    r"(?: \| amdgpu version: (?P<driver>[\w.+/-]{1,40}))?"
)
_GROUPS: Final = re.compile(
    r"User is missing the following required groups: (?P<names>\w{1,32}(?:, \w{1,32}){0,7})"
)
_MAX_RECORDS: Final = 16_384


class Form(Protocol):
    """One form of output: knows its first line, and takes what follows."""

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line starts the form; it has been taken then."""

    def take(self, number: int, text: str) -> bool:
        """Take a further line; return whether it belongs to the form."""


class AmdSmiReader(Listing[Record]):
    """Reads all text forms of both tools, of one machine or of several mixed."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"AMDSMI Tool: ",
        b"is/are in a low-power state",
        b"| AMD-SMI ",
        b"GPU  HIP-ID  OAM-ID",
        b"ROCm System Management Interface",
        b" Concise Info ",
        b"LINK TYPE TABLE:",
        b"LINK METRIC TABLE:",
        b"XGMI LINK STATUS:",
        b"User is missing the following required groups",
        b"XGMI LINK PORT STATUS:",
        b"ACCESS TABLE:",
        b"WEIGHT TABLE:",
        b"HOPS TABLE:",
        b" between two GPUs ",
    )
    # A device of a listing; a heading of `monitor`; rows of `rocm-smi`; headings of CSV.
    pattern: ClassVar[bytes] = (
        rb"(?m)^[ \t]{0,12}(?:[A-Za-z][A-Za-z0-9_.-]{0,62}: {0,3})?(?:"
        rb"GPU: [0-9]{1,4}[ \t\r]*$|timestamp +gpu_id +severity"
        rb"|(?:TIMESTAMP +)?GPU +(?:XCP +)?(?:POWER|PWR_CAP|HOTSPOT_TEMP|GPU_TEMP|GPU_T|MEM_TEMP"
        rb"|GFX_UTIL|GFX%|MEM_UTIL|ENC_UTIL|DEC_UTIL|PVIOL|SINGLE_ECC|CORRECTABLE_ECC|VRAM_USED"
        rb"|PCIE_REPLAY)[ \t\r]"
        rb"|GPU\[[0-9]{1,4}\](?: XCP\[[0-9]{1,2}\])?[ \t]*:"
        rb"|(?:GPU +Temp|Device +Node +IDs)[ (]"
        rb"|\| [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9] +AMD "
        rb"|(?:timestamp,)?gpu,[a-z]|device,[A-Z])"
    )
    PATIENCE: ClassVar[int] = 3

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Record] | None = None
    ) -> None:
        super().__init__(context, host, Kept(_MAX_RECORDS) if kept is None else kept)
        self._forms: tuple[Form, ...] = (
            ListingForm(self._keep, host),
            MonitorForm(self._row, host),
            BoxForm(self._keep, host),
            RocmLinesForm(self._keep, host),
            MatrixForm(self._keep, host),
            XgmiForm(self._keep, host),
            CperForm(self._keep, host),
            RocmTableForm(self._row, host),
            CsvForm(self._row, host),
        )
        self._form: Form | None = None
        self._rows: dict[int | None, AmdGpu] = {}

    def take(self, number: int, text: str) -> bool:
        """Offer a line to the open form, then to all."""
        version = _VERSION.search(text)
        if version is not None:
            self._keep(Version(number, self.host, version.groupdict()))
            return True
        if text.lstrip().startswith(_LOW_POWER):
            self._keep(LowPower(number, self.host))
            return True
        groups = _GROUPS.search(text)
        if groups is not None:
            self._keep(Groups(number, self.host, groups["names"]))
            return True
        if self.inside and self._form is not None and self._form.take(number, text):
            return True
        for form in self._forms:
            if form.starts(number, text):
                self._form, self.inside = form, True
                return True
        return False

    def end(self) -> None:
        """Close the form."""
        self._form = None

    def judge(self, records: Sequence[Record]) -> Result:
        """Say what the GPUs show."""
        return judge(records, self.context)

    def _row(self, gpu: AmdGpu) -> None:
        """Keep a row of a table; a later one of the same GPU replaces its values."""
        before = self._rows.get(gpu.index)
        if before is not None:
            before.merge(gpu)
            return
        self._rows[gpu.index] = gpu
        self._keep(gpu)

    def _keep(self, record: Record) -> None:
        if isinstance(record, AmdGpu | Matrix | Cper) and record.host is None:
            record.host = self.host
        self.kept.add(record)
