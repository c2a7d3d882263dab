"""Numbers as tools print them: read or refused, never raised over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.readers.quantities import decimal, integer, listed, median, plural, short, size_bytes


@pytest.mark.parametrize(
    ("text", "value"),
    [("42", 42), (" -7 ", -7), ("1.5", None), ("", None), ("٣", None), ("9" * 21, None)],
)
def test_integers(text: str, value: int | None) -> None:
    assert integer(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), ("1,5", 1.5), (".5", 0.5), ("1e3", 1e3), ("nan", None), ("-", None),
     ("1e999", None), ("N/A", None)],
)  # fmt: skip
def test_decimals(text: str, value: float | None) -> None:
    assert decimal(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("512 KiB", 524_288), ("1.5GB", 1.5e9), ("2G", 2**31), ("7", 7), ("3.6T", 3.6 * 2**40),
     ("x", None)],
)  # fmt: skip
def test_sizes(text: str, value: float | None) -> None:
    assert size_bytes(text) == value


def test_a_bare_letter_may_be_decimal() -> None:
    assert size_bytes("2G", binary=False) == 2e9


@given(st.text(max_size=40))
def test_nothing_raises(text: str) -> None:
    integer(text)
    decimal(text)
    size_bytes(text)
    assert len(short(text, 10)) <= 10


def test_lists_and_counts_in_words() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(range(20), 3) == "0, 1, 2 and 17 more"
    assert plural(1, "port") == "1 port"
    assert plural(2, "index", "indices") == "2 indices"


def test_the_middle_of_some_values() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0]) == 1.0
    assert median([]) == 0.0
