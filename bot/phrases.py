"""Counts and lists as people read them; values with units are written by `engine.units`."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model import Entity

_SHOWN = 8


def count(amount: int, noun: str, plural: str = "") -> str:
    """Return ``1 GPU`` or ``8 GPUs``."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {plural or noun + 's'}"


def some(names: Iterable[str], most: int = _SHOWN) -> str:
    """Return names as a list, the first ``most`` of them, and how many more there are."""
    found = list(names)
    more = len(found) - most
    if more <= 0:
        return ", ".join(found)
    return f"{', '.join(found[:most])} and {more} more"


def entities(members: Iterable[Entity], most: int = _SHOWN) -> str:
    """Return the names of entities as a list (see `some`)."""
    return some((entity.shown for entity in members), most)
