"""What may stand in the tables by which profiles of kernels and of CPU stacks are judged."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from engine.catalogue.schema import Closed, Name, Severity, Text, Texts

CLAUSE = re.compile(
    r"^(?P<left>[a-z][a-z0-9_]*) (?P<op>[<>]=?) "
    r"(?P<right>-?\d+(?:\.\d+)?|(?:(?P<factor>\d+(?:\.\d+)?) \* )?(?P<name>[a-z][a-z0-9_]*))$"
)
"""``sm_throughput < 60`` or ``occupancy < 0.7 * theoretical_occupancy``."""


class KernelReadingEntry(Closed):
    """A quantity of a kernel and the names under which profilers print it, best first.

    ``names`` are metric names; ``labels`` are those of ncu's sections, taken only with ``unit``.
    """

    id: Name
    unit: Literal["percent", "ratio", "us", "GHz", "GB/s", "count"]
    names: Texts = Field(default_factory=list)
    labels: Texts = Field(default_factory=list)


class KernelVerdictEntry(Closed):
    """What readings of a kernel show if all of ``when`` hold and none of ``unless``.

    ``group`` bound: the first that fits says what limits the kernel; observation: each that fits is
    said besides. Readings may stand in ``says`` and ``action`` as ``{id}``.
    """

    id: Name
    group: Literal["bound", "observation"]
    when: Annotated[Texts, Field(min_length=1)]
    unless: Texts = Field(default_factory=list)
    severity: Severity
    cause: Name | None = None
    says: Text
    action: Text

    @field_validator("when", "unless")
    @classmethod
    def _clauses(cls, clauses: list[str]) -> list[str]:
        for clause in clauses:
            if not CLAUSE.match(clause):
                raise PydanticCustomError(
                    "clause",
                    "'{clause}' is no comparison; write e.g. sm_throughput < 60",
                    {"clause": clause},
                )
        return clauses


class StackFrameEntry(Closed):
    """What a process does if a frame of its stack is one of ``match``.

    ``match``: text that stands in ``function (file``, as py-spy writes frames. ``role``: collective
    (waits for other ranks), gpu (waits for its GPU), wait (waits for something else), work, or
    usual (what waits say when nothing closer is on the stack). ``share_percent``: from so much of
    a recording it is a finding.
    """

    id: Name
    match: Annotated[Texts, Field(min_length=1)]
    role: Literal["collective", "gpu", "wait", "work", "usual"]
    severity: Severity
    cause: Name | None = None
    share_percent: Annotated[float, Field(gt=0, le=100)] = 10.0
    says: Text
    action: Text
