"""The address of the database, as it is configured, and how it is named in messages."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from bot.store.errors import StoreError

_FORMS = "use sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"
_ESCAPE = "in user and password write @ : / ? # as %40 %3A %2F %3F %23"
_SCHEME = re.compile(r"([a-z0-9]+)(?:\+([a-z0-9]+))?://(.*)", re.DOTALL)
# What stands before "@" is secret. No "@" elsewhere, so that what is shown is never part of it.
_POSTGRESQL = re.compile(r"(?:[^@/?#\s]*@)?([^@/?#\s]*)(?:/([^@/?#\s]*))?(?:\?[^@#\s]*)?")
_SQLITE_DRIVERS = {None, "aiosqlite"}
_POSTGRESQL_DRIVERS = {None, "asyncpg"}


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file on this machine.

    Attributes:
        path: absolute.
    """

    path: Path

    def __str__(self) -> str:
        return f"database {self.path}"

    def create(self) -> None:
        """Make the file, for its owner alone, and its folder, if they are not there.

        Raises:
            OSError: they cannot be made.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


@dataclass(frozen=True, slots=True)
class PostgresqlAddress:
    """A server.

    Attributes:
        dsn: the address with user and password; never shown.
        place: host, port and name of the database.
    """

    dsn: str = field(repr=False)
    place: str

    def __str__(self) -> str:
        return f"database postgresql://{self.place}"


Address = SqliteAddress | PostgresqlAddress


def parse_address(url: str) -> Address:
    """Return the address that a URL means.

    SQLite's file is all that stands after ``sqlite:///``, taken literally. What stands behind the
    ``?`` of a PostgreSQL address is libpq's: ``sslmode``, ``sslrootcert``, ``passfile`` and so on.

    Raises:
        StoreError: it is neither; the message does not repeat it.
    """
    parts = _SCHEME.fullmatch(url.strip())
    if parts is None:
        raise StoreError("the address of the database cannot be read", hint=_FORMS, code=_CONFIG)
    scheme, driver, rest = parts.groups()
    if scheme == "sqlite" and driver in _SQLITE_DRIVERS:
        return _sqlite(rest)
    if scheme in {"postgresql", "postgres"} and driver in _POSTGRESQL_DRIVERS:
        return _postgresql(rest)
    kind = f"{scheme}+{driver}" if driver else scheme
    raise StoreError(f"{kind} is no database that is supported", hint=_FORMS, code=_CONFIG)


def _sqlite(rest: str) -> SqliteAddress:
    name = rest.removeprefix("/")
    if not name or not rest.startswith("/") or ":memory:" in name or name.endswith("/"):
        message = "the address of the database names no file"
        raise StoreError(message, hint="use sqlite:///FILE", code=_CONFIG)
    if "\0" in name:
        raise StoreError("the name of the database file has a NUL in it", code=_CONFIG)
    return SqliteAddress(Path(name).absolute())


def _postgresql(rest: str) -> PostgresqlAddress:
    parts = _POSTGRESQL.fullmatch(rest)
    if parts is None:
        message = "the address of the PostgreSQL database cannot be read"
        raise StoreError(message, hint=_ESCAPE, code=_CONFIG)
    host, name = parts.groups()
    return PostgresqlAddress(dsn=f"postgresql://{rest}", place=f"{host}/{name or ''}")


_CONFIG = "store_config"
