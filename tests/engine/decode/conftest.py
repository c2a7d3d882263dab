"""The packaged knowledge, loaded once."""

import pytest

from tests.support import packaged


@pytest.fixture(scope="session")
def catalogue():
    return packaged.knowledge()
