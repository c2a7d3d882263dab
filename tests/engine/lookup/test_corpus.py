"""The searchable form in the cache: read when good, made again when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.lookup.analysis import Analyser
from engine.lookup.corpus import KEPT, cached
from engine.lookup.index import Index
from engine.lookup.tables import cards
from tests.support.shop import shop

CARDS = tuple(cards(shop()))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpuwhy"


def found(key: str = "k") -> list[tuple[str, float]]:
    """Search through the cache."""
    index = Index(CARDS, {}, key=key)
    return [(hit.card.key, hit.score) for hit in index.search("attach to a running job")]


def test_it_is_kept_and_read_again(cache) -> None:
    first = found()
    (folder,) = cache.glob("lookup-*")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert found() == first
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x7f" * 64, None])
def test_a_damaged_part_is_made_again(cache, damage) -> None:
    first = found()
    (folder,) = cache.glob("lookup-*")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            if damage is None:
                path.unlink()
            else:
                path.write_bytes(damage)
            assert found() == first, path


def test_old_ones_go(cache) -> None:
    for number in range(KEPT + 2):
        found(f"k{number}")
        os.utime(next(cache.glob(f"lookup-*-k{number}")), (number, number))
    found("last")
    assert len(list(cache.glob("lookup-*"))) == KEPT


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert found()
    assert cached("", CARDS, Analyser()).heads
