"""The packaged knowledge."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue, load_catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The packaged knowledge without rules."""
    return load_catalogue(rules=False)
