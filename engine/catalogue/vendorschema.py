"""What may stand in the vendor's tables: clock event bits, DCGM fields, Xids, SXids."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from engine.catalogue.schema import Class, Closed, Name, Severity, Text, Texts

MACRO_PATTERN = r"^DCGM_F[IE]_[A-Z0-9_]+$"

FieldKind = Literal["gauge", "counter", "static", "mask", "code", "enum", "event", "text", "binary"]
XidClass = Literal[
    "user-app-first",
    "consequence",
    "hardware",
    "driver-or-firmware",
    "pcie-bus",
    "nvlink-or-c2c",
    "system-or-power",
    "informational",
    "legacy",
]
XidCause = Literal["hw", "driver", "app", "memory-corruption", "bus", "thermal", "fb", "system"]
XidNumber = Annotated[int, Field(ge=1, le=9999)]
SxidNumber = Annotated[int, Field(ge=10000, le=99999)]


class ThrottleReason(Closed):
    """One bit of the clock event ("throttle") mask."""

    id: Name
    bit: Annotated[int, Field(gt=0, lt=2**63)]
    hex: Text
    nvml: Texts
    dcgm: Texts
    nvidia_smi: Texts = Field(default_factory=list)
    exporter_label: Text | None = None
    meaning: Text
    class_: Class = Field(alias="class")
    severity: Severity
    bad: bool = False
    action: Text

    @model_validator(mode="after")
    def _one_bit(self) -> ThrottleReason:
        if self.bit & (self.bit - 1):
            raise PydanticCustomError("bit", "bit must be a power of two")
        if self.hex != hex(self.bit):
            raise PydanticCustomError("hex", "hex does not say the same as bit")
        return self


class DcgmFieldEntry(Closed):
    """A DCGM field; an exporter's metric name is one of ``names``.

    ``short`` is the head of its column in ``dcgmi dmon``.
    """

    id: Annotated[int, Field(ge=0, le=65535)]
    name: Annotated[str, Field(pattern=MACRO_PATTERN)]
    short: Text | None = None
    names: Annotated[Texts, Field(min_length=1)]
    meaning: Text
    unit: Text | None = None
    kind: FieldKind
    scale: float | None = None
    since: Text
    type: Text | None = None
    entity: Text | None = None
    default_exported: bool
    csv: Text | None = None
    formerly: Text | None = None

    @model_validator(mode="after")
    def _name_among_names(self) -> DcgmFieldEntry:
        if self.name not in self.names:
            raise PydanticCustomError("names", "names must hold name as well")
        return self


class XidEntry(Closed):
    """An Xid: what the driver means by the number, and what to do.

    ``resolution`` and ``investigate`` are names of NVIDIA's buckets (``xid_buckets``); ``taxonomy``
    is the cause that the Xid is evidence of.
    """

    id: XidNumber
    symbol: Text
    symbol_source: Literal["header", "catalogue", "none"]
    alias: Texts = Field(default_factory=list)
    meaning: Text
    severity: Severity
    severity_note: Text | None = None
    class_: XidClass = Field(alias="class")
    cause: list[XidCause] = Field(default_factory=list)
    cause_basis: Text
    resolution: Text | None
    investigate: Text | None
    action: Text
    taxonomy: Name | None
    architectures: Texts = Field(default_factory=list)
    architectures_note: Text | None = None
    legacy: bool = False
    xid154_since: Text | None = None
    preceded_by: list[XidNumber] = Field(default_factory=list)
    seen_with: list[XidNumber] = Field(default_factory=list)
    seen_with_sxid: list[SxidNumber] = Field(default_factory=list)
    checkers: dict[str, Text] = Field(default_factory=dict)
    field_counts: dict[str, int] = Field(default_factory=dict)
    field_seen: Text | None = None
    note: Text | None = None


class SxidEntry(Closed):
    """An NVSwitch error (SXid). ``printed`` is the severity word in the log, by switch driver."""

    id: SxidNumber
    symbol: Text
    unit: Text
    meaning: Text
    severity: Severity
    resolution: Text | None
    action: Text
    taxonomy: Name | None
    fm_class: Literal["fatal", "always_fatal", "nonfatal", "notable", "not in guide"]
    printed: dict[str, Text] | None = None
    text_basis: Literal["curated", "from symbol"]
    conflict: Text | None = None
    note: Text | None = None
