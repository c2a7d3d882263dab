"""Real captures by others, which are not part of the project: ``GPUWHY_TEST_DATA`` names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("GPUWHY_TEST_DATA", "/nonexistent"))


def captures(kind: str, pattern: str) -> list[Path]:
    """Return the captures of a kind; empty where there are none."""
    folder = FOLDER / kind
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def capture(kind: str, name: str) -> Path:
    """Return one capture; skip the test where it is not there."""
    path = FOLDER / kind / name
    if not path.is_file():
        pytest.skip("GPUWHY_TEST_DATA names no folder with this capture")
    return path
