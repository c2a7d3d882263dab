"""The packaged knowledge."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue
from tests.support import packaged


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The packaged knowledge without rules."""
    return packaged.knowledge()
