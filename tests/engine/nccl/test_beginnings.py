"""What is said of a path that is to be followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.nccl.beginnings import doubts
from tests.support import inspector

KERNEL = "[    0.000000] Linux version 6.8.0\n[    1.000000] NVRM: loading\n"
TRACE = '[\n{"name": "AllReduce", "cat": "COLL", "ph": "b"},\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KERNEL, "holds no record"),
        ("node-1:1:2 [0] NCCL INFO Bootstrap : Using eth0\n", "holds no record"),
        (inspector.prom(0, 1000, 400), "text for node_exporter"),
    ],
)
def test_a_file_of_which_nothing_is_counted_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    for given in (path, tmp_path):
        (found,) = doubts(given)
        assert said in found
        assert "\n" not in found


@pytest.mark.parametrize(
    "text", [inspector.record(0, 1, 5) + "\n", TRACE, "", "[\n", '{"header": {']
)
def test_a_file_with_records_or_only_begun_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    assert list(doubts(path)) == []
    assert list(doubts(tmp_path)) == []


def test_a_folder_may_be_empty_or_hold_other_files_too(tmp_path: Path) -> None:
    assert list(doubts(tmp_path)) == []
    (tmp_path / "dmesg.log").write_text(KERNEL)
    (tmp_path / "host-pid1.log").write_text(inspector.record(0, 1, 5) + "\n")
    assert list(doubts(tmp_path)) == []


def test_what_is_absent_is_told(tmp_path: Path) -> None:
    assert list(doubts(tmp_path / "later")) == [f"{tmp_path / 'later'} is not there yet"]
