"""What is packaged, loaded once a process: that takes a tenth of a second, and nobody changes it."""

from __future__ import annotations

from functools import cache

from engine.catalogue import Catalogue, load_catalogue
from engine.export import prometheus_rules
from engine.export.prometheus import Exported


@cache
def catalogue() -> Catalogue:
    """Return the packaged knowledge and rules."""
    return load_catalogue()


@cache
def knowledge() -> Catalogue:
    """Return the packaged knowledge without rules."""
    return load_catalogue(rules=False)


@cache
def exported() -> Exported:
    """Return the packaged rules as they are exported for Prometheus."""
    return prometheus_rules(catalogue())
