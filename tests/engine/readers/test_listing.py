"""Listings of several hosts, prompts, and what bounds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from engine.catalogue import Catalogue
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, prompt_host


class Numbers(Listing[tuple[str | None, int]]):
    """A list of numbers under the word ``numbers``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"numbers",)

    def take(self, number: int, text: str) -> bool:
        word = text.strip()
        if word == "numbers":
            self.inside = True
        elif self.inside and word.isdigit():
            self.kept.add((self.host, int(word)))
        else:
            return False
        return True

    def judge(self, records: Sequence[tuple[str | None, int]]) -> Result:
        return Result(kinds=["numbers"], notes=[f"{host}={value}" for host, value in records])


def notes(catalogue: Catalogue, *lines: str) -> list[str]:
    reader = Numbers(Context(catalogue))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    return reader.finish().notes


def test_hosts_that_are_mixed_are_kept_apart(catalogue: Catalogue) -> None:
    lines = ("a: numbers", "b: numbers", "b: 2", "a: 1", "b: 3")
    assert notes(catalogue, *lines) == ["b=2", "a=1", "b=3"]


def test_a_listing_ends_after_foreign_lines(catalogue: Catalogue) -> None:
    assert notes(catalogue, "numbers", "1", "x", "2", "x", "y", "z", "3") == ["None=1", "None=2"]


def test_a_prompt_ends_a_listing_and_names_the_host_of_the_next(catalogue: Catalogue) -> None:
    lines = ("numbers", "1", "root@node-3:~# again", "2", "numbers", "3")
    assert notes(catalogue, *lines) == ["None=1", "node-3=3"]


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("root@node-3:~# nvidia-smi", "node-3"),
        ("[admin@gpu.example.org ~]$ nvidia-smi -q", "gpu.example.org"),
        ("nvidia-smi: command", None),
        ("| GPU  Name |", None),
        ("", None),
    ],
)
def test_a_prompt_names_its_host(line: str, host: str | None) -> None:
    assert prompt_host(line) == host


def test_records_are_bounded_and_the_rest_is_counted() -> None:
    kept: Kept[int] = Kept(3)
    assert [kept.add(i) for i in range(5)] == [True, True, True, False, False]
    assert kept.items == [0, 1, 2]
    assert kept.overflow == 2
