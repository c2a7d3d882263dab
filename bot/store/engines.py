"""Making the SQLAlchemy engine for an address."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, AsyncAdaptedQueuePool, Connection, event
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bot.store.address import Address, PostgresqlAddress, SqliteAddress
from bot.store.columns import to_json_text
from bot.store.errors import StoreError

# Execution option: the statement that begins a transaction in SQLite.
BEGIN_OPTION = "gpuwhy_begin"
# Connections of one process.
POOL_SIZE = 5

# Written to a file, a transaction survives the end of the process; only the loss of power may undo
# the newest ones (never damage the file). Waiting for the disk each time costs several ms.
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
)

Faults = tuple[type[Exception], ...]


def make_engine(address: Address, timeout_s: float) -> tuple[AsyncEngine, Faults]:
    """Return an engine, not yet connected, and the exceptions that its use may raise.

    Args:
        address: the database.
        timeout_s: longest wait for a connection, a lock or a reply (s).

    Raises:
        StoreError: the driver is not installed.
    """
    if isinstance(address, SqliteAddress):
        return _sqlite(address.path, timeout_s), (SQLAlchemyError, OSError, sqlite3.Error)
    return _postgresql(address, timeout_s)


def _options(timeout_s: float) -> dict[str, Any]:
    return {
        "hide_parameters": True,
        "json_serializer": to_json_text,
        "max_overflow": 0,
        "pool_size": POOL_SIZE,
        "pool_timeout": timeout_s,
        "poolclass": AsyncAdaptedQueuePool,
    }


def _sqlite(path: Path, timeout_s: float) -> AsyncEngine:
    # mode=rw: a file that has gone is an error, not a new, empty database.
    query = {"mode": "rw", "uri": "true"}
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=f"file:{quote(str(path))}", query=query),
        # isolation_level None: transactions begin where we say, see `_begin`. A lock is given up
        # before the whole transaction is, so that the message can say what was the matter.
        connect_args={"timeout": timeout_s / 2, "isolation_level": None},
        **_options(timeout_s),
    )
    target = engine.sync_engine
    event.listen(target, "do_connect", partial(_see_file, path))
    event.listen(target, "connect", partial(_prepare, path))
    event.listen(target, "checkout", partial(_still_there, path))
    event.listen(target, "begin", _begin)
    return engine


def _see_file(path: Path, _dialect: Any, _record: Any, _args: Any, _options: Any) -> None:
    """Fail early: aiosqlite's thread may outlive the event loop if it cannot open the file."""
    if not path.is_file():
        raise FileNotFoundError(path)
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(path)


def _prepare(path: Path, connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()
    record.info["file"] = _identity(path)


def _still_there(path: Path, _connection: Any, record: Any, _proxy: Any) -> None:
    """Drop a connection whose file was moved away or replaced; its writes would be lost."""
    if record.info.get("file") != _identity(path):
        message = "another file"
        raise DisconnectionError(message)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN_OPTION, "BEGIN"))


def _postgresql(address: PostgresqlAddress, timeout_s: float) -> tuple[AsyncEngine, Faults]:
    try:
        import asyncpg  # type: ignore[import-untyped]  # noqa: PLC0415 - not needed for SQLite
    except ImportError:
        message = f"{address} needs the driver asyncpg, which is not installed"
        hint = "run: pip install 'gpuwhy[postgresql]'"
        raise StoreError(message, hint=hint, code="store_config") from None

    async def connect() -> Any:
        try:
            return await asyncpg.connect(
                address.dsn,
                timeout=timeout_s,
                command_timeout=timeout_s,
                server_settings={
                    "application_name": "gpuwhy",
                    # The server gives up with us, also when we are gone and cannot tell it.
                    "lock_timeout": _milliseconds(timeout_s / 2),
                    "idle_in_transaction_session_timeout": _milliseconds(timeout_s),
                },
            )
        except ValueError:  # from asyncpg's reading of the address
            message = f"{address} has an address that cannot be used"
            hint = "check host, port and what stands behind the ?"
            raise StoreError(message, hint=hint, code="store_config") from None

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        # A connection that broke while nobody used it is noticed before it is used.
        pool_pre_ping=True,
        **_options(timeout_s),
    )
    own = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    return engine, (SQLAlchemyError, OSError, *own)


def _milliseconds(seconds: float) -> str:
    return str(max(1, int(seconds * 1000)))
