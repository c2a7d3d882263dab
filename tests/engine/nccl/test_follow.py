"""Files that grow, are replaced, cut short or deleted while they are followed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.nccl.follow import Follower
from tests.support import inspector


def seen(follower: Follower) -> list[tuple[int | None, int | None]]:
    return [(r.rank, r.sequence) for r in follower.poll()]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def lines(rank: int, *sequences: int) -> str:
    return "".join(f"{inspector.record(rank, n, 10)}\n" for n in sequences)


def test_what_is_added_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "node-1-pid1.log"
    file.write_text(lines(0, 1, 2))
    follower = Follower([tmp_path])
    assert seen(follower) == [(0, 1), (0, 2)]
    assert seen(follower) == []
    append(file, lines(0, 3))
    assert seen(follower) == [(0, 3)]
    follower.close()


def test_new_files_and_folders_are_found(tmp_path: Path) -> None:
    follower = Follower([tmp_path / "later"])
    assert seen(follower) == []
    assert list(follower.counts.errors) == [str(tmp_path / "later")]
    folder = tmp_path / "later" / "nccl-inspector-4711"
    folder.mkdir(parents=True)
    (folder / "a.log").write_text(lines(3, 1))
    (found,) = follower.poll()
    assert (found.rank, found.job) == (3, "4711")
    assert not follower.counts.errors
    follower.close()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    whole = lines(0, 1, 2)
    file.write_text(whole[:-40])
    follower = Follower([file])
    assert seen(follower) == [(0, 1)]
    append(file, whole[-40:])
    assert seen(follower) == [(0, 2)]
    assert follower.counts.bad == 0
    follower.close()


def test_a_file_that_begins_anew_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(lines(0, 1, 2, 3))
    follower = Follower([file])
    assert len(seen(follower)) == 3
    file.write_text(lines(0, 9))
    assert seen(follower) == [(0, 9)]
    assert follower.counts.truncated == 1
    follower.close()


def test_a_file_that_was_replaced_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(lines(0, 1))
    follower = Follower([file])
    seen(follower)
    append(file, lines(0, 2))
    file.rename(tmp_path / "a.log.1")
    file.write_text(lines(0, 3))
    found = [one for _ in range(3) for one in seen(follower)]
    assert found == [(0, 2), (0, 3)]
    assert follower.counts.rotated == 1
    follower.close()


def test_a_deleted_file_is_let_go(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(lines(0, 1))
    follower = Follower([tmp_path])
    seen(follower)
    file.unlink()
    for _ in range(40):
        assert seen(follower) == []
    assert (follower.counts.gone, follower.counts.files) == (1, 0)
    file.write_text(lines(0, 7))
    assert seen(follower) == [(0, 7)]
    follower.close()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.3\n" * 40_000)
    (tmp_path / "a.log").write_text(lines(0, 1))
    (tmp_path / "x.prom").write_text(inspector.prom(0, 1, 1))
    follower = Follower([tmp_path])
    assert seen(follower) == [(0, 1)]
    assert (follower.counts.files, follower.counts.other) == (1, 1)
    follower.close()


def test_text_for_node_exporter_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(inspector.prom(0, 1, 1))
    follower = Follower([tmp_path])
    assert seen(follower) == []
    assert follower.counts.other == 1
    follower.close()


def test_a_damaged_record_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(f"{lines(0, 1)}{inspector.record(0, 2, 10)[:-5]}\n{lines(0, 3)}")
    follower = Follower([file])
    assert seen(follower) == [(0, 1), (0, 3)]
    assert follower.counts.bad == 1
    follower.close()


def test_a_large_file_is_read_in_pieces_and_the_rest_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(lines(0, *range(8000)))
    follower = Follower([file])
    first = len(seen(follower))
    assert 0 < first < 8000
    assert follower.backlog > 0
    rest = 0
    while follower.backlog:
        rest += len(seen(follower))
    assert first + rest == 8000
    follower.close()


def test_a_line_longer_than_any_record_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(lines(0, 1) + "{" + "x" * (3 << 20))
    follower = Follower([file])
    for _ in range(8):
        seen(follower)
    append(file, "\n" + lines(0, 2))
    assert [one for _ in range(3) for one in seen(follower)] == [(0, 2)]
    follower.close()


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(1, 400), max_size=12))
def test_however_it_is_written_every_record_is_read_once(
    tmp_path_factory: object, cuts: list[int]
) -> None:
    folder: Path = tmp_path_factory.mktemp("f")  # type: ignore[attr-defined]
    file = folder / "a.log"
    whole = lines(0, *range(5))
    follower = Follower([file])
    found: list[int | None] = []
    at = 0
    for cut in [*cuts, len(whole)]:
        append(file, whole[at : at + cut])
        at += cut
        found += [sequence for _, sequence in seen(follower)]
    assert found == list(range(5))
    follower.close()
