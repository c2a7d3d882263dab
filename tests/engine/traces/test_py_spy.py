"""Stacks of Python programs: what a process does, who waits for whom, what a recording is made of."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.model import Finding, Read
from engine.readers import Reading, read
from engine.traces.pyspy.frames import frame_of
from tests.support import packaged

PACKAGED = packaged.knowledge()
SAMPLES = Path(__file__).parents[2] / "data" / "read"
USER = ("train_step (train.py:88)", "main (train.py:140)", "<module> (train.py:160)")
STACKS = {
    "data_loader": (
        "wait (threading.py:324)",
        "get (queue.py:180)",
        "_try_get_data (torch/utils/data/dataloader.py:1163)",
        "__next__ (torch/utils/data/dataloader.py:631)",
    ),
    "collective": ("all_reduce (torch/distributed/distributed_c10d.py:2696)",),
    "checkpoint": ("_save (torch/serialization.py:890)", "save (torch/serialization.py:629)"),
    "allocator": ("empty_cache (torch/cuda/memory.py:170)",),
    "gpu_sync": ("synchronize (torch/cuda/__init__.py:950)",),
    "compiling": ("compile (triton/compiler/compiler.py:300)",),
    "debugger": ("cmdloop (pdb.py:262)", "interaction (pdb.py:357)"),
    "rendezvous": ("_store_based_barrier (torch/distributed/distributed_c10d.py:700)",),
    "network_call": ("urlopen (urllib3/connectionpool.py:715)",),
    "lock": ("wait (threading.py:324)",),
}


def dump(pid: int, *frames: str, state: str = "idle") -> str:
    rows = [
        f"Process {pid}: python -u train.py",
        "Python v3.11.9 (/opt/venv/bin/python)",
        "",
        f'Thread {pid} ({state}): "MainThread"',
        *(f"    {frame}" for frame in frames),
        f'Thread {pid + 1} (idle): "tqdm"',
        "    wait (threading.py:324)",
        "",
    ]
    return "\n".join(rows) + "\n"


def findings(text: str, catalogue: Catalogue) -> list[Finding]:
    return list(read(text.encode(), catalogue).findings)


@pytest.mark.parametrize("activity", STACKS)
def test_what_a_process_does_is_said(activity: str, catalogue: Catalogue) -> None:
    found = findings(dump(4211, *STACKS[activity], *USER), catalogue)
    assert [f.id for f in found] == [activity]
    assert "train_step (train.py:88)" in found[0].says
    assert found[0].data["pid"] == 4211


def test_full_paths_are_known_as_well(catalogue: Catalogue) -> None:
    root = "/opt/venv/lib/python3.11/site-packages/"
    frames = [
        "get (/usr/lib/python3.11/queue.py:180)",
        f"_try_get_data ({root}torch/utils/data/dataloader.py:1163)",
    ]
    assert findings(dump(7, *frames, *USER), catalogue)[0].id == "data_loader"


def test_the_process_that_the_others_wait_for_is_named(catalogue: Catalogue) -> None:
    waits = [dump(pid, *STACKS["collective"], *USER) for pid in (10, 20, 30)]
    late = dump(40, *STACKS["data_loader"], "main (train.py:130)")
    answer = read("".join([*waits[:2], late, waits[2]]).encode(), catalogue)
    assert [f.data["pid"] for f in answer.findings] == [40]
    assert answer.causes == ("data_loader_stall",)
    assert "3 other(s) wait for it" in answer.findings[0].says


def test_it_is_named_across_files_too(catalogue: Catalogue) -> None:
    reading = Reading(catalogue)
    reading.add("rank0", dump(10, *STACKS["collective"], *USER).encode())
    reading.add("rank1", dump(20, *STACKS["debugger"], *USER).encode())
    parts, _ = reading.finish()
    assert [f.id for f in parts[0].findings] == []
    assert [(f.id, f.line) for f in parts[1].findings] == [("elsewhere", 1)]


def test_ranks_at_different_places_are_a_mismatch(catalogue: Catalogue) -> None:
    same = [dump(pid, *STACKS["collective"], *USER) for pid in (10, 20, 30)]
    odd = dump(40, "broadcast (torch/distributed/distributed_c10d.py:2400)", "sync (eval.py:9)")
    answer = read("".join([*same, odd]).encode(), catalogue)
    assert answer.causes == ("collective_mismatch",)
    assert "eval.py:9" in answer.findings[0].says


def test_all_in_one_place_blames_no_process(catalogue: Catalogue) -> None:
    text = "".join(dump(pid, *STACKS["collective"], *USER) for pid in (10, 20))
    assert [f.id for f in findings(text, catalogue)] == ["all_wait"]


def test_several_moments_of_one_process(catalogue: Catalogue) -> None:
    once = dump(10, *STACKS["collective"], *USER)
    answer = read((once * 3).encode(), catalogue)
    assert any("same stack" in note for note in answer.notes)
    other = dump(10, "forward (torch/nn/modules/linear.py:114)", *USER)
    answer = read((once + other).encode(), catalogue)
    assert any("it moves" in note for note in answer.notes)


def test_workers_of_the_data_loader_are_no_ranks(catalogue: Catalogue) -> None:
    worker = dump(
        50, "load (PIL/ImageFile.py:270)", "_worker_loop (torch/utils/data/_utils/worker.py:308)"
    )
    answer = read((dump(10, *STACKS["data_loader"], *USER) + worker).encode(), catalogue)
    assert [f.data["pid"] for f in answer.findings] == [10]
    assert any("1 of 1 data loader worker" in note for note in answer.notes)


def test_locals_are_passed_over(catalogue: Catalogue) -> None:
    text = dump(10, *STACKS["collective"], *USER).replace(
        "    train_step (train.py:88)\n",
        '    train_step (train.py:88)\n        Arguments:\n            token: "hf_secret"\n',
    )
    answer = read(text.encode(), catalogue)
    assert answer.unread_lines == 0
    assert "hf_secret" not in repr(answer)


def test_json_and_faulthandler(catalogue: Catalogue) -> None:
    frames = [
        {"name": "synchronize", "filename": "torch/cuda/__init__.py", "line": 950},
        {"name": "main", "filename": "/srv/train.py", "line": 3},
    ]
    threads = [
        {"pid": 9, "thread_id": 1, "thread_name": "MainThread", "active": False, "frames": frames}
    ]
    assert findings(json.dumps(threads, indent=2), catalogue)[0].id == "gpu_sync"
    answer: Read = read(SAMPLES / "faulthandler.txt", catalogue)
    assert answer.findings[0].id == "collective"


def test_a_recording_is_added_up(catalogue: Catalogue) -> None:
    answer = read(SAMPLES / "py-spy-raw.txt", catalogue)
    assert answer.kinds == ("py_spy_raw",)
    assert answer.causes == ("data_loader_stall",)
    assert answer.findings[0].data["share_percent"] == pytest.approx(73.02, abs=0.01)
    assert "train_step (train.py:88) 27.0 %" in answer.findings[-1].says


def test_a_recording_of_plain_work_blames_nothing(catalogue: Catalogue) -> None:
    rows = [
        "<module> (t.py:1);step (t.py:9);forward (torch/nn/modules/linear.py:114) 900",
        "<module> (t.py:1);step (t.py:9);_engine_run_backward (torch/autograd/graph.py:700) 95",
    ]
    answer = read("\n".join(rows).encode(), catalogue)
    assert answer.causes == ()
    assert [f.id for f in answer.findings] == ["shares"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("wait (threading.py:324)", "wait (threading.py:324)"),
        ("_PyEval_EvalFrame (libpython3.10.so)", "_PyEval_EvalFrame (libpython3.10.so)"),
        ("<listcomp> (a/b.py:1)", "<listcomp> (a/b.py:1)"),
        ("no frame at all", None),
        ("f ()", None),
    ],
)
def test_frames(text: str, shown: str | None) -> None:
    frame = frame_of(text)
    assert (frame.shown if frame else None) == shown


_line = st.sampled_from(
    [
        "Process 1: python",
        'Thread 1 (idle): "MainThread"',
        "Thread 0x7f (active+gil)",
        "    f (a.py:1)",
        "        x: 1",
        "Current thread 0x00007f2c (most recent call first):",
        '  File "a.py", line 1 in f',
        "a (b.py:1);c (d.py:2) 12",
        "",
    ]
) | st.text(max_size=30)


@given(st.lists(_line, max_size=20))
def test_no_text_makes_it_fail(lines: list[str]) -> None:
    with suppress(InputError):  # what is mostly control characters is refused as binary
        read("\n".join(lines).encode("utf-8", "replace"), PACKAGED)
