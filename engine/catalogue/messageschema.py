"""What may stand in tables of log messages and of completion codes, which readers look up."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from engine.catalogue.schema import Closed, Name, Severity, Text, Texts

_FIELD = re.compile(r"\{(\w+)\}")

Role = Literal["root", "symptom", "setup", "effect", "note"]


class MessageEntry(Closed):
    """A message of a library: the text that it is found by, what it means and what to do.

    ``match``: one of these stands in the message, and all of ``also``; ``place``: one of these
    stands in the name of the source file that printed it. Named groups of ``pattern`` are decoded
    into numbers, those in ``texts`` as they are; they may stand in ``says`` and ``action`` as
    ``{name}``. ``strict``: a line that it does not fit is not this message. ``per``: one finding
    for each value of this group.
    """

    id: Name
    match: Annotated[Texts, Field(min_length=1)]
    also: Texts = Field(default_factory=list)
    place: Texts = Field(default_factory=list)
    pattern: Text | None = None
    strict: bool = False
    texts: list[Name] = Field(default_factory=list)
    per: Name | None = None
    role: Role
    severity: Severity
    cause: Name | None = None
    data: dict[Name, int | bool | str] = Field(default_factory=dict)
    says: Text
    action: Text

    @model_validator(mode="after")
    def _groups(self) -> MessageEntry:
        groups: set[str] = set()
        if self.pattern is not None:
            try:
                groups = set(re.compile(self.pattern).groupindex)
            except re.error as error:
                raise PydanticCustomError(
                    "pattern", "is no regular expression: {why}", {"why": str(error)}
                ) from error
        used = {*_FIELD.findall(self.says + self.action), *self.texts}
        used |= {self.per} if self.per else set()
        if missing := sorted(used - groups):
            raise PydanticCustomError(
                "groups", "'pattern' has no group {names}", {"names": ", ".join(missing)}
            )
        return self


class VerbsStatusEntry(Closed):
    """A status of an RDMA work completion (``enum ibv_wc_status``).

    ``role`` effect: it follows from an earlier error. ``mlx5_vendor_errors``: what mlx5 NICs report
    as vendor error together with it.
    """

    id: Annotated[int, Field(ge=0, le=255)]
    symbol: Text
    meaning: Text
    role: Role
    severity: Severity
    cause: Name | None = None
    action: Text
    mlx5_vendor_errors: list[int] = Field(default_factory=list)
