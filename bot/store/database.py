"""One database: connecting, transactions, and errors told in one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from sqlalchemy import Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.store.address import PostgresqlAddress, SqliteAddress, parse_address
from bot.store.engines import BEGIN_OPTION, Faults, make_engine
from bot.store.errors import StoreError
from bot.store.faults import store_error
from bot.store.ids import IdMaker
from bot.store.migrate import REVISION, upgrade

_TIMEOUT_S = 10.0
# A change to a big table takes its time, and so does waiting for another replica to make it.
_MIGRATE_TIMEOUT_S = 600.0


class Database:
    """A database at an address.

    Nothing is connected before `open`. Every use is one short transaction with a time-out; when the
    database is back after an outage, the next use works.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST:PORT/NAME``.
        timeout_s: longest time for one transaction, waiting for locks included (s).
        new_id: makes ids from a moment (Unix seconds).

    Raises:
        StoreError: the address cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = _TIMEOUT_S,
        new_id: Callable[[float], str] | None = None,
    ) -> None:
        self._address = parse_address(url)
        self._timeout_s = timeout_s
        self._new_id = new_id or IdMaker()
        self._engine: AsyncEngine | None = None
        self._faults: Faults = ()
        # SQLite lets in one writer at a time, and waits by trying again and again. Writers of this
        # process wait here instead: in order, and without polling.
        self._turn: AbstractAsyncContextManager[None] = (
            asyncio.Lock() if isinstance(self._address, SqliteAddress) else nullcontext()
        )

    @property
    def place(self) -> str:
        """Where the database is, without user and password."""
        return str(self._address)

    async def open(self) -> None:
        """Connect, and see that the tables are those of this version.

        Raises:
            StoreError: the database cannot be reached, or has to be migrated.
        """
        if self._engine is not None:
            return
        self._engine, self._faults = make_engine(self._address, self._timeout_s)
        try:
            await self.ping()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close all connections; harmless when they are closed."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()

    async def ping(self) -> None:
        """See that the database answers and has the tables of this version.

        Raises:
            StoreError: it does not, or has others.
        """
        async with self._reading() as connection:
            found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
        if found == REVISION:
            return
        if found is not None and found > REVISION:
            message = f"{self.place} was written by a newer version of gpuwhy"
            raise StoreError(message, hint="use that version", code="store_outdated")
        message = f"{self.place} has the tables of an older version"
        raise StoreError(message, hint="let it be migrated", code="store_outdated")

    async def migrate(self) -> None:
        """Bring the tables to this version; a SQLite file is made if there is none.

        Replicas may do this at the same time: the first one does it, the others wait.

        Raises:
            StoreError: the database cannot be reached, or is of a newer version.
        """
        if isinstance(self._address, SqliteAddress):
            try:
                await asyncio.to_thread(self._address.create)
            except OSError as error:
                raise store_error(error, self._address) from None
        engine, faults = make_engine(self._address, _MIGRATE_TIMEOUT_S)
        try:
            async with (
                self._guarded(faults, _MIGRATE_TIMEOUT_S),
                self._turn,
                _writer(engine).begin() as connection,
            ):
                await connection.run_sync(upgrade, self._address)
        finally:
            await engine.dispose()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction that may write; committed at the end of the block."""
        engine = _writer(self._connected())
        async with (
            self._guarded(self._faults, self._timeout_s),
            self._turn,
            engine.begin() as connection,
        ):
            yield connection

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        """One transaction that only reads; in SQLite it waits for no writer."""
        engine = self._connected()
        async with self._guarded(self._faults, self._timeout_s), engine.begin() as connection:
            yield connection

    def _connected(self) -> AsyncEngine:
        if self._engine is None:
            message = f"{self.place} is not open"
            raise StoreError(message)
        return self._engine

    @asynccontextmanager
    async def _guarded(self, faults: Faults, timeout_s: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except faults as error:
            raise store_error(error, self._address) from None

    def _insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an INSERT that can say what to do when the row is there already."""
        if isinstance(self._address, PostgresqlAddress):
            return postgresql.insert(table)
        return sqlite.insert(table)


def _writer(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine for writing: SQLite takes its lock at the beginning.

    A transaction that reads first and then wants to write would fail if another one had written.
    """
    return engine.execution_options(**{BEGIN_OPTION: "BEGIN IMMEDIATE"})
