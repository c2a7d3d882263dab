"""Checks of knowledge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.catalogue.lint_base import Check, Subject
from engine.catalogue.types import Signal, Spelling
from engine.errors import Problem


class SpellingClash(Check):
    """A series must mean one signal only."""

    name = "spelling-clash"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield metric names that one series could read as two signals."""
        for name, pairs in subject.catalogue.spellings.items():
            for position, (signal, spelling) in enumerate(pairs):
                for other, other_spelling in pairs[:position]:
                    if _together(signal, other) and _overlap(spelling, other_spelling):
                        message = f"metric '{name}' is a spelling of '{other.id}' and '{signal.id}'"
                        hint = "tell them apart with 'match', or remove one"
                        yield subject.entry_problem(f"signals/{signal.id}", message, hint)


def _together(one: Signal, other: Signal) -> bool:
    """Return whether two signals are read for the same entities.

    A node's sum over its ports may be read from the series that each port is judged by.
    """
    return one.scope == other.scope or "gpu" in {one.scope, other.scope}


def _overlap(one: Spelling, other: Spelling) -> bool:
    """Return whether a series could be both. One label more is no clash: the closer match wins."""
    if one.match.items() < other.match.items() or other.match.items() < one.match.items():
        return False
    shared = one.match.keys() & other.match.keys()
    return one.vendor == other.vendor and all(one.match[k] == other.match[k] for k in shared)


class ExportLine(Check):
    """An answer "not exported" comes with the line that would export it."""

    name = "export-line"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield signals that are read from exporters and do not say how to export them."""
        for signal in subject.catalogue.signals.values():
            if signal.spellings and not signal.export:
                message = f"signal '{signal.id}' does not say how to export it"
                yield subject.entry_problem(f"signals/{signal.id}", message, "add 'export:'")


class FieldNames(Check):
    """A DCGM spelling is a macro of the field that the signal names."""

    name = "field-names"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield DCGM spellings that no field has."""
        fields = subject.catalogue.entries.get("dcgm_fields", {})
        macros = {name for entry in fields.values() for name in (entry["name"], *entry["names"])}
        for signal in subject.catalogue.signals.values():
            for spelling in signal.spellings:
                if fields and spelling.name.startswith("DCGM_FI_") and spelling.name not in macros:
                    message = f"'{spelling.name}' is no macro of any DCGM field"
                    hint = "correct it, or add it to the names of its field"
                    yield subject.entry_problem(f"signals/{signal.id}", message, hint)


class DefaultExported(Check):
    """Whether a stock exporter has a field is said once, and the same everywhere."""

    name = "default-exported"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield signals that disagree with their DCGM field."""
        fields = subject.catalogue.entries.get("dcgm_fields", {})
        for signal in subject.catalogue.signals.values():
            entry = fields.get(str(signal.field))
            if (
                entry
                and _named(entry, signal)
                and entry.get("default_exported", False) != (signal.default_exported)
            ):
                message = f"signal '{signal.id}' and DCGM field {signal.field} disagree"
                hint = "set default_exported alike in both"
                yield subject.entry_problem(f"signals/{signal.id}", message, hint)


def _named(entry: Mapping[str, Any], signal: Signal) -> bool:
    names = {entry["name"], *entry["names"]}
    return any(spelling.name in names for spelling in signal.spellings)


class BitClash(Check):
    """Each bit of a mask has one meaning."""

    name = "bit-clash"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield bits that are defined twice."""
        for table, bits in subject.catalogue.bits.items():
            yield from _twice(subject, table, ((bit, name) for name, bit in bits.items()))


class ModelClash(Check):
    """A model name means one product, or limits would depend on the order of entries."""

    name = "model-clash"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield model names that two products claim."""
        names = ((name, model.id) for model in subject.catalogue.models for name in model.match)
        yield from _twice(subject, "gpu_models", names)


def _twice(subject: Subject, concern: str, pairs: Iterable[tuple[Any, str]]) -> Iterator[Problem]:
    first: dict[Any, str] = {}
    for value, key in pairs:
        other = first.setdefault(value, key)
        if other != key:
            message = f"'{key}' and '{other}' both claim {value!r}"
            yield subject.entry_problem(f"{concern}/{key}", message, "take it out of one")


KNOWLEDGE_CHECKS: tuple[type[Check], ...] = (
    SpellingClash,
    ExportLine,
    FieldNames,
    DefaultExported,
    BitClash,
    ModelClash,
)
