"""A short way to read text with the packaged knowledge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalogue import Catalogue
from engine.model import Read
from engine.readers import read

ReadText = Callable[[str], Read]


@pytest.fixture
def read_text(catalogue: Catalogue) -> ReadText:
    """Read a string."""
    return lambda text: read(text.encode(), catalogue)
