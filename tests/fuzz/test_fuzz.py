"""A bounded run of the fuzzer; ``make fuzz`` runs a million inputs."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import batch, one

BATCHES = 8


@pytest.mark.parametrize("start", range(0, BATCHES * 500, 500))
def test_mutated_samples_neither_crash_nor_hang_nor_invent(start: int) -> None:
    assert batch(20_261_129, start) == []


def test_a_failing_input_can_be_made_again() -> None:
    assert one(1, 7) == one(1, 7) != one(1, 8)
