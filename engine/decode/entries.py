"""From knowledge entries to decoded items: the shared keys by name, all others in ``extra``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.model import Candidate, Item, Number

Entry = Mapping[str, Any]

# Where an entry keeps what an item has a field for; everything else that it says goes to ``extra``.
_MAPPED = frozenset(
    ("id", "title", "meaning", "class", "severity", "action", "bit", "errata", "source", "asked")
)

_ERRATUM = (("Often told otherwise", "claim"), ("In fact", "right"), ("Why", "why"))


def candidate(
    kind: str, value: Number, entries: Sequence[Entry], *, unknown_bits: int = 0
) -> Candidate:
    """Return entries as one reading, with their errata and sources."""
    return Candidate(
        kind,
        value,
        tuple(entry_item(kind, entry) for entry in entries),
        unknown_bits=unknown_bits,
        errata=errata_of(entries),
        sources=sources_of(entries),
    )


def entry_item(kind: str, entry: Entry) -> Item:
    """Return one entry as a decoded item.

    A DCGM field goes by its macro and has a unit; all else goes by its title. (The ``unit`` of an
    SXid is a part of the switch and stays in ``extra``.)
    """
    extra = {key: value for key, value in entry.items() if key not in _MAPPED and value is not None}
    name, unit = entry["title"], None
    if kind == "dcgm_field":
        name, unit = extra.pop("name"), extra.pop("unit", None)
        extra["title"] = entry["title"]
    return Item(
        id=str(entry["id"]),
        name=name,
        meaning=entry.get("meaning") or entry.get("is") or entry["title"],
        class_=entry.get("class"),
        severity=entry.get("severity"),
        action=entry.get("action"),
        bit=entry.get("bit"),
        unit=unit,
        extra=extra or None,
    )


def errata_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return what people are told wrongly about these entries, and what holds; each once."""
    found = (
        " ".join(f"{word}: {_sentence(e[key])}" for word, key in _ERRATUM)
        for entry in entries
        for e in entry.get("errata") or ()
    )
    return tuple(dict.fromkeys(found))


def sources_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the public documents that the entries rest on; each once."""
    return tuple(dict.fromkeys(s for entry in entries for s in entry.get("source") or ()))


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
