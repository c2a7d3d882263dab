"""Names of everything that people look up: metrics, variables, flags, tools, reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.catalogue.nearest import fold
from engine.catalogue.types import Catalogue
from engine.decode.entries import Entry, errata_of, sources_of
from engine.model import Candidate, Item

# What Prometheus adds to the name of a metric: parts of a histogram, and OpenMetrics' counters.
_SUFFIXES = ("_bucket", "_sum", "_count", "_total")
_VARIABLES = "nccl_variables"
# Entries that tell how to use what has the name answer only where nothing defines it.
_MENTIONING = frozenset(
    ("advice", "alert", "checklist", "flow", "observation", "query", "question", "symptom")
)
# What a name most likely means, if it means several things.
_FIRST = ("nccl_variable", "metric", "report", "flag", "tool", "command", "variable")
_TOLD = ("versions", "vendor", "caution", "instead", "facts", "see", "status")


def by_lookup_name(text: str, catalogue: Catalogue, kind: str | None = None) -> list[Candidate]:
    """Return every lookup entry that goes by a name, its own kind of candidate each."""
    wanted = fold(text)
    found = _called(wanted, catalogue, kind)
    if not found and (base := _base(wanted)):
        forms = (base, *(f"{base}{suffix}" for suffix in _SUFFIXES))
        found = [one for form in forms for one in _called(form, catalogue, kind)]
        found = [one for one in found if one.kind == "metric"]
    found.sort(key=lambda one: _FIRST.index(one.kind) if one.kind in _FIRST else len(_FIRST))
    return [one for one in found if is_defining(one)] or found


def is_defining(candidate: Candidate) -> bool:
    """Return whether an entry says what the name is, not how to use what has it."""
    return candidate.kind not in _MENTIONING


def lookup_names(catalogue: Catalogue, kind: str | None) -> Iterator[str]:
    """Yield every name of a lookup entry of a kind, or of any."""
    for entries in catalogue.lookup_names.values():
        for concern, name, entry in entries:
            if kind in {None, kind_of(concern, entry)} and name != entry["title"]:
                yield name


def _called(name: str, catalogue: Catalogue, kind: str | None) -> list[Candidate]:
    return [
        _candidate(concern, entry, kind_of(concern, entry), written)
        for concern, written, entry in catalogue.lookup_names.get(name, ())
        if kind in {None, kind_of(concern, entry)}
    ]


def kind_of(concern: str, entry: Entry) -> str:
    """Return the kind of candidate that an entry is."""
    return "nccl_variable" if concern == _VARIABLES else str(entry["kind"])


def _base(name: str) -> str:
    return next((name.removesuffix(s) for s in _SUFFIXES if name.endswith(s)), "")


def _candidate(concern: str, entry: Entry, kind: str, name: str) -> Candidate:
    return Candidate(
        kind,
        name,
        (_item(concern, entry, name),),
        errata=errata_of([entry]),
        sources=sources_of([entry]),
    )


def _item(concern: str, entry: Entry, name: str) -> Item:
    reading = _reading(entry, name)
    extra: dict[str, Any] = {"title": entry["title"]}
    extra |= {key: entry[key] for key in _TOLD if entry.get(key) and entry[key] != "any"}
    facts = extra.pop("facts", {})
    unit = reading.get("unit") or facts.get("unit")
    extra |= {k: reading[k] for k in ("healthy", "problem", "field") if reading.get(k) is not None}
    extra |= {key: value for key, value in facts.items() if key != "unit"}
    others = [other for other in entry.get("names", ()) if other != name]
    extra |= {"names": others} if others else {}
    return Item(
        id=f"{concern}/{entry['id']}",
        name=name,
        meaning=" ".join(entry["text"].split()),
        unit=str(unit) if unit else None,
        extra=extra,
    )


def _reading(entry: Entry, name: str) -> Mapping[str, Any]:
    """Return what the entry says of the metric of that name, else of its only one."""
    readings = entry.get("metrics") or []
    found = [r for r in readings if r["name"] == name] or (readings if len(readings) == 1 else [])
    return found[0] if found else {}
