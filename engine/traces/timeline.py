"""The knowledge's timeline entries: limits, sources and what people are told wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.catalogue.types import Catalogue
from engine.readers.base import errata_of
from engine.traces.figures import Limits


class Timeline:
    """What rules over figures take from the knowledge, so that a site can change it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._entries = catalogue.entries.get("timeline", {})

    def limit(self, entry: str, default: float, fact: str = "limit") -> float:
        """Return a number of an entry's ``facts``, in the unit that the entry has."""
        facts = self._entry(entry).get("facts")
        value = facts.get(fact) if isinstance(facts, Mapping) else None
        return float(value) if isinstance(value, int | float) else default

    def value(self, entry: str, name: str, default: float) -> float:
        """Return one of an entry's named ``values``, in the unit that the entry has."""
        for row in self._entry(entry).get("values", ()):
            if row.get("name") == name and isinstance(row.get("value"), int | float):
                return float(row["value"])
        return default

    def sources(self, entry: str) -> tuple[str, ...]:
        """Return the entry itself, and what it rests on."""
        found = self._entry(entry).get("source", ())
        return (f"timeline/{entry}", *(str(one) for one in found)) if found else ()

    def errata(self, entry: str) -> tuple[str, ...]:
        """Return what people are told wrongly about the observation."""
        return errata_of(self._entry(entry))

    @property
    def limits(self) -> Limits:
        """The lengths that the figures depend on."""
        return Limits(
            gap_ms=max(self.limit("gaps_between_kernels", 1.0), 0.0),
            small_us=max(self.limit("tiny_kernels", 50.0, "kernel_below_us"), 0.0),
        )

    def _entry(self, entry: str) -> Mapping[str, Any]:
        return self._entries.get(entry, {})
