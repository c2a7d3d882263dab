"""The address of a database is read strictly, and never shows its secret."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.store import Store, StoreError
from bot.store.address import PostgresqlAddress, SqliteAddress, parse_address


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/gpuwhy/store.db", "/var/lib/gpuwhy/store.db"),
        ("sqlite+aiosqlite:////a/b c?d#e%20.db", "/a/b c?d#e%20.db"),
        ("sqlite:///store.db", str(Path.cwd() / "store.db")),
    ],
)
def test_a_file(url: str, path: str) -> None:
    address = parse_address(url)
    assert address == SqliteAddress(Path(path))
    assert str(address) == f"database {path}"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:p%40ss@db:5433/gpuwhy", "db:5433/gpuwhy"),
        ("postgres://db/gpuwhy?sslmode=verify-full", "db/gpuwhy"),
        ("postgresql+asyncpg://u@[::1]:5432/x", "[::1]:5432/x"),
        ("postgresql:///x?host=/run/postgresql&password=secret", "/x"),
        ("postgresql://u:secret@a:1,b:2/x", "a:1,b:2/x"),
    ],
)
def test_a_server(url: str, place: str) -> None:
    address = parse_address(url)
    assert isinstance(address, PostgresqlAddress)
    assert address.place == place
    assert address.dsn == "postgresql://" + url.partition("://")[2]
    assert str(address) == f"database postgresql://{place}"
    assert "secret" not in repr(address)
    assert "p%40ss" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        *("", "store.db", "sqlite", "sqlite://", "sqlite:///", "sqlite://x.db", "sqlite:///a/"),
        *("sqlite:///:memory:", "sqlite:///a\0b", "sqlite+pysqlite:///x", "mysql://u:secret@h/d"),
        *("postgresql+psycopg2://h/d", "postgresql://u:se@cret@h/d", "postgresql://u:se/cret@h/d"),
        *("postgresql://u:se?cret@h/d", "postgresql://u:se#cret@h/d", "postgresql://h/d?x=a@b"),
        "postgresql://u:secret@h /d",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store(url)
    assert caught.value.code == "store_config"
    assert "cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(min_size=6, max_size=12, alphabet="XYZ!@:/?#[]%&= \n"))
def test_no_password_is_ever_shown(password: str) -> None:
    try:
        shown = str(parse_address(f"postgresql://user:{password}@host:5432/name"))
    except StoreError as error:
        shown = str(error)
        assert password not in shown
    else:
        assert shown == "database postgresql://host:5432/name"


@given(st.text())
def test_any_text_is_read_or_refused(url: str) -> None:
    for text in (url, f"sqlite:///{url}", f"postgresql://{url}"):
        with contextlib.suppress(StoreError):
            parse_address(text)
