"""A store in a file, and a Slack that records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store import Store
from tests.support.slackserver import SlackServer


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    server = SlackServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    one = Store(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    await one.migrate()
    await one.open()
    yield one
    await one.close()
