"""What may stand in entries that people look up: tools, commands, flags, metrics, advice.

One shape for all such concerns, so that retrieval, answers, the reference pages and the linter
treat them alike. A key that a concern needs for itself goes into ``facts``, its unit in its name.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from engine.catalogue.schema import METRIC_PATTERN, Closed, Name, Severity, Strict, Text, Texts

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
DURATION = r"^[0-9]+(s|m|h|d)$"
# How the origin of a number begins that is ours, and a site's to change.
SITE_DEFAULT = "site default"
# Limits compare a GPU with its maximum or its siblings: a larger ratio is a percentage.
_LARGEST_RATIO = 2.0

Kind = Literal[
    "advice",
    "alert",
    "checklist",
    "command",
    "comparison",
    "equivalent",
    "flag",
    "flow",
    "formula",
    "metric",
    "observation",
    "pattern",
    "query",
    "question",
    "reference",
    "report",
    "symptom",
    "threshold",
    "tool",
    "variable",
]
Scalar = str | int | float | bool
Risk = Literal["none", "disturbs", "disrupts"]


class Command(Strict):
    """A command line: ``argv`` is what runs, ``show`` what a person pastes where they differ.

    Placeholders (``{gpu}``) are filled from the target of a question.
    """

    argv: Annotated[Texts, Field(min_length=1)]
    env: dict[Text, Text] = Field(default_factory=dict)
    show: Text | None = None
    does: Text
    risk: Risk = "none"
    privilege: Text | None = None
    overhead: Text | None = None
    versions: Text | None = None

    @model_validator(mode="after")
    def _same_program(self) -> Command:
        program = self.argv[0].rpartition("/")[2]
        if self.show and program not in self.show:
            raise PydanticCustomError("show", "'show' does not run the program of 'argv'")
        return self


class Flag(Strict):
    """An option, argument or setting of a tool, and the versions in which it is valid."""

    flag: Text
    does: Text
    default: Text | None = None
    since: Text | None = None
    until: Text | None = None
    replaced_by: Text | None = None


class Reading(Strict):
    """A metric to look at: its name as exported, its unit, and what is healthy and what is not."""

    name: Text
    field: int | None = None
    unit: Text
    healthy: Text | None = None
    problem: Text | None = None


class Value(Strict):
    """A number, or a word, that the entry states."""

    name: Text
    value: Scalar
    unit: Text | None = None
    note: Text | None = None


class Query(Strict):
    """A PromQL expression, what it shows, and the metrics that have to be exported for it."""

    promql: Text
    shows: Text
    unit: Text | None = None
    needs: Text | None = None


class Snippet(Strict):
    """A piece of code or configuration."""

    language: Text
    text: Text
    does: Text


class LookupEntry(Closed):
    """An entry that people ask for in words.

    ``names`` are exact names that it goes by (what ``decode`` finds), ``asked`` are questions and
    symptoms in the words of users, which retrieval searches besides title and text.
    """

    id: Name
    kind: Kind
    text: Text
    vendor: Literal["nvidia", "amd", "intel", "any"] = "any"
    versions: Text | None = None
    names: Texts = Field(default_factory=list)
    tools: Texts = Field(default_factory=list)
    commands: list[Command] = Field(default_factory=list)
    flags: list[Flag] = Field(default_factory=list)
    metrics: list[Reading] = Field(default_factory=list)
    values: list[Value] = Field(default_factory=list)
    queries: list[Query] = Field(default_factory=list)
    code: list[Snippet] = Field(default_factory=list)
    steps: Texts = Field(default_factory=list)
    caution: Text | None = None
    instead: Text | None = None
    facts: dict[Name, Scalar | list[Scalar] | dict[str, Scalar]] = Field(default_factory=dict)


class AlertEntry(LookupEntry):
    """An alert rule for Prometheus. ``expr`` covers old and new metric names by ``or``."""

    expr: Text
    for_: Annotated[str, Field(pattern=DURATION)] = Field(alias="for")
    severity: Severity
    summary: Text
    rule: Name | None = None


class WithdrawnEntry(Closed):
    """A way to call a tool that does not work, or no longer: no command may use it."""

    id: Name
    tool: Name
    pattern: Text
    text: Text
    instead: Text
    versions: Text | None = None

    @model_validator(mode="after")
    def _compiles(self) -> WithdrawnEntry:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise PydanticCustomError(
                "pattern", "is no regular expression: {why}", {"why": str(error)}
            ) from error
        return self


class ThresholdEntry(LookupEntry):
    """A limit that rules compare with: ``limit.ID`` in a condition is its ``value``.

    ``source`` begins with "site default: ..." exactly where no vendor gives the number
    (``site_default``): its first line stands in answers. ``used_by`` names what else than a rule
    compares with it. Above zero, so that no rule can come to divide by zero.
    """

    value: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    unit: Text
    metric: Annotated[str, Field(pattern=METRIC_PATTERN)] | None = None
    site_default: bool = False
    used_by: Texts = Field(default_factory=list)

    @model_validator(mode="after")
    def _plausible(self) -> ThresholdEntry:
        if self.unit == "ratio" and self.value > _LARGEST_RATIO:
            raise PydanticCustomError(
                "ratio", "a ratio of {value} is no limit; write 0.7 for 70 %", {"value": self.value}
            )
        if self.site_default != self.source[0].startswith(SITE_DEFAULT):
            raise PydanticCustomError(
                "site_default",
                "'site_default: true' goes with a first source that begins with '{words}', "
                "and only with it",
                {"words": f"{SITE_DEFAULT}: "},
            )
        return self


class ConcernEntry(Closed):
    """What a concern is: the title and introduction of its reference page.

    ``cues`` are phrases that ask for this sort of entry ("field id of ..."): if all words of one
    are in a question, retrieval favours the concern.
    """

    id: Name
    text: Text
    group: Text
    cues: Texts = Field(default_factory=list)


class VocabularyEntry(Strict):
    """Words and phrases that mean the same to people who ask; a subject is what they ask about."""

    id: Name
    subject: bool = False
    words: Annotated[Texts, Field(min_length=1)]
