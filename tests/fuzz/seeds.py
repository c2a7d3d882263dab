"""What is mutated: the cases from the field, the variants, and one sample of every format."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.yamlfiles import parse

DATA = Path(__file__).parent.parent / "data"
_LARGEST = 60_000


@cache
def seeds() -> tuple[bytes, ...]:
    """Return every sample input, in a fixed order."""
    return tuple(_samples())


def _samples() -> Iterator[bytes]:
    for folder in ("cases", "variants"):
        for file in sorted((DATA / folder).glob("*.yaml")):
            yield from _inputs(parse(file.read_text(encoding="utf-8")))
    for file in sorted((DATA / "read").rglob("*")):
        if file.is_file():
            raw = file.read_bytes()
            if file.suffix == ".yaml":
                yield from _inputs(parse(raw))
            else:
                yield raw[:_LARGEST]


def _inputs(value: Any) -> Iterator[bytes]:
    """Yield the texts under ``input`` and ``metrics``, wherever they stand."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in {"input", "metrics"} and isinstance(one, str):
                yield one.encode()
            else:
                yield from _inputs(one)
    elif isinstance(value, list):
        for one in value:
            yield from _inputs(one)
