"""What every check has: a name, a severity, and one thing that it looks at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from engine.catalogue.compiling import RuleFile
from engine.catalogue.types import Catalogue, CauseRule, Place, SymptomRule
from engine.errors import Problem


@dataclass(frozen=True, slots=True, order=True)
class LintProblem(Problem):
    """A problem, with the name of the check that found it and ``error`` or ``warning``."""

    check: str = ""
    severity: str = "error"

    @classmethod
    def of(cls, problem: Problem, check: str, severity: str) -> LintProblem:
        """Return a problem with the check that found it."""
        p = problem
        return cls(p.file, p.line, p.column, p.message, p.hint, check, severity)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked.

    Attributes:
        catalogue: all that was loaded.
        files: the rule files as written; none for a catalogue alone.
        places: where knowledge entries stand, by ``CONCERN/ID``; none for a catalogue alone.
    """

    catalogue: Catalogue
    files: tuple[RuleFile, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)

    def entry_problem(self, key: str, message: str, hint: str) -> Problem:
        """Return a problem at a knowledge entry (``CONCERN/ID``)."""
        return at(self.places.get(key, Place(self.catalogue.origins[key], 1, 1)), message, hint)

    @property
    def rules(self) -> list[SymptomRule | CauseRule]:
        """All rules, symptoms first."""
        return [*self.catalogue.symptoms.values(), *self.catalogue.causes.values()]


class Check(ABC):
    """One thing that is checked. The docstring of a check says why it matters."""

    name: ClassVar[str]
    severity: ClassVar[str] = "error"

    @abstractmethod
    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield what is wrong."""


def at(place: Place | None, message: str, hint: str = "") -> Problem:
    """Return a problem at a place."""
    where = place or Place("", 1, 1)
    return Problem(where.file, where.line, where.column, message, hint)
