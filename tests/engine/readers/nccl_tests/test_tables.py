"""Tables of nccl-tests: what people pasted, variants of it, and what must never happen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers import read
from engine.readers.base import Context
from engine.readers.nccl_tests import NcclTestsReader
from tests.support import packaged
from tests.support.cases import Case, check, family, plain
from tests.support.yamlfiles import parse

DATA = Path(__file__).parents[3] / "data"
SAMPLE = (DATA / "read" / "nccl_tests.txt").read_text(encoding="utf-8")


def _variants() -> list[object]:
    raw = parse((DATA / "variants" / "nccl_tests.yaml").read_text(encoding="utf-8"))
    return [
        pytest.param(
            Case(
                id=one["name"],
                kind="nccl_tests",
                input=one["input"],
                decode=one.get("decode", {}),
                causes=tuple(one.get("causes", ())),
                causes_not=tuple(one.get("causes_not", ())),
                all_of=tuple(one.get("all_of", ())),
                none_of=tuple(one.get("none_of", ())),
                target=None,
                metrics=None,
            ),
            id=one["name"],
        )
        for one in raw["variants"]
    ]


@pytest.mark.parametrize("one", family("nccl_tests"), ids=str)
def test_a_case_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = read(one.input.encode(), catalogue)
    assert check(one, answer, plain(answer), catalogue) == []
    assert answer.unread_lines == 0


@pytest.mark.parametrize("one", _variants())
def test_a_variant_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = read(one.input.encode(), catalogue)
    assert check(one, answer, plain(answer), catalogue) == []


def test_every_finding_names_its_kind_and_only_known_causes(catalogue: Catalogue) -> None:
    for one in family("nccl_tests"):
        found = read(one.input.encode(), catalogue).findings
        mine = [finding for finding in found if finding.kind == "nccl_tests"]
        assert mine
        for finding in mine:
            assert finding.says
            assert finding.action
            assert finding.cause is None or finding.cause in catalogue.taxonomy


def test_corruption_comes_before_everything_else(catalogue: Catalogue) -> None:
    slow = "  8589934592 2147483648 float sum -1 93945.1 91.44 160.01 0 93950.0 91.43 160.00 0\n"
    wrong = "  8589934592 2147483648 float sum -1 31302.5 274.42 480.23 7 31300 274.4 480.2 0\n"
    device = "#  Rank  {}  Group 0 Pid 1 on h device {} [0000:04:00] NVIDIA H100 80GB HBM3\n"
    header = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5\n"
    listed = device.format(0, 0) + device.format(7, 7)
    text = header + listed + slow + header + listed + wrong
    answer = read(text.encode(), catalogue)
    assert answer.causes[0] == "data_corruption"
    assert "nvlink_degraded" in answer.causes


def test_a_log_of_other_things_is_left_alone(catalogue: Catalogue) -> None:
    text = b"""\
INFO sum of 12 float values computed in 3.2 ms
2026-07-10 03:12:44 worker 3: 128 256 float max 0.1 0.2
rate: 400 Gb/sec (4X NDR)
[  12.3] mlx5_core 0000:17:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)
perf stat: cache_perf 12 GB/s
"""
    answer = read(text, catalogue)
    assert "nccl_tests" not in answer.kinds
    assert not answer.causes


def test_many_runs_are_bounded(catalogue: Catalogue) -> None:
    reader = NcclTestsReader(Context(catalogue))
    row = "  8589934592 2147483648 float sum -1 31302.5 274.42 480.23 0 31300 274.4 480.2 0"
    for number in range(400):
        reader.feed(2 * number, "# Collective test starting: all_reduce_perf")
        reader.feed(2 * number + 1, row)
    result = reader.finish()
    assert any("more runs" in note for note in result.notes)


def test_many_rows_are_bounded(catalogue: Catalogue) -> None:
    reader = NcclTestsReader(Context(catalogue))
    for number in range(5000):
        reader.feed(
            number, f"{8 * number} {2 * number} float sum -1 31302.5 0.42 0.73 0 31300 0.42 0.73 0"
        )
    (finding,) = reader.finish().findings
    assert "904 more rows" in finding.says


CATALOGUE = packaged.knowledge()
_LINES = [line for line in SAMPLE.splitlines() if line.strip()]
_ODD = st.sampled_from(
    [
        "",
        "-",
        "nan",
        "inf",
        "1e999",
        "\u0663",
        "9" * 19,
        "0",
        "-1",
        "N/A",
        "*",
        "1e+06",
        "\x00",
        "|",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=120), max_size=20))
def test_random_text_finds_nothing_and_never_raises(lines: list[str]) -> None:
    reader = NcclTestsReader(Context(CATALOGUE))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert reader.finish().findings == []


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_table_never_raises(data: st.DataObject) -> None:
    reader = NcclTestsReader(Context(CATALOGUE))
    for number, line in enumerate(_LINES, 1):
        words = line.split(" ")
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(words) - 1))
            words[at] = data.draw(_ODD)
        text = " ".join(words)[: data.draw(st.integers(0, 200))]
        reader.feed(number, text)
    for finding in reader.finish().findings:
        assert finding.cause is None or finding.cause in CATALOGUE.taxonomy


def test_control_characters_of_a_name_are_not_repeated(catalogue: Catalogue) -> None:
    text = SAMPLE.replace("H100 80GB HBM3", "H100 80GB\x07 HBM3\x1b").replace("gpu-a-01", "h\x0001")
    for finding in read(text.encode(), catalogue).findings:
        assert finding.says.isprintable()
    document = (DATA / "read" / "nccl_tests.json").read_text(encoding="utf-8")
    document = document.replace("H100 80GB HBM3", "H100\\u001b\\n").replace("=Ring", "=Ri\\u0007ng")
    for finding in read(document.encode(), catalogue).findings:
        assert finding.says.isprintable()
