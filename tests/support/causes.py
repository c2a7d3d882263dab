"""Cause rules for tests, with everything that inference does not read left at its least."""

from __future__ import annotations

from engine.catalogue.types import CauseRule, Pattern, Place
from engine.model import Class, Severity


def cause(id_: str, *patterns: Pattern, line: int | None = None) -> CauseRule:
    """Return a rule with these patterns, read from line ``line`` of a file named by its id."""
    return CauseRule(
        id=id_,
        title=id_,
        version=1,
        status="stable",
        severity=Severity.HIGH,
        patterns=patterns,
        says="",
        class_=Class.FAULT,
        scope="gpu",
        place=Place(f"causes/{id_}.yaml", line, 1) if line else None,
    )


def causes(**patterns: list[Pattern]) -> dict[str, CauseRule]:
    """Return rules by id."""
    return {id_: cause(id_, *listed) for id_, listed in patterns.items()}
