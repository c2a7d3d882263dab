"""Folders of knowledge and rules in a temporary place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from tests.support.house import KNOWLEDGE, RULES, write

Write = Callable[[dict[str, str]], Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "gpuwhy"


@pytest.fixture(scope="session")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the index of the packaged knowledge and rules, and nothing else."""
    folder = tmp_path_factory.mktemp("packaged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        load_catalogue()
    return folder / "gpuwhy"


@pytest.fixture
def indexed(packaged: Path, cache: Path) -> None:
    """What is packaged has been loaded before, as on any machine but for the first time."""
    shutil.copytree(packaged, cache)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with good knowledge and rules."""
    return write(tmp_path / "base", KNOWLEDGE | RULES)


@pytest.fixture
def overlay(tmp_path: Path) -> Write:
    """Write files into an overlay folder and return it."""

    def make(files: dict[str, str]) -> Path:
        return write(tmp_path / "mine", files)

    return make


@pytest.fixture
def put(root: Path) -> Write:
    """Write files into the root."""

    def make(files: dict[str, str]) -> Path:
        return write(root, files)

    return make
