"""Calculators: the numbers, the units that they take, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.lookup.calc import CALCULATORS, calculate, from_words
from engine.lookup.calc.formulas import COLLECTIVES, busbw_factor
from engine.lookup.calc.units import read_number
from tests.support.shelf import catalogue


def results(name: str, *words: str) -> dict[str, float]:
    """Return what a calculator works out, by name."""
    found = calculate(name, words, catalogue())
    return {q.name: float(q.value) for q in found.results}


def outcome(work: Callable[[], Any]) -> Any:
    """Return what work returns, or the line that it is refused with."""
    try:
        return work()
    except UsageError as refused:
        return refused.one_line()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("busbw algbw=188.5 ranks=8", {"busbw": 329.875, "factor": 1.75}),
        ("busbw algbw=100 ranks=16 collective=all_gather", {"busbw": 93.75}),
        ("busbw algbw=100 ranks=16 collective=AllGather", {"busbw": 93.75}),
        ("busbw size=256M time=1423.7us ranks=8", {"algbw": 188.547}),
        ("busbw size=268435456 time=1423.7us ranks=8", {"algbw": 188.547, "busbw": 329.958}),
        ("busbw algbw=400Gb/s ranks=2 collective=broadcast", {"busbw": 50.0}),
        ("checkpoint params=70B", {"size": 140.0}),
        ("checkpoint params=70B bandwidth=200GB/s", {"size": 140.0, "time": 0.7}),
        ("checkpoint params=70B bandwidth=10Gb/s", {"time": 112.0}),
        ("checkpoint params=70b bytes_per_param=16", {"size": 1120.0}),
        ("ridge peak=989 bandwidth=3350", {"ridge point": 295.22}),
        ("ridge peak=989TFLOP/s bandwidth=3.35TB/s intensity=100", {"attainable": 335.0}),
        ("ridge gpu=h100_sxm", {"ridge point": 295.22}),
        ("ridge gpu=h100 intensity=1e4", {"attainable": 989.0, "share of peak": 100.0}),
        ("gemm m=4096 n=4096 k=4096", {"arithmetic intensity": 4096 / 3}),
        ("gemm m=1 n=4096 k=4096", {"arithmetic intensity": 0.9995}),
        (
            "kv_cache layers=80 kv_heads=8 head_dim=128 tokens=4096 memory=40GB",
            {"per token": 320.0, "per request": 1.34218, "requests that fit": 29},
        ),
        ("kv_cache layers=80 kv_heads=8 dtype=fp8", {"per token": 160.0}),
        ("mfu params=70B tokens_per_s=100k gpus=256 peak=989", {"MFU": 16.5887}),
        ("mfu params=7B tokens_per_s=50000tok/s gpus=8 gpu=h100_sxm", {"MFU": 26.542}),
    ],
)
def test_worked_examples(words: str, wanted: dict[str, float]) -> None:
    name, *given_ = words.split()
    found = results(name, *given_)
    for quantity, value in wanted.items():
        assert found[quantity] == pytest.approx(value, rel=1e-3), quantity


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("busw ranks=8", "did you mean 'busbw'?"),
        ("busbw", "busbw needs ranks"),
        ("busbw ranks=8", "needs algbw, or size and time"),
        ("busbw ranks=8 algbw=fast", "is no number"),
        ("busbw ranks=0 algbw=1", "out of bounds"),
        ("busbw ranks=7.5 algbw=1", "no whole number"),
        ("busbw ranks=8 algbw=1 colective=all_reduce", "did you mean 'collective'?"),
        ("busbw ranks=8 algbw=1 collective=all_redcue", "did you mean 'all_reduce'?"),
        ("busbw ranks=8 ranks=9 algbw=1", "given twice"),
        ("busbw 8", "names no input"),
        ("busbw ranks=8 algbw=5furlongs", "cannot be in 'furlongs'"),
        ("ridge gpu=h1000", "no GPU model"),
        ("checkpoint params=1e400", "out of bounds"),
        ("kv_cache layers=80 kv_heads=8 dtype=fp99", "no dtype"),
        ("busbw ranks=8 algbw=188,5", "is no number"),
        ("busbw ranks=8 algbw=400MB", "cannot be in 'MB'"),
        ("busbw ranks=8 algbw=1 size=1MB time=1s", "give algbw, or size and time"),
        ("busbw ranks=8 size=1MB time=0", "out of bounds"),
    ],
)
def test_what_is_refused_says_the_way_out(words: str, said: str) -> None:
    name, *given_ = words.split()
    with pytest.raises(UsageError) as refused:
        calculate(name, given_, catalogue())
    line = refused.value.one_line()
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("question", "calculator", "first"),
    [
        ("what is the busbw for algbw 188.5 GB/s with 8 ranks", "busbw", 329.875),
        ("busbw of an allgather at 100GB/s on 16 gpus", "busbw", 93.75),
        ("how long does a checkpoint of a 70B model take at 2 GB/s", "checkpoint", 140.0),
        ("ridge point of an H100", "ridge", 295.22),
        ("kv cache with 80 layers, 8 kv heads, head dim 128, 4096 tokens", "kv_cache", 320.0),
        ("busbw of 8 ranks at algbw 188.5 GB/s with reduced precision", "busbw", 329.875),
        ("kv cache 80 layers 64 heads 8 kv heads", "kv_cache", 320.0),
        ("busbw of an all-gather at 100GB/s on 16 gpus", "busbw", 93.75),
        ("busbw of reduce_scatter at 100GB/s on 16 gpus", "busbw", 93.75),
        ("MFU of a 7B model at 50000 tokens/s on 8 H100 gpus", "mfu", 26.542),
        ("arithmetic intensity of a gemm with m=1 n=4096 k=4096", "gemm", 0.9995),
    ],
)
def test_a_question_with_its_numbers_is_worked_out(
    question: str, calculator: str, first: float
) -> None:
    found = from_words(question, catalogue())
    assert found is not None
    assert found.calculator == calculator
    assert found.results[0].value == pytest.approx(first, rel=1e-3)


@pytest.mark.parametrize(
    "question",
    [
        "what is busbw",
        "why is busbw low on 8 gpus",
        "checkpoint takes 5 minutes",
        "kv cache full",
        "why is mfu only 30% on 8 h100 gpus with 70B params at 2000 tokens/s",
        "checkpoint of a 70B model at 2 GB/s took 300 s",
        "roofline for h100 vs a100",
        "algbw 100 GB/s 8 gpus per node 16 nodes busbw",
    ],
)
def test_a_question_without_its_numbers_is_not(question: str) -> None:
    assert from_words(question, catalogue()) is None


@given(st.sampled_from(COLLECTIVES), st.integers(1, 100_000))
def test_factors_lie_between_none_and_twice(collective: str, ranks: int) -> None:
    assert 0 <= busbw_factor(collective, ranks) < 2


@given(st.text(max_size=60), st.sampled_from(["GB/s", "bytes", "count", "s", "TFLOP/s", "GB"]))
def test_any_text_is_a_number_or_refused(text: str, unit: str) -> None:
    said = outcome(lambda: read_number(text, unit, "x"))
    assert isinstance(said, float) or "\n" not in said


@given(st.sampled_from(sorted(CALCULATORS)), st.lists(st.text(max_size=30), max_size=5))
def test_any_words_give_an_answer_or_one_line(name: str, words: list[str]) -> None:
    said = outcome(lambda: calculate(name, words, catalogue()))
    if isinstance(said, str):
        assert "\n" not in said
    else:
        assert all(isinstance(q.value, str) or math.isfinite(q.value) for q in said.results)


@given(st.text(max_size=200))
def test_any_question_is_worked_out_or_left_alone(text: str) -> None:
    from_words(f"busbw {text}", catalogue())
