"""Every test that uses a database runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.store import Store
from bot.store.tables import metadata
from tests.support.postgres import Postgres, start_postgres

DATABASES = ("sqlite", "postgresql")
_names = (f"d{n}" for n in itertools.count(1))


def migrate(url: str) -> None:
    asyncio.run(Store(url).migrate())


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_migrated(postgres: Postgres) -> str:
    migrate(postgres.create("migrated"))
    return "migrated"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "migrated.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables (SQLite: without a file)."""
    if database == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = next(_names)
    yield server.create(name)
    server.drop(name)


@pytest.fixture
def url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with all tables, and nothing in them."""
    if database == "sqlite":
        path = tmp_path / "store.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    server: Postgres = request.getfixturevalue("postgres")
    name = request.getfixturevalue("postgres_migrated")
    # Emptying is ten times faster than making another one. Who is left over from a test that
    # failed must not hold it up.
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid();"
        f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY",
        name,
    )
    return server.url(name)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = Store(url)
    await store.open()
    yield store
    await store.close()
