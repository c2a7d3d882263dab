"""The packaged knowledge, and a short way to read text with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalogue import Catalogue, load_catalogue
from engine.model import Read
from engine.readers import read

ReadText = Callable[[str], Read]


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The packaged knowledge without rules."""
    return load_catalogue(rules=False)


@pytest.fixture
def read_text(catalogue: Catalogue) -> ReadText:
    """Read a string."""
    return lambda text: read(text.encode(), catalogue)
