"""What may stand in a knowledge entry: pydantic models of the common keys and of our own concerns.

Strict everywhere: text is text, numbers are numbers. Concerns without a model are checked as
`Entry`, whose own keys are free. The models of the vendor's tables are in
`engine.catalogue.vendorschema`, those of rules in `engine.catalogue.ruleschema`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
LINK_PATTERN = r"^[a-z][a-z0-9_]*/\S.*$"
METRIC_PATTERN = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"

Text = Annotated[str, Field(min_length=1)]
# Ids become facts of durable_rules: 63 characters keep them short there.
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=63)]
Texts = list[Text]
Severity = Literal["critical", "high", "medium", "low", "info"]
Class = Literal["fault", "limit", "workload", "victim", "benign", "blind"]
Status = Literal["confirmed", "single", "disputed"]
SignalKind = Literal["gauge", "counter", "static", "mask", "code", "enum"]
Scope = Literal["gpu", "node", "rack", "fabric", "filesystem", "job", "service", "fleet"]
# What a symptom is judged for: the entities that signals have.
SymptomScope = Literal["gpu", "node", "port", "filesystem", "pod", "rank", "service"]
Link = Annotated[str, Field(pattern=LINK_PATTERN)]


class Strict(BaseModel):
    """Base of all closed models: no conversion, no unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", populate_by_name=False)


class Erratum(Strict):
    """A claim that people meet, and what holds instead."""

    claim: Text
    right: Text
    why: Text
    source: Text | Texts | None = None


class Entry(BaseModel):
    """What every knowledge entry has. Keys of its own are allowed here."""

    model_config = ConfigDict(strict=True, extra="allow")

    id: int | Text
    title: Text
    source: Annotated[Texts, Field(min_length=1)]
    status: Status
    errata: list[Erratum] = Field(default_factory=list)
    see: list[Link] = Field(default_factory=list)
    asked: Texts = Field(default_factory=list)


class Closed(Entry):
    """An entry of a concern that the engine reads: no keys but those named."""

    model_config = ConfigDict(strict=True, extra="forbid")


class TaxonomyEntry(Strict):
    """A cause: its permanent id, class, scope and meaning."""

    id: Name
    class_: Class = Field(alias="class")
    scope: Scope
    title: Text
    is_: Text = Field(alias="is")
    source: Texts = Field(default_factory=list)
    status: Status = "confirmed"
    errata: list[Erratum] = Field(default_factory=list)
    see: list[Link] = Field(default_factory=list)
    asked: Texts = Field(default_factory=list)


class SpellingEntry(Strict):
    """One metric name of a signal; canonical value = reading * scale.

    ``counts`` names a label that lists names between commas: how many is the reading.
    """

    name: Annotated[str, Field(pattern=METRIC_PATTERN)]
    unit: Text
    scale: float = 1.0
    match: dict[str, Text] = Field(default_factory=dict)
    exporter: Text = "dcgm-exporter"
    vendor: Text = "nvidia"
    since: Text | None = None
    counts: Text | None = None

    @field_validator("scale")
    @classmethod
    def _scale(cls, value: float) -> float:
        if value == 0:
            raise PydanticCustomError("zero_scale", "a scale of 0 would turn every reading into 0")
        return value


class SignalEntry(Closed):
    """A quantity under the product's own name.

    ``combine``: of several series of one entity the largest counts, or their sum.
    """

    id: Name
    unit: Text
    kind: SignalKind
    scope: Literal["gpu", "node", "port", "filesystem", "pod", "rank", "service"]
    combine: Literal["max", "sum"] = "max"
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    core: bool = False
    bits: Name | None = None
    field: int | None = None
    default_exported: bool = False
    export: Text | None = None
    meaning: Text | None = None
    note: Text | None = None
    spellings: list[SpellingEntry] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits(self) -> SignalEntry:
        if self.range and self.range[0] > self.range[1]:
            raise PydanticCustomError("range", "range must be [lowest, highest]")
        if (self.kind == "mask") != (self.bits is not None):
            raise PydanticCustomError("bits", "'bits' goes with kind mask, and only with it")
        return self


class CudaErrorEntry(Closed):
    """An error of the CUDA or HIP runtime: its number, names and texts, and what to do.

    ``messages`` are in lower case; ``taxonomy`` is the cause that the error is evidence of;
    ``amd_meaning`` and ``amd_action`` hold where HIP reports it and those for CUDA do not fit.
    """

    id: Name
    number: int | None = None
    names: Texts
    messages: Texts
    severity: Severity
    taxonomy: Name | None
    meaning: Text
    action: Text
    amd_meaning: Text | None = None
    amd_action: Text | None = None


class ServiceReadingEntry(Closed):
    """A quantity of an LLM server and the metric names that carry it, by server, best first.

    A name may hold one label condition in braces; names that differ only in it add up, and all
    names do where ``add`` is set. ``fold`` puts engines together: counts add up, ratios never do.
    ``scale`` holds the factor to ``unit`` for names in another one.
    """

    id: Name
    unit: Text
    kind: Literal["gauge", "counter", "histogram"]
    fold: Literal["sum", "mean"]
    meaning: Text
    names: dict[Name, Texts]
    add: bool = False
    scale: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)


class GpuModelEntry(Closed):
    """A GPU product and its limits; the numbers in ``attrs`` carry their unit in the key."""

    id: Name
    match: Texts
    pattern: Text
    vendor: Literal["nvidia", "amd"]
    architecture: Text
    attrs: dict[Name, float]
    note: Text | None = None

    @field_validator("pattern")
    @classmethod
    def _pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise PydanticCustomError(
                "pattern", "is no regular expression: {why}", {"why": str(error)}
            ) from error
        # Prometheus matches with RE2, which has neither look-around nor back-references.
        if re.search(r"\(\?[=!<]|\\[1-9]|\(\?P=", value):
            raise PydanticCustomError(
                "pattern", "uses look-around or back-references, which RE2 lacks"
            )
        return value

    @model_validator(mode="after")
    def _matches(self) -> GpuModelEntry:
        for name in self.match:
            if not re.fullmatch(self.pattern, name):
                raise PydanticCustomError(
                    "pattern", "pattern does not match its own name {name}", {"name": repr(name)}
                )
        return self
