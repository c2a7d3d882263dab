"""Unions, gaps and shares against a slow way to count: one cell of a list for each nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.traces.intervals import (
    Collector,
    Spans,
    complement,
    intersect,
    measure,
    overlap,
    subtract,
    union,
)

SIZE = 60
pairs = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=14)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([min(row) for row in rows], dtype=np.int64)
    ends = np.array([max(row) for row in rows], dtype=np.int64)
    return starts, ends


def cells(rows: list[tuple[int, int]]) -> np.ndarray:
    out = np.zeros(SIZE, dtype=bool)
    for row in rows:
        out[min(row) : max(row)] = True
    return out


def cells_of(spans: Spans) -> np.ndarray:
    return cells(list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)))


@given(pairs)
def test_union(rows: list[tuple[int, int]]) -> None:
    found = union(*arrays(rows))
    assert (cells_of(found) == cells(rows)).all()
    assert (found.starts[1:] > found.ends[:-1]).all()
    assert found.length == cells(rows).sum()


@given(pairs, pairs)
def test_two_lists(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = union(*arrays(one)), union(*arrays(other))
    assert (cells_of(intersect(a, b)) == (cells(one) & cells(other))).all()
    assert (cells_of(subtract(a, b)) == (cells(one) & ~cells(other))).all()
    assert overlap(a, b) == (cells(one) & cells(other)).sum()
    assert (cells_of(complement(a, 0, SIZE)) == ~cells(one)).all()


@given(pairs, pairs)
def test_what_is_covered(one: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    starts, ends = arrays(asked)
    found = measure(union(*arrays(one)), starts, ends)
    expected = [cells(one)[s:e].sum() for s, e in zip(starts, ends, strict=True)]
    assert found.tolist() == expected


@given(st.lists(pairs, max_size=6))
def test_a_collector_is_a_union(parts: list[list[tuple[int, int]]]) -> None:
    collector = Collector(1_000)
    for rows in parts:
        collector.add(*arrays(rows))
    every = [row for rows in parts for row in rows]
    assert (cells_of(collector.spans) == cells(every)).all()
    assert collector.length_ns == cells(every).sum()


def test_a_full_collector_keeps_the_length() -> None:
    collector = Collector(1_000)
    # A day of kernels of 8 us, 2 us apart, in pieces.
    for piece in range(20):
        starts = (np.arange(20_000, dtype=np.int64) + piece * 20_000) * 10_000
        collector.add(starts, starts + 8_000)
    collector.add(np.array([10**13]), np.array([10**13 + 5]))
    assert collector.length_ns == 20 * 20_000 * 8_000 + 5
    assert collector.spans.starts.size <= 1_000
    assert collector.tolerance_ns >= 2_000
