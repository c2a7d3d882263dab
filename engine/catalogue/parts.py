"""Validated knowledge and rules as plain data: what the index stores and `assemble` builds from.

Standard library only. Text keys throughout, so that data from YAML and data from the JSON index
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.catalogue.types import Place

Entry = dict[str, Any]
Mark = tuple[int, int]


@dataclass(slots=True)
class Knowledge:
    """Entries by concern and id, and where each stands.

    A place is [file, line, column]; ids are text here, also where the YAML has a number.
    """

    entries: dict[str, dict[str, Entry]] = field(default_factory=dict)
    places: dict[str, dict[str, Place]] = field(default_factory=dict)

    def put(self, concern: str, entry: Entry, place: Place) -> None:
        """Add an entry, or replace the one of the same id where it stands."""
        key = str(entry["id"])
        self.entries.setdefault(concern, {})[key] = entry
        self.places.setdefault(concern, {})[key] = place

    def to_json(self) -> dict[str, Any]:
        """Return the form kept in the index."""
        places = {
            concern: {key: [p.file, p.line, p.column] for key, p in found.items()}
            for concern, found in self.places.items()
        }
        return {"entries": self.entries, "places": places}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Knowledge:
        """Build from the form kept in the index."""
        places = {
            concern: {key: Place(*p) for key, p in found.items()}
            for concern, found in data["places"].items()
        }
        return cls(data["entries"], places)


@dataclass(slots=True)
class RuleSource:
    """One rule file: its data, and line and column of the parts that errors point at.

    ``marks`` maps paths joined by ``/`` (``when``, ``tests/0``, ``patterns/0/all/1``) to places.
    """

    file: str
    data: Entry
    marks: dict[str, Mark]

    def place(self, *path: str | int) -> Place:
        """Return where a part of the rule stands, or the nearest part around it."""
        steps = [str(step) for step in path]
        while steps and "/".join(steps) not in self.marks:
            steps.pop()
        return Place(self.file, *self.marks.get("/".join(steps), (1, 1)))


@dataclass(slots=True)
class Rules:
    """Symptom and cause files by id.

    ``disabled`` maps ``symptom/ID`` and ``rule/ID`` to the file that switches it off, ``thinned``
    a cause to what its patterns referred to and is switched off.
    """

    symptoms: dict[str, RuleSource] = field(default_factory=dict)
    causes: dict[str, RuleSource] = field(default_factory=dict)
    disabled: dict[str, str] = field(default_factory=dict)
    thinned: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form kept in the index."""
        return {
            kind: {key: [r.file, r.data, r.marks] for key, r in found.items()}
            for kind, found in (("symptoms", self.symptoms), ("causes", self.causes))
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Rules:
        """Build from the form kept in the index."""
        symptoms, causes = (
            {key: RuleSource(*parts) for key, parts in data[kind].items()}
            for kind in ("symptoms", "causes")
        )
        return cls(symptoms, causes)
