"""Finding knowledge by any name it goes by: macros, constants, symbols, spellings, titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from engine.catalogue.nearest import fold, nearest
from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.decode.codes import with_context
from engine.decode.entries import Entry, candidate, errata_of, sources_of
from engine.decode.lookups import by_lookup_name, is_defining, lookup_names
from engine.decode.numbers import MASK_TABLE
from engine.model import Candidate, Item

# Kinds in the order in which a name that means several things is answered, their tables, and the
# keys of an entry that hold names.
_TABLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("throttle", MASK_TABLE, ("id", "nvml", "dcgm", "nvidia_smi", "exporter_label", "title")),
    ("dcgm_field", "dcgm_fields", ("name", "names", "title")),
    ("xid", "xid", ("symbol", "alias", "title")),
    ("sxid", "sxid", ("symbol", "title")),
    ("gpu_model", "gpu_models", ("id", "match", "title")),
    ("cause", "taxonomy", ("id", "title")),
)
_KIND_ORDER = ("throttle", "dcgm_field", "metric", "xid", "sxid", "gpu_model", "cause")
_DCGM_PREFIXES = ("DCGM_FI_DEV_", "DCGM_FI_PROF_", "DCGM_FI_", "DCGM_EXP_")


def by_name(text: str, catalogue: Catalogue, kind: str | None = None) -> tuple[Candidate, ...]:
    """Return every reading of a name, in a fixed order of kinds; empty if nothing is called so.

    Case, spaces, hyphens and DCGM's prefixes do not matter.

    Args:
        text: the name.
        catalogue: where to look.
        kind: look only for candidates of this kind.
    """
    wanted = fold(text)
    found: dict[str, list[Candidate]] = {}
    for entry_kind, table, keys in _TABLES:
        if kind in {None, entry_kind}:
            entries = [
                entry
                for entry in catalogue.entries.get(table, {}).values()
                if any(wanted == _folded(name) for name in _names(entry, keys))
            ]
            found[entry_kind] = [_reading(entry_kind, entry, catalogue) for entry in entries]
    if kind in {None, "metric"}:
        found["metric"] = _metric(text, catalogue)
    if kind in {None, "gpu_model"} and not found["gpu_model"]:
        model = catalogue.model_for(text)
        if model:
            entry = catalogue.entries["gpu_models"][model.id]
            found["gpu_model"] = [_reading("gpu_model", entry, catalogue)]
    known = [reading for name in _KIND_ORDER for reading in found.get(name, ())]
    looked_up = by_lookup_name(text, catalogue, kind)
    return (*known, *(one for one in looked_up if is_defining(one) or not known))


def nearest_names(text: str, catalogue: Catalogue, kind: str | None = None) -> tuple[str, ...]:
    """Return up to five names that resemble one which nothing is called."""
    return nearest(text, _all_names(catalogue, kind), 5)


def signal_of(name: str, catalogue: Catalogue) -> Signal | None:
    """Return the signal that a metric name or signal id means, if it is a mask or a code."""
    wanted = fold(name)
    for signal in catalogue.signals.values():
        named = (signal.id, *(spelling.name for spelling in signal.spellings))
        if signal.kind in {"mask", "code"} and any(wanted == fold(n) for n in named):
            return signal
    return None


@lru_cache(maxsize=1 << 15)
def _folded(name: str) -> str:
    """Fold a name of the catalogue: all are looked at for each text, so each is folded once."""
    return fold(name)


def _reading(kind: str, entry: Entry, catalogue: Catalogue) -> Candidate:
    value = entry["bit" if kind == "throttle" else "id"]
    return candidate(kind, value, [with_context(kind, entry, catalogue)])


def _names(entry: Entry, keys: Iterable[str]) -> Iterator[str]:
    """Yield every name of an entry, DCGM's also without their prefix."""
    for key in keys:
        value = entry.get(key)
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str):
                yield from _with_bare(name)


def _with_bare(name: str) -> Iterator[str]:
    yield name
    for prefix in _DCGM_PREFIXES:
        if name.startswith(prefix):
            yield name.removeprefix(prefix)


def _all_names(catalogue: Catalogue, kind: str | None) -> Iterator[str]:
    for entry_kind, table, keys in _TABLES:
        if kind in {None, entry_kind}:
            identifiers = [key for key in keys if key != "title"]
            for entry in catalogue.entries.get(table, {}).values():
                yield from _names(entry, identifiers)
    if kind in {None, "metric"}:
        yield from catalogue.signals
        yield from catalogue.spellings
    yield from lookup_names(catalogue, kind)


def _metric(text: str, catalogue: Catalogue) -> list[Candidate]:
    """Return the reading of a metric name or signal id: one item for each signal it may be."""
    wanted = fold(text)
    meant: list[tuple[Signal, Spelling | None]] = list(catalogue.spellings.get(text, ()))
    meant = meant or [
        pair
        for name, pairs in catalogue.spellings.items()
        if any(wanted == _folded(n) for n in _with_bare(name))
        for pair in pairs
    ]
    if not meant:
        meant = [
            (signal, signal.spellings[0] if signal.spellings else None)
            for signal in catalogue.signals.values()
            if wanted in {fold(signal.id), fold(signal.title)}
        ]
    if not meant:
        return []
    entries = [catalogue.entries["signals"][signal.id] for signal, _ in meant]
    items = tuple(
        _metric_item(signal, spelling, entry)
        for (signal, spelling), entry in zip(meant, entries, strict=True)
    )
    return [
        Candidate("metric", text, items, errata=errata_of(entries), sources=sources_of(entries))
    ]


def _metric_item(signal: Signal, spelling: Spelling | None, entry: Entry) -> Item:
    """Return a metric as an item; ``unit`` is of its readings, ``signal_unit`` the product's."""
    extra: dict[str, Any] = {
        "signal_unit": signal.unit,
        "kind": signal.kind,
        "scope": signal.scope,
        "default_exported": signal.default_exported,
        "names": [other.name for other in signal.spellings],
    }
    if spelling:
        extra |= {"scale": spelling.scale, "exporter": spelling.exporter, "vendor": spelling.vendor}
        extra |= {"match": dict(spelling.match)} if spelling.match else {}
        extra |= {"since": spelling.since} if spelling.since else {}
    extra |= {key: entry[key] for key in ("field", "export", "range", "status") if key in entry}
    return Item(
        id=signal.id,
        name=spelling.name if spelling else signal.id,
        meaning=entry.get("meaning") or signal.title,
        unit=spelling.unit if spelling else signal.unit,
        extra=extra,
    )
