"""One database: connecting, transactions, and errors told in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Executable, Row, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.store.address import PostgresqlAddress, SqliteAddress, parse_address
from bot.store.engines import BEGIN_OPTION, POOL_SIZE, Faults, make_engine
from bot.store.errors import StoreError
from bot.store.faults import store_error
from bot.store.ids import IdMaker
from bot.store.migrate import REVISION, upgrade

_TIMEOUT_S = 10.0
# A change to a big table takes its time, and so does waiting for another replica to make it.
_MIGRATE_TIMEOUT_S = 600.0

_T = TypeVar("_T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[_T]]


class Database:
    """A database at an address.

    Nothing is connected before `open`. Every use is one short transaction with a time-out; when the
    database is back after an outage, the next use works. What timed out may still have been done.

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
        self._running: set[asyncio.Task[Any]] = set()
        # Who has to wait waits here, where waiting can be given up. SQLite lets in one writer at a
        # time and makes others try again and again; these are in order, and without polling.
        is_file = isinstance(self._address, SqliteAddress)
        self._read_turn = asyncio.Semaphore(POOL_SIZE - 1 if is_file else POOL_SIZE)
        self._write_turn = asyncio.Semaphore(1) if is_file else self._read_turn

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
        """Let what is running end, and close all connections; harmless when they are closed."""
        engine, self._engine = self._engine, None  # nothing begins from here on
        if self._running:
            await asyncio.wait(self._running, timeout=self._timeout_s)
        if engine is not None:
            await engine.dispose()

    async def ping(self) -> None:
        """See that the database answers and has the tables of this version.

        Raises:
            StoreError: it does not, or has others.
        """
        rows = await self._rows(text("SELECT version_num FROM alembic_version"))
        found = rows[0][0] if rows else None
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
        address = self._address
        if isinstance(address, SqliteAddress):
            try:
                await asyncio.to_thread(address.create)
            except OSError as error:
                raise store_error(error, address) from None
        engine, faults = make_engine(address, _MIGRATE_TIMEOUT_S)

        async def work() -> None:
            try:
                async with _writer(engine).begin() as connection:
                    await connection.run_sync(upgrade, address)
            finally:
                await engine.dispose()

        await self._uncut(work, self._write_turn, faults, _MIGRATE_TIMEOUT_S)

    async def _write(self, work: Work[_T]) -> _T:
        """Return what ``work`` returns, done in one transaction that may write."""
        return await self._transaction(work, self._write_turn, _writer)

    async def _read(self, work: Work[_T]) -> _T:
        """Return what ``work`` returns, done in one transaction that only reads.

        In SQLite it waits for no writer.
        """
        return await self._transaction(work, self._read_turn, _reader)

    async def _rows(self, query: Executable) -> Sequence[Row[Any]]:
        """Return the rows of a query that only reads."""

        async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
            return (await connection.execute(query)).all()

        return await self._read(work)

    async def _changed(self, statement: Executable) -> Sequence[Row[Any]]:
        """Run one statement that writes; return the rows that it returns."""

        async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
            result = await connection.execute(statement)
            return result.all() if result.returns_rows else ()

        return await self._write(work)

    def _insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an INSERT that can say what to do when the row is there already."""
        if isinstance(self._address, PostgresqlAddress):
            return postgresql.insert(table)
        return sqlite.insert(table)

    async def _transaction(
        self,
        work: Work[_T],
        turn: asyncio.Semaphore,
        kind: Callable[[AsyncEngine], AsyncEngine],
    ) -> _T:
        async def whole() -> _T:
            if self._engine is None:
                raise StoreError(f"{self.place} is not open")
            async with kind(self._engine).begin() as connection:
                return await work(connection)

        return await self._uncut(whole, turn, self._faults, self._timeout_s)

    async def _uncut(
        self,
        work: Callable[[], Awaitable[_T]],
        turn: asyncio.Semaphore,
        faults: Faults,
        timeout_s: float,
    ) -> _T:
        """Do some work in its turn, to its end even when the caller is cancelled or gives up.

        A driver that is cut off in the middle leaves connections and locks behind. The work ends
        by itself soon: every wait in it has a time-out of its own.
        """

        async def run() -> _T:
            try:
                return await work()
            finally:
                turn.release()

        try:
            async with asyncio.timeout(timeout_s):
                await turn.acquire()
                task = asyncio.create_task(run())
                self._running.add(task)
                task.add_done_callback(self._ended)
                return await asyncio.shield(task)
        except faults as error:
            raise store_error(error, self._address) from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # told to the caller, if it still listens


def _reader(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine for reading."""
    return engine


def _writer(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine for writing: SQLite takes its lock at the beginning.

    A transaction that reads first and then wants to write would fail if another one had written.
    """
    return engine.execution_options(**{BEGIN_OPTION: "BEGIN IMMEDIATE"})
