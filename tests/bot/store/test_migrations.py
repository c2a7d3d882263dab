"""The migrations make the tables that the code uses, from any state, also when many run them."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import command, op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from bot.store import Store, StoreError
from bot.store.migrate import REVISION, config_for
from bot.store.tables import metadata
from tests.support.stores import ask


async def inside(store: Store, look: Callable[[Connection], Any]) -> Any:
    return await store._write(lambda connection: connection.run_sync(look))


async def opened(url: str) -> Store:
    store = Store(url)
    await store.open()
    return store


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


async def test_the_migrations_make_the_tables_of_the_code(empty_url: str) -> None:
    await Store(empty_url).migrate()
    store = await opened(empty_url)

    def differences(connection: Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    def checks(connection: Connection) -> dict[str, set[str | None]]:
        found = inspect(connection)
        return {
            table: {check["name"] for check in found.get_check_constraints(table)}
            for table in metadata.tables
        }

    def partial_indices(connection: Connection) -> set[str]:
        sql = (
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'"
            if connection.dialect.name == "sqlite"
            else "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '% WHERE %'"
            " AND schemaname = 'public'"
        )
        return set(connection.scalars(text(sql)))

    assert await inside(store, differences) == []
    assert await inside(store, checks) == {
        name: {
            f"ck_{name}_{column}"
            for column in ("state", "kind", "decision")
            if any(str(c.name).endswith(f"_{column}") for c in table.constraints if c.name)
        }
        for name, table in metadata.tables.items()
    }
    assert await inside(store, partial_indices) == {
        "ix_questions_open",
        "ix_deliveries_unsent",
        "ix_incidents_known",
    }
    await store.close()


async def test_migrating_again_changes_nothing(empty_url: str) -> None:
    await Store(empty_url).migrate()
    store = await opened(empty_url)
    question_id, _ = await ask(store)

    await store.migrate()

    assert await store.get_question(question_id)
    await store.close()


async def test_replicas_may_migrate_at_the_same_time(empty_url: str) -> None:
    await asyncio.gather(*(Store(empty_url).migrate() for _ in range(4)))

    store = await opened(empty_url)
    assert (await ask(store)).is_new
    await store.close()


async def test_every_migration_can_be_taken_back(empty_url: str) -> None:
    await Store(empty_url).migrate()
    store = await opened(empty_url)
    await ask(store)

    await inside(store, lambda connection: command.downgrade(config_for(connection), "base"))

    assert await inside(store, tables) <= {"alembic_version", "sqlite_sequence"}
    with pytest.raises(StoreError) as caught:
        await store.ping()
    assert caught.value.code == "store_outdated"
    await store.migrate()
    await store.ping()
    assert (await ask(store)).is_new
    await store.close()


async def test_a_migration_that_fails_leaves_nothing_behind(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str, *_: object, **__: object) -> None:
        if name == "ix_audit_at":  # the last thing that the first migration makes
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(op, "create_index", fail)
        with pytest.raises(StoreError):
            await Store(empty_url).migrate()
    with pytest.raises(StoreError, match="lacks tables of this version"):
        await opened(empty_url)

    await Store(empty_url).migrate()
    await (await opened(empty_url)).close()


async def test_a_database_of_another_version_is_refused(url: str) -> None:
    store = await opened(url)

    def become(revision: str) -> Callable[[Connection], Any]:
        sql = text("UPDATE alembic_version SET version_num = :revision")
        return lambda connection: connection.execute(sql, {"revision": revision})

    try:
        await inside(store, become("9999"))
        for use in (store.ping, store.migrate, Store(url).open):
            with pytest.raises(StoreError, match="newer version of gpuwhy; use that version"):
                await use()
        await inside(store, become("0000"))
        with pytest.raises(StoreError, match="older version; let it be migrated"):
            await store.ping()
    finally:
        await inside(store, become(REVISION))
        await store.close()


def test_the_code_names_the_newest_migration() -> None:
    class Nothing:
        dialect = None

    scripts = ScriptDirectory.from_config(config_for(Nothing()))  # type: ignore[arg-type]
    assert scripts.get_heads() == [REVISION]


async def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "a folder" / "50% #1?.db"
    await Store(f"sqlite:///{file}").migrate()
    store = await opened(f"sqlite:///{file}")
    await ask(store)

    assert {path.name for path in file.parent.iterdir()} >= {file.name, f"{file.name}-wal"}
    for path in file.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    await store.close()


async def test_claiming_reads_only_what_is_open(url: str) -> None:
    """However much history there is, the indices of what is open are used."""
    store = await opened(url)
    statements: list[str] = []
    from sqlalchemy import event

    assert store._engine is not None
    event.listen(
        store._engine.sync_engine,
        "before_cursor_execute",
        lambda _c, _cur, sql, *_: statements.append(sql),
    )
    await store.claim_question("w", lease_s=1, now=0)
    await store.claim_delivery("s", lease_s=1, pace_s=1, now=0)
    claims = [sql for sql in statements if sql.startswith("UPDATE")]

    assert len(claims) == 2
    for sql, table in zip(claims, ("questions", "deliveries"), strict=True):
        index = {"questions": "ix_questions_open", "deliveries": "ix_deliveries_unsent"}[table]
        if url.startswith("sqlite"):
            marks = sql.count("?")
            plan = f"EXPLAIN QUERY PLAN {sql}"

            def explain(connection: Connection, plan: str = plan, marks: int = marks) -> str:
                return str(connection.exec_driver_sql(plan, (0,) * marks).fetchall())

            assert index in await inside(store, explain)
        else:
            states = {"questions": "'received', 'working'", "deliveries": "'pending', 'sending'"}
            assert f"state IN ({states[table]})" in sql
    await store.close()
