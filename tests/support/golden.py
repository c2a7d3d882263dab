"""Comparing text with a file under tests/golden; ``GPUWHY_UPDATE_GOLDEN=1`` writes the files."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check(name: str, text: str) -> None:
    """Hold a text against its golden file."""
    file = FOLDER / name
    if os.environ.get("GPUWHY_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, f"{name} changed; review, then update it"
