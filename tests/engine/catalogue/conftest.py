"""Folders of knowledge and rules in a temporary place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.house import KNOWLEDGE, RULES, write

Write = Callable[[dict[str, str]], Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "gpuwhy"


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
