"""A database that is locked, gone or wrong is told in one line; when it is back, all goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store import Store, StoreError
from engine.errors import GpuwhyError
from tests.support.postgres import Postgres
from tests.support.servers import free_port
from tests.support.stores import NOW, ask, claim, post

TIMEOUT_S = 0.6


def move(source: Path, target: Path) -> None:
    source.replace(target)


def write(file: Path, content: bytes | None) -> None:
    """Write a file; None: there is none."""
    file.unlink()
    if content is not None:
        file.write_bytes(content)


def exists(file: Path) -> bool:
    return file.exists()


@pytest.fixture
def file(sqlite_template: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    shutil.copy(sqlite_template, path)
    return path


@pytest.fixture
async def on_file(file: Path) -> AsyncIterator[Store]:
    store = Store(f"sqlite:///{file}", timeout_s=TIMEOUT_S)
    await store.open()
    yield store
    await store.close()


async def refusal(store: Store) -> StoreError:
    """Return the error of a use that fails; it must fail within the time-out."""
    began = time.monotonic()
    with pytest.raises(StoreError) as caught:
        await ask(store, "during the outage")
    assert time.monotonic() - began < TIMEOUT_S * 3
    return one_line(caught.value)


def one_line(error: StoreError) -> StoreError:
    assert isinstance(error, GpuwhyError)
    assert error.exit_status == 3
    assert error.__suppress_context__
    text = str(error)
    assert "\n" not in text
    for word in ("INSERT", "SELECT", "UPDATE", "sqlalche", "Traceback", "during the outage"):
        assert word not in text
    return error


async def test_a_locked_file_is_usable_again_when_it_is_let_go(on_file: Store, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        error = await refusal(on_file)
        assert error.code == "store_locked"
        assert str(error).startswith(f"database {file} is locked by another program; ")
        assert await on_file.backlog() == (0, 0, None, None)  # reading goes on
        several = await asyncio.gather(*(ask(on_file) for _ in range(4)), return_exceptions=True)
        assert {type(found) for found in several} == {StoreError}
    finally:
        other.close()

    assert (await ask(on_file, "after")).is_new
    assert (await on_file.list_questions())[0].dedupe_key == "after"


async def test_a_short_lock_is_waited_out(on_file: Store, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(ask(on_file))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    other.close()

    assert (await waiting).is_new


async def test_a_file_moved_away_is_missed_and_found_again(on_file: Store, file: Path) -> None:
    kept, _ = await ask(on_file, "before")
    aside = file.with_name("aside.db")
    move(file, aside)

    error = await refusal(on_file)
    assert error.code == "store_unreachable"
    assert str(error).startswith(f"database {file} cannot be opened; see whether it is there")
    with pytest.raises(StoreError):
        await on_file.ping()
    assert not exists(file)

    move(aside, file)
    assert (await ask(on_file, "after")).is_new
    assert {q.dedupe_key for q in await on_file.list_questions()} == {"before", "after"}
    assert await on_file.get_question(kept)


async def test_a_file_put_in_place_of_another_is_used(
    on_file: Store, file: Path, sqlite_template: Path
) -> None:
    await ask(on_file, "in the old file")
    backup = file.with_name("backup.db")
    shutil.copy(sqlite_template, backup)
    for end in ("-wal", "-shm"):
        write(Path(f"{file}{end}"), None)
    move(backup, file)

    await ask(on_file, "in the new file")

    with sqlite3.connect(file) as other:
        assert other.execute("SELECT dedupe_key FROM questions").fetchall() == [
            ("in the new file",)
        ]
    other.close()


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "store_unreachable"), (b"", "store_outdated"), (b"no database" * 500, "store_damaged")],
)
async def test_a_file_that_is_no_store_is_refused_at_start(
    file: Path, content: bytes | None, code: str
) -> None:
    write(file, content)
    store = Store(f"sqlite:///{file}")

    with pytest.raises(StoreError) as caught:
        await store.open()

    assert one_line(caught.value).code == code
    assert str(file) in str(caught.value)
    assert exists(file) == (content is not None)
    with pytest.raises(StoreError, match="is not open"):
        await store.backlog()


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError) as caught:
        await Store(f"sqlite:///{tmp_path}/file/store.db").migrate()

    assert one_line(caught.value)
    with pytest.raises(StoreError):
        await Store(f"sqlite:///{tmp_path}").migrate()


async def test_a_full_disk_is_told(on_file: Store, file: Path) -> None:
    # SQLite's own limit stands for the disk's: the file may not grow.
    for n in range(3):
        await ask(on_file, f"k{n}")

    async def limit(connection: AsyncConnection) -> None:
        pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar_one()
        await connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    await on_file._read(limit)

    with pytest.raises(StoreError) as caught:
        await ask(on_file, "big", request={"text": "x" * 1_000_000})

    assert one_line(caught.value).code == "store_full"
    assert "has no space left" in str(caught.value)


async def test_a_file_that_may_not_be_written_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:  # root may write everything
        monkeypatch.setattr(os, "access", lambda *_: False)
    os.chmod(file, 0o400)  # noqa: PTH101
    store = Store(f"sqlite:///{file}")
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert one_line(caught.value).code == "store_denied"


async def test_a_value_that_cannot_be_stored_is_refused(store: Store) -> None:
    for odd in (float("nan"), {1, 2}):
        with pytest.raises(StoreError) as caught:
            await ask(store, "during the outage", request={"value": odd})
        assert one_line(caught.value).code == "store_refused"
    with pytest.raises(StoreError) as caught:
        await store.enqueue([post()], question_id="no such question", now=NOW)
    assert one_line(caught.value).code == "store_refused"


async def test_a_server_that_went_away_is_missed_and_found_again(
    postgres: Postgres, postgres_migrated: str
) -> None:
    url = postgres.url(postgres_migrated)
    store = Store(url, timeout_s=2.0)
    await store.open()
    kept, _ = await ask(store, "before the outage")
    try:
        postgres.stop()
        for use in (ask(store, "during the outage"), store.ping(), claim(store)):
            with pytest.raises(StoreError) as caught:
                await use
            error = one_line(caught.value)
            assert error.code == "store_unreachable"
            assert f"postgresql://127.0.0.1:{postgres.port}/migrated" in str(error)
            assert postgres.password not in str(error)
        postgres.start()
        assert (await ask(store, "after the outage")).is_new
        assert await store.get_question(kept)
    finally:
        postgres.start() if postgres._process is None else None
        await store.close()


async def test_connections_the_server_closed_are_replaced_unseen(
    postgres: Postgres, postgres_migrated: str
) -> None:
    store = Store(postgres.url(postgres_migrated))
    await store.open()
    await asyncio.gather(*(store.ping() for _ in range(5)))
    everyone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='migrated'"
    postgres.sql(everyone)
    await asyncio.sleep(0.1)

    await asyncio.gather(*(store.ping() for _ in range(5)))
    await store.close()


async def test_a_table_locked_by_another_client_is_told(
    postgres: Postgres, postgres_migrated: str
) -> None:
    url = postgres.url(postgres_migrated)
    blocker, store = Store(url), Store(url, timeout_s=TIMEOUT_S)
    await blocker.open()
    await store.open()

    async def block(connection: AsyncConnection) -> StoreError:
        await connection.exec_driver_sql("LOCK TABLE questions IN ACCESS EXCLUSIVE MODE")
        return await refusal(store)

    error = await blocker._write(block)
    assert error.code == "store_locked"
    assert (await ask(store, "after the lock")).is_new
    await store.close()
    await blocker.close()


@pytest.mark.parametrize(
    ("user", "password", "name", "code"),
    [
        ("gpuwhy", "s3cret-but-wrong", "migrated", "store_denied"),
        ("gpuwhy", None, "no_such_database", "store_unreachable"),
        ("gpuwhy", None, "postgres", "store_outdated"),
    ],
)
async def test_a_server_that_does_not_let_us_in_is_told(
    postgres: Postgres,
    postgres_migrated: str,
    user: str,
    password: str | None,
    name: str,
    code: str,
) -> None:
    secret = password or postgres.password
    place = f"127.0.0.1:{postgres.port}/{name}"
    store = Store(f"postgresql://{user}:{secret}@{place}")

    with pytest.raises(StoreError) as caught:
        await store.open()

    error = one_line(caught.value)
    assert error.code == code
    assert str(error).startswith(f"database postgresql://{place} ")
    assert secret not in str(error)
    assert user not in str(error).replace("gpuwhy", "", 0).split(place)[0]


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("127.0.0.1:{closed}/x", "store_unreachable"),
        ("no-such-host.invalid/x", "store_unreachable"),
        ("127.0.0.1:{closed}/x?sslmode=sometimes", "store_config"),
        ("127.0.0.1:port/x", "store_config"),
    ],
)
async def test_a_server_that_is_not_there_is_told(place: str, code: str) -> None:
    store = Store(f"postgresql://u:s3cret@{place.format(closed=free_port())}", timeout_s=5)

    with pytest.raises(StoreError) as caught:
        await store.open()

    assert one_line(caught.value).code == code
    assert "s3cret" not in str(caught.value)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    hung_up = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    store = Store(f"postgresql://u:s3cret@127.0.0.1:{port}/x", timeout_s=TIMEOUT_S)
    began = time.monotonic()

    with pytest.raises(StoreError, match="does not answer in time"):
        await store.open()

    assert time.monotonic() - began < TIMEOUT_S * 4
    await asyncio.wait_for(hung_up.wait(), 5)
    silent.close()
    await silent.wait_closed()


async def test_a_server_that_falls_silent_is_given_up_and_found_again(
    postgres: Postgres, postgres_migrated: str
) -> None:
    """As when a cable is pulled: connections stay, and nothing comes."""
    passes = asyncio.Event()
    passes.set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await passes.wait()
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = await asyncio.open_connection("127.0.0.1", postgres.port)
        await asyncio.gather(pipe(reader, inner[1]), pipe(inner[0], writer))

    proxy = await asyncio.start_server(forward, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    direct = postgres.url(postgres_migrated)
    store = Store(direct.replace(f":{postgres.port}/", f":{port}/"), timeout_s=TIMEOUT_S)
    await store.open()
    await ask(store, "before the silence")

    passes.clear()
    assert (await refusal(store)).code == "store_unreachable"
    passes.set()
    await asyncio.sleep(TIMEOUT_S * 2)

    assert (await ask(store, "after the silence")).is_new
    await store.close()
    proxy.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait_for(asyncio.gather(*others), 5)


async def test_closing_lets_what_runs_end(url: str) -> None:
    store = Store(url)
    await store.open()
    running = [asyncio.create_task(ask(store, f"k{n}")) for n in range(20)]
    for _ in range(3):  # the first ones begin
        await asyncio.sleep(0)
    await store.close()

    found = await asyncio.gather(*running, return_exceptions=True)

    stored = sum(not isinstance(each, BaseException) for each in found)
    assert 1 <= stored <= 20
    assert all("is not open" in str(each) for each in found if isinstance(each, StoreError))
    await store.close()
    await store.open()
    assert len(await store.list_questions(limit=50)) == stored
    await store.open()
    await store.close()


@pytest.mark.parametrize("use", ["open", "migrate"])
async def test_a_missing_driver_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    store = Store("postgresql://u:s3cret@db.example:5432/gpuwhy")

    with pytest.raises(StoreError) as caught:
        await getattr(store, use)()

    assert str(one_line(caught.value)) == (
        "database postgresql://db.example:5432/gpuwhy needs the driver asyncpg, which is not "
        "installed; run: pip install 'gpuwhy[postgresql]'"
    )
    assert caught.value.code == "store_config"
