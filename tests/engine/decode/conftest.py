"""The packaged knowledge, loaded once."""

import pytest

from engine.catalogue import load_catalogue


@pytest.fixture(scope="session")
def catalogue():
    return load_catalogue(rules=False)
