"""What may stand in a rule file. The order of the fields here is the order in the files.

`SymptomFile` and `CauseFile` describe whole rules; `Disabling` is what an overlay writes to
switch a rule off. Durations are texts such as ``90s``, ``5m`` or ``1h``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from engine.catalogue.schema import Link, Name, Severity, Strict, SymptomScope, Text, Texts

DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(s|m|h)$"
REFERENCE_PATTERN = r"^(cause/)?[a-z][a-z0-9_]*$"

Reference = Annotated[str, Field(pattern=REFERENCE_PATTERN, max_length=70)]
Duration = Annotated[str, Field(pattern=DURATION_PATTERN)]
Version = Annotated[int, Field(ge=1)]
RuleStatus = Literal["experimental", "stable", "deprecated"]
Confidence = Literal["certain", "likely", "possible"]
Risk = Literal["none", "disturbs", "disrupts"]


_SHAPES = ({"from", "to"}, {"was", "now", "ago"}, {"stale", "ago"}, {"once"})


def _given(value: Any) -> Any:
    """Check the readings of one signal in a test.

    A number stays constant over the window, a list is spread over it, ``blank`` is samples that
    are no reading. Mappings are a ramp (from, to), a step change (was, now, ago), samples that
    ended some time ago (stale, ago), or a single sample (once).
    """
    if _is_number(value) or value == "blank":
        return value
    if isinstance(value, list) and value and all(_is_number(v) or v == "blank" for v in value):
        return value
    if isinstance(value, dict) and set(value) in _SHAPES:
        ago = value.get("ago", "0s")
        numbers = [value[key] for key in value if key != "ago"]
        if all(map(_is_number, numbers)) and re.fullmatch(DURATION_PATTERN, str(ago)):
            return value
    raise PydanticCustomError(
        "given",
        "is no reading; write a number, a list of numbers, blank, {from: 1, to: 2}, "
        "{was: 1, now: 2, ago: 5m}, {stale: 1, ago: 10m} or {once: 1}",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Given = Annotated[Any, AfterValidator(_given)]


class Others(Strict):
    """Peers in a test: how many, what all of them read, and one odd one."""

    count: Annotated[int, Field(ge=1, le=63)]
    given: dict[Name, Given]
    odd: dict[Name, Given] | None = None


class SymptomTest(Strict):
    """A test of a symptom: readings, and whether it is true, false or unknown."""

    name: Text
    model: Text | None = None
    given: dict[Name, Given]
    siblings: Others | None = None
    rail: Others | None = None
    # YAML's own true and false, or the words in quotes.
    expect: Literal[True, False, "true", "false", "unknown"]


class CauseTest(Strict):
    """A test of a cause: readings, and whether it fires, stays quiet or cannot tell."""

    name: Text
    model: Text | None = None
    given: dict[Name, Given]
    siblings: Others | None = None
    rail: Others | None = None
    expect: Literal["fires", "quiet", "unknown"]
    confidence: Confidence | None = None


class SymptomFile(Strict):
    """A symptom: a condition over signals."""

    id: Name
    title: Text
    version: Version
    status: RuleStatus
    scope: SymptomScope
    when: Text
    for_: Duration | None = Field(default=None, alias="for")
    threshold: Text
    basis: list[Link] = Field(default_factory=list)
    references: Texts = Field(default_factory=list)
    false_positives: Texts = Field(default_factory=list)
    tests: list[SymptomTest] = Field(default_factory=list)


class PatternEntry(Strict):
    """One way in which a cause shows; with ``note`` alone it is a note and no diagnosis."""

    all_: list[Reference] = Field(default_factory=list, alias="all")
    any_: list[Reference] = Field(default_factory=list, alias="any")
    none: list[Reference] = Field(default_factory=list)
    unless: list[Reference] = Field(default_factory=list)
    confidence: Confidence
    note: bool = False

    @model_validator(mode="after")
    def _needs_something_true(self) -> PatternEntry:
        if not self.all_ and not self.any_:
            raise PydanticCustomError(
                "pattern", "a pattern needs at least one symptom in 'all' or 'any'"
            )
        return self


class Next(Strict):
    """A step to take next."""

    do: Text
    command: Text | None = None
    risk: Risk = "none"
    capture: Text | None = None
    vendor: Literal["nvidia", "amd"] | None = None


class AlternativeEntry(Strict):
    """A competing cause and what tells it apart."""

    cause: Name
    told_apart_by: Text
    command: Text | None = None


class CauseFile(Strict):
    """A cause: patterns of symptoms. Its class and scope come from the taxonomy."""

    id: Name
    title: Text
    version: Version
    status: RuleStatus
    severity: Severity
    patterns: Annotated[list[PatternEntry], Field(min_length=1)]
    explains: list[Name] = Field(default_factory=list)
    effects: list[Name] = Field(default_factory=list)
    against: list[Name] = Field(default_factory=list)
    says: Text
    next_: list[Next] = Field(default_factory=list, alias="next")
    alternatives: list[AlternativeEntry] = Field(default_factory=list)
    references: Texts = Field(default_factory=list)
    false_positives: Texts = Field(default_factory=list)
    tests: list[CauseTest] = Field(default_factory=list)


class Disabling(Strict):
    """The whole content of an overlay file that switches a rule off."""

    id: Name
    disabled: Literal[True]
