"""Errors of GPU programs: out of memory, CUDA and HIP errors, and text that only looks like them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.readers import read
from engine.readers.base import Context
from engine.readers.gpu_errors.memory import out_of_memory
from engine.readers.gpu_errors.reader import GpuErrorReader
from tests.support import packaged

DATA = Path(__file__).parents[2] / "data" / "read"
CATALOGUE = packaged.catalogue()
ENTRIES = CATALOGUE.entries["cuda_errors"]
SAMPLES = ("gpu-errors.txt", "gpu-errors-old.txt")


def test_the_samples() -> None:
    new = read((DATA / "gpu-errors.txt").read_bytes(), CATALOGUE)
    assert [f.id for f in new.findings] == ["out_of_memory", "illegal_address"]
    assert new.findings[0].data["ranks"] == [3]
    old = read((DATA / "gpu-errors-old.txt").read_bytes(), CATALOGUE)
    assert [f.id for f in old.findings] == ["out_of_memory"] * 3 + ["cublas_failed"]


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_every_error_is_found_by_each_of_its_names_and_messages(entry: dict[str, object]) -> None:
    words = [*entry["names"], *entry["messages"]]  # type: ignore[misc]
    for text in words:
        reader = GpuErrorReader(Context(CATALOGUE))
        assert reader.feed(1, f"RuntimeError: CUDA error: {text}")
        finding = reader.finish().findings[0]
        if finding.id != "out_of_memory":
            assert finding.id == entry["id"], text
        assert finding.cause is None or finding.cause in CATALOGUE.taxonomy


def test_messages_are_lower_case_and_each_stands_once() -> None:
    messages = [m for e in ENTRIES.values() for m in e["messages"]]
    assert messages == [m.lower() for m in messages]
    assert len(messages) == len(set(messages))


def test_memory_that_only_the_context_holds_is_no_neighbour() -> None:
    memory = out_of_memory(
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; "
        "22.11 GiB already allocated; 9.69 MiB free; 22.28 GiB reserved in total by PyTorch)"
    )
    assert memory is not None
    assert not memory.crowded


def test_as_many_kinds_as_there_may_be() -> None:
    reader = GpuErrorReader(Context(CATALOGUE))
    for number in range(2000):
        reader.feed(number, f"CUDA out of memory. Tried to allocate {number}.00 MiB. ")
        reader.feed(number, f"RuntimeError: CUDA error: strange thing {number}")
    assert len(reader.finish().findings) <= 512


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=120), max_size=20))
def test_random_text_holds_no_error(lines: list[str]) -> None:
    reader = GpuErrorReader(Context(CATALOGUE))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert reader.finish().findings == []


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(SAMPLES))
def test_a_damaged_sample_never_raises(data: st.DataObject, name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    at, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 60))
    put = data.draw(st.text(max_size=20))
    answer = read((text[:at] + put + text[at + size :]).encode("utf-8", "replace"), CATALOGUE)
    assert all(cause in CATALOGUE.taxonomy for cause in answer.causes)
