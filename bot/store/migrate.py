"""Bringing the tables to this version, by alembic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

from bot.store.address import Address
from bot.store.errors import StoreError

if TYPE_CHECKING:
    from alembic.config import Config

# The newest migration. Revisions are numbers of four digits, so that later ones sort later.
REVISION = "0003"

# Any number will do, if all replicas use the same: the first eight letters of "gpuwhy-m".
_ADVISORY_LOCK = int.from_bytes(b"gpuwhy-m")


def config_for(connection: Connection) -> Config:
    """Return alembic's configuration for running our migrations on a connection."""
    from alembic.config import Config  # noqa: PLC0415 - takes a while, and is needed once

    config = Config()
    config.set_main_option("path_separator", "os")
    folder = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, address: Address) -> None:
    """Apply the migrations that are missing, within the connection's transaction.

    Raises:
        StoreError: the tables are of a newer version.
    """
    from alembic import command  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    if connection.dialect.name == "postgresql":
        # Held until the end of the transaction; SQLite has its write lock already.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    try:
        command.upgrade(config_for(connection), "head")
    except CommandError:
        # Our own scripts are sound (tests run them), so the revision found is not one of them.
        message = f"{address} was written by a newer version of gpuwhy"
        raise StoreError(message, hint="use that version", code="store_outdated") from None
