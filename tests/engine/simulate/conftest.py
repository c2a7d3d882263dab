"""Reads exporter text back, so that tests see what a scraper sees."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

Reading = dict[str, dict[str, float]]
_LINE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: \d+)?")


@pytest.fixture(scope="session")
def by_gpu() -> Callable[[str], Reading]:
    """Return a reader: exposition text to {metric: {gpu index: value}}, the last series wins.

    prometheus_client would rename DCGM's counters, whose names do not end in ``_total``.
    """

    def read(text: str) -> Reading:
        out: Reading = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                found = _LINE.fullmatch(line)
                assert found, line
                gpu = re.search(r'\bgpu="(\d+)"', found["labels"] or "")
                if gpu:
                    out.setdefault(found["name"], {})[gpu[1]] = float(found["value"])
        return out

    return read
