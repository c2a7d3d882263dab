"""The knowledge base ready to be asked, built once a process."""

from __future__ import annotations

from functools import cache

from engine.catalogue import Catalogue, load_catalogue
from engine.lookup.ask import Library


@cache
def catalogue() -> Catalogue:
    """Return the packaged catalogue."""
    return load_catalogue()


@cache
def library() -> Library:
    """Return the library of the packaged catalogue."""
    return Library(catalogue())
