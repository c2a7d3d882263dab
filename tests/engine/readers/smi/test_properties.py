"""Whatever is pasted, readers of ``nvidia-smi`` neither raise nor see what is not there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.model import Read
from engine.readers import read
from engine.readers.base import Context, MakesReader
from engine.readers.bugreport import BugReportReader
from engine.readers.smi import (
    LspciReader,
    SmiAppsReader,
    SmiCsvReader,
    SmiLinkReader,
    SmiMessageReader,
    SmiMonitorReader,
    SmiProcessReader,
    SmiQueryReader,
    SmiTableReader,
    SmiTopologyReader,
    SmiXmlReader,
)
from tests.support import packaged
from tests.support.yamlfiles import parse

DATA = Path(__file__).parents[3] / "data"
READERS: tuple[MakesReader, ...] = (
    BugReportReader,
    LspciReader,
    SmiAppsReader,
    SmiCsvReader,
    SmiLinkReader,
    SmiMessageReader,
    SmiMonitorReader,
    SmiProcessReader,
    SmiQueryReader,
    SmiTableReader,
    SmiTopologyReader,
    SmiXmlReader,
)
# What stands in samples and may be put in the place of something else.
ODD = (
    "", "N/A", "[N/A]", "ERR!", "Unknown Error", "[GPU requires reset]", "nan", "-1", "1e999",
    "٣", "9" * 40, "0x" + "F" * 20, "%", ":", "|", ",", "\t", "GPU 99999", "\x00", "<", "²",
)  # fmt: skip


@cache
def knowledge() -> Catalogue:
    return packaged.knowledge()


@cache
def samples() -> tuple[str, ...]:
    files = [*(DATA / "read").glob("nvidia-smi*"), DATA / "read" / "lspci-vv.txt"]
    texts = [file.read_text(encoding="utf-8")[:4_000] for file in sorted(files)]
    for name in ("nvidia_smi", "nvidia_smi_healthy"):
        raw = parse((DATA / "variants" / f"{name}.yaml").read_text(encoding="utf-8"))
        texts += [one["input"][:3_000] for one in raw["variants"]]
    return tuple(texts)


def answer(text: str) -> Read:
    return read(text.encode("utf-8", "replace"), knowledge())


def alarms(found: Read) -> list[str]:
    return [f.says for f in found.findings if f.cause]


@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.text(max_size=120), max_size=30))
def test_a_reader_takes_any_lines(make: MakesReader, lines: list[str]) -> None:
    reader = make(Context(knowledge()))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert [f.cause for f in reader.finish().findings if f.cause] == []


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_sample_with_other_words_in_it_is_read(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(samples()))
    words = text.split(" ")
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at] = data.draw(st.sampled_from(ODD))
    answer(" ".join(words))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_two_samples_mixed_are_read(data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(samples())).splitlines() for _ in "12")
    cut = data.draw(st.integers(0, len(one)))
    lines = [*one[:cut], *other, *one[cut:]]
    width = data.draw(st.integers(1, 200))
    answer("\n".join(line[:width] for line in lines))


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="GPULink 0123456789:.,|<>[]%-+ErW/C()\n\t", max_size=600))
def test_the_alphabet_of_the_tool_alone_is_no_fault(text: str) -> None:
    assert alarms(answer(text)) == []


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_answer_is_the_same_twice(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(samples()))
    assert answer(text) == answer(text)
