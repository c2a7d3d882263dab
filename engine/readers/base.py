"""What a reader is: something that recognises lines of one kind and says what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from engine.catalogue.types import Catalogue
from engine.model import Diagnosis, Finding, Unknown, Why

Diagnose = Callable[[bytes], Sequence[Why]]
"""Judges exporter text: exposition bytes in, one answer for each entity out."""


@dataclass(frozen=True, slots=True)
class Context:
    """What readers may use: the knowledge, and the judge of readings if there is one."""

    catalogue: Catalogue
    diagnose: Diagnose | None = None


@dataclass(slots=True)
class Result:
    """What one reader found, root cause first.

    ``causes`` are taxonomy ids in order; ``kinds`` name what was recognised, also where there was
    nothing to find.
    """

    kinds: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)


def errata_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what people are told wrongly about an entry, each with what holds instead."""
    return tuple(f"{e['claim']} In fact: {e['right']}" for e in entry.get("errata", ()))


class Reader(Protocol):
    """Reads one kind of text, line by line.

    Attributes:
        triggers: byte strings of which at least one stands in every line that can start this
            kind; a cheap test that lets most of a log be skipped.
        open: True while the next line is wanted whatever it holds (inside a section).

    More are optional. ``pattern: ClassVar[bytes]`` is a regular expression (of those that both
    `re` and RE2 know) that such a line may match instead. ``together: ClassVar[bool]``: one reader
    is given the lines of all inputs, numbered on, because they belong together (ranks of a job).
    ``holds: ClassVar[bool]``, of one reader: while it is open it has the lines to itself; what it
    does not take in the end, the others get.
    A class with ``skims``, byte strings, is a `Skimmer` too, one with ``long`` an `Asked`.
    """

    triggers: ClassVar[tuple[bytes, ...]]
    open: bool

    def feed(self, number: int, text: str) -> bool:
        """Take one cleaned line (numbered from 1); return whether it belongs to this kind."""

    def finish(self) -> Result:
        """Return what all lines together show."""


MakesReader = Callable[[Context], Reader]
"""What stands in the tables of readers: a class, or a function that makes a reader."""


class Skimmer(Protocol):
    """A reader of logs whose usual lines are too many to be looked at one by one.

    Attributes:
        skims: byte strings of which one stands in every such line.
    """

    skims: ClassVar[tuple[bytes, ...]]

    def skim(self, number: int, block: bytes) -> int:
        """Look at a block of whole lines, before the lines with triggers in it are fed.

        Args:
            number: of the block's first line.
            block: raw bytes, some hundred KiB.

        Returns:
            How many lines, of those without a trigger, are of this kind.
        """


class Asked(Protocol):
    """A reader of what people write in a question, too.

    Attributes:
        long: set to True where a text is too long for one (`engine.readers.talk`): its sentences
            are documentation.
    """

    long: bool
