"""Alternatives of a verdict that the same text rules out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from engine.model import Diagnosis, Entity

# "All GPUs of the node are hot" does not hold beside one that is this much cooler (K).
_COOLER_K: Final = 15.0
_ALL_HOT: Final = "node_airflow"


def ruled_out(
    diagnoses: Sequence[Diagnosis], temperatures: Iterable[tuple[Entity, float]]
) -> list[Diagnosis]:
    """Drop what is told apart by the temperatures of the other GPUs, where the text has them.

    Args:
        diagnoses: verdicts.
        temperatures: of the die of each GPU of the text (Celsius).
    """
    by_host: dict[str | None, dict[str, float]] = {}
    for entity, value in temperatures:
        known = by_host.setdefault(entity.host, {})
        known[entity.name] = max(value, known.get(entity.name, value))
    return [_kept(one, by_host.get(one.entity.host, {})) for one in diagnoses]


def _kept(one: Diagnosis, known: dict[str, float]) -> Diagnosis:
    own = known.get(one.entity.name)
    if own is None or all(value > own - _COOLER_K for value in known.values()):
        return one
    left = tuple(other for other in one.alternatives if other.cause != _ALL_HOT)
    return one if len(left) == len(one.alternatives) else replace(one, alternatives=left)
