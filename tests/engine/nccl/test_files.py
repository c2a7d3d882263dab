"""Files and folders of records; logs without durations are told from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.nccl import Tally, summary
from engine.nccl.files import Files, Given, given, tally_of
from tests.support import inspector

DEBUG_LOG = """\
node-1:4000:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node-1:4000:4242 [0] NCCL INFO AllReduce: opCount 3 sendbuff 0x7f recvbuff 0x7f count 262144
"""


def read(*texts: str | bytes) -> tuple[Tally, Files]:
    tally = Tally()
    raw = [t.encode() if isinstance(t, str) else t for t in texts]
    return tally, tally_of([Given(f"f{i}", [t]) for i, t in enumerate(raw)], tally)


def write(folder: Path, lines: dict[int, list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for rank, one in lines.items():
        text = "".join(f"{line}\n" for line in one)
        (folder / f"node-1-pid{4000 + rank}.log").write_text(text)


def test_the_three_formats_are_told_apart() -> None:
    tally, files = read(
        inspector.text(inspector.job(2)),
        inspector.prom(0, 10, 5),
        "\n".join(inspector.trace(0, {1: 5.0, 2: 6.0})),
    )
    assert files.sources == ["inspector", "inspector_prometheus", "plugin_trace"]
    assert tally.records == 16 + 1 + 2
    assert files.unread_lines == 0


def test_a_record_over_several_lines_is_read() -> None:
    import json

    pretty = json.dumps(json.loads(inspector.record(0, 1, 10)), indent=2)
    tally, files = read(f"{pretty}\n{pretty}\n{inspector.record(1, 1, 12)}\n")
    assert (tally.records, files.unread_lines) == (3, 0)


def test_a_line_that_is_cut_off_is_counted() -> None:
    line = inspector.record(0, 1, 10)
    tally, files = read(f"{line}\n{line[:-9]}\n")
    assert (tally.records, files.unread_lines) == (1, 1)


def test_a_folder_is_read_with_what_is_packed_and_the_rest_is_skipped(tmp_path: Path) -> None:
    write(tmp_path / "nccl-inspector-4711", inspector.job(3, ranks=2))
    packed = gzip.compress(inspector.record(2, 1, 10).encode())
    (tmp_path / "node-2-pid1.log.gz").write_bytes(packed)
    (tmp_path / "train.log").write_text(DEBUG_LOG)
    (tmp_path / "notes.md").write_text("nothing")
    tally = Tally()
    files = tally_of(given([tmp_path]), tally)
    assert (tally.records, files.files, files.others) == (7, 3, 1)
    (warning,) = files.warnings
    assert "train.log is an NCCL_DEBUG log" in warning


def test_a_log_of_nccl_holds_no_durations_and_the_answer_says_what_does() -> None:
    with pytest.raises(InputError) as caught:
        read(DEBUG_LOG)
    said = caught.value.one_line()
    assert caught.value.code == "no_durations"
    assert "\n" not in said
    assert "no duration" in said
    assert "NCCL_PROFILER_PLUGIN" in said
    assert "NCCL_INSPECTOR_ENABLE=1" in said
    assert "Flight" in said
    assert len(said) < 200


def test_what_holds_no_record_is_told_shortly_with_what_to_do(tmp_path: Path) -> None:
    for text in ("", "[    0.000000] Linux version 6.8.0\n"):
        with pytest.raises(InputError) as caught:
            read(text)
        assert len(caught.value.one_line()) < 200
        assert "gpuwhy read FILE" in caught.value.one_line()
    with pytest.raises(InputError) as caught:
        given([tmp_path])
    assert len(caught.value.one_line()) - len(str(tmp_path)) < 192


def test_a_folder_of_such_logs_says_so_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "b.log").write_text(DEBUG_LOG)
    with pytest.raises(InputError, match=r"b\.log is an NCCL_DEBUG log"):
        tally_of(given([tmp_path]), Tally())


def test_a_folder_without_files_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no file of NCCL Inspector") as caught:
        given([tmp_path])
    assert "NCCL_PROFILER_PLUGIN" in caught.value.one_line()


def test_one_file_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    tally = Tally()
    sources = [Given("none", tmp_path / "none"), Given("f", [inspector.record(0, 1, 5).encode()])]
    files = tally_of(sources, tally)
    assert tally.records == 1
    (error,) = files.errors
    assert "none" in error.message


def test_a_file_that_is_missing_is_told() -> None:
    with pytest.raises(InputError, match="cannot read"):
        tally_of([Given("none", Path("/does/not/exist"))], Tally())


def test_the_order_of_files_changes_nothing() -> None:
    lines = inspector.job(30, late={2: 400})
    texts = [inspector.text({rank: one}) for rank, one in lines.items()]
    first = summary(read(*texts)[0])
    second = summary(read(*reversed(texts))[0])
    assert first.stragglers == second.stragglers
    assert first.groups == second.groups
