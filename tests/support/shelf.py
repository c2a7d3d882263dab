"""The knowledge base ready to be asked, built once a process."""

from __future__ import annotations

from functools import cache

from engine.lookup.ask import Library
from tests.support.packaged import catalogue


@cache
def library() -> Library:
    """Return the library of the packaged catalogue."""
    return Library(catalogue())
