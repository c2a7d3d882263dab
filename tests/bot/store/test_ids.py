"""Ids sort by time and cannot be guessed."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from bot.store.ids import IdMaker
from tests.support.stores import NOW


def test_an_id_is_a_uuid_of_version_7_with_its_time() -> None:
    found = uuid.UUID(IdMaker()(NOW))
    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert found.int >> 80 == int(NOW * 1000)


def test_the_same_random_bits_give_the_same_id() -> None:
    assert IdMaker(lambda bits: 2**bits - 1)(0.001) == "00000000-0001-7000-bfff-ffffffffffff"


def test_ids_of_two_makers_differ() -> None:
    makers = IdMaker(), IdMaker()
    assert len({make(NOW) for make in makers for _ in range(1000)}) == 2000


@given(st.lists(st.floats(min_value=0, max_value=2**37), min_size=2))
def test_ids_sort_in_the_order_they_were_made_even_if_the_clock_steps_back(
    moments: list[float],
) -> None:
    make = IdMaker()
    made = [make(now) for now in moments for _ in range(3)]
    assert made == sorted(set(made))


def test_more_ids_than_a_millisecond_holds_still_sort() -> None:
    make = IdMaker()
    made = [make(NOW) for _ in range(10_000)]
    assert made == sorted(set(made))
