"""Ranks of a job left their Flight Records: who is missing, who called something else, what hangs."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.model import Finding, Read
from engine.readers import Reading, read
from engine.traces.flightrecorder.dump import rank_of
from engine.traces.flightrecorder.pickled import loads
from tests.support import packaged

# Hypothesis prints its arguments: the knowledge is none of them.
PACKAGED = packaged.knowledge()
START_NS = 1_732_900_000_000_000_000


def op(seq: int, state: str = "completed", **changes: Any) -> dict[str, Any]:
    """One entry, with the keys of version 2.10."""
    name = changes.pop("name", "all_reduce")
    group = changes.pop("group", ("0", "default_pg"))
    p2p = name.startswith(("send", "recv"))
    return {
        "frames": [
            {"name": name, "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2696},
            {"name": "train_step", "filename": "/srv/app/train.py", "line": 88},
        ],
        "record_id": seq,
        "pg_id": int(group[0]),
        "process_group": list(group),
        "collective_seq_id": 0 if p2p else seq,
        "p2p_seq_id": seq if p2p else 0,
        "op_id": seq,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": START_NS + seq * 1_000_000,
        "input_sizes": [[4096, 4096]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[4096, 4096]],
        "output_dtypes": ["BFloat16"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": False,
        "timeout_ms": 600_000,
        "is_p2p": p2p,
        **changes,
    }


def dump(
    *entries: dict[str, Any], groups: dict[str, tuple[str, list[int]]] | None = None
) -> dict[str, Any]:
    groups = groups or {"0": ("default_pg", [0, 1, 2, 3])}
    return {
        "version": "2.10",
        "pg_config": {
            key: {"name": key, "desc": desc, "ranks": str(ranks)}
            for key, (desc, ranks) in groups.items()
        },
        "pg_status": {},
        "entries": list(entries),
    }


def together(catalogue: Catalogue, dumps: dict[int, dict[str, Any]]) -> Read:
    reading = Reading(catalogue)
    for rank, one in dumps.items():
        raw = pickle.dumps(one, protocol=2) if rank % 2 else json.dumps(one).encode()
        reading.add(f"/tmp/nccl_trace_rank_{rank}", raw)
    parts, joint = reading.finish()
    return joint or parts[0]


def only(answer: Read) -> Finding:
    assert len(answer.findings) == 1, [f.says for f in answer.findings]
    return answer.findings[0]


def test_a_rank_that_never_called_the_collective_is_named(catalogue: Catalogue) -> None:
    past = [op(n) for n in range(1, 9)]
    full = [*past, op(9, "started")]
    answer = together(catalogue, {0: dump(*full), 1: dump(*full), 2: dump(*past), 3: dump(*full)})
    found = only(answer)
    assert found.id == "missing_rank"
    assert answer.causes == ("collective_hang",)
    assert found.data["missing_ranks"] == [2]
    assert found.data["waiting_ranks"] == [0, 1, 3]
    assert found.entity is not None
    assert found.entity.rank == 2
    assert "all_reduce number 9" in found.says
    assert "train_step (train.py:88)" in found.says


def test_a_rank_that_called_something_else_is_named(catalogue: Catalogue) -> None:
    past = [op(n) for n in range(1, 5)]
    full = dump(*past, op(5, "started"))
    other = dump(*past, op(5, "started", name="_all_gather_base"))
    found = only(together(catalogue, {0: full, 1: other, 2: full, 3: full}))
    assert (found.id, found.cause) == ("mismatch", "collective_mismatch")
    assert found.data["mismatched_ranks"] == [1]
    assert "_all_gather_base" in found.says


@pytest.mark.parametrize(
    "change", [{"input_sizes": [[4096, 4000]]}, {"input_dtypes": ["Float"]}], ids=["sizes", "types"]
)
def test_other_sizes_or_types_are_a_mismatch(catalogue: Catalogue, change: dict[str, Any]) -> None:
    full = dump(op(5, "started"))
    other = dump(op(5, "started", **change))
    found = only(together(catalogue, {0: full, 1: full, 2: full, 3: other}))
    assert found.cause == "collective_mismatch"
    assert found.data["mismatched_ranks"] == [3]


def test_uneven_all_to_all_is_no_mismatch(catalogue: Catalogue) -> None:
    dumps = {
        rank: dump(op(5, "started", name="all_to_allv", input_sizes=[[100 + rank]]))
        for rank in range(4)
    }
    assert only(together(catalogue, dumps)).id == "all_arrived"


def test_all_arrived_points_at_the_transport_and_at_no_rank(catalogue: Catalogue) -> None:
    full = dump(op(5), op(6, "started"))
    found = only(together(catalogue, dict.fromkeys(range(4), full)))
    assert (found.id, found.entity) == ("all_arrived", None)
    assert "No rank is missing" in found.says


def test_ranks_whose_gpu_has_not_come_to_it_are_named(catalogue: Catalogue) -> None:
    running, queued = dump(op(6, "started")), dump(op(6, "scheduled"))
    found = only(together(catalogue, {0: running, 1: running, 2: running, 3: queued}))
    assert found.id == "not_started"
    assert "rank 3" in found.says


def test_completed_on_some_points_at_a_link_of_the_others(catalogue: Catalogue) -> None:
    done, running = dump(op(6)), dump(op(6, "started"))
    found = only(together(catalogue, {0: done, 1: done, 2: done, 3: running}))
    assert found.id == "partly_completed"
    assert "rank 3" in found.says


def test_a_rank_without_a_dump_is_told_from_one_that_is_missing(catalogue: Catalogue) -> None:
    full = dump(op(6, "started"))
    found = only(together(catalogue, {0: full, 1: full, 3: full}))
    assert found.id == "no_dump"
    assert found.data["ranks_without_dump"] == [2]
    assert found.data["missing_ranks"] == []


def test_the_effect_in_another_group_stands_after_its_root(catalogue: Catalogue) -> None:
    groups = {"0": ("default_pg", [0, 1, 2, 3]), "1": ("tp", [2, 3])}
    tp = ("1", "tp")
    waits = dump(op(6, "started"), groups={"0": groups["0"]})
    stuck = dump(op(3, "started", group=tp), groups=groups)
    absent = dump(op(2, group=tp), groups=groups)
    answer = together(catalogue, {0: waits, 1: waits, 2: stuck, 3: absent})
    assert [f.id for f in answer.findings] == ["missing_rank", "missing_rank"]
    assert answer.findings[0].data["missing_ranks"] in ([3], [2, 3])
    answer = together(
        catalogue, {0: waits, 1: waits, 2: stuck, 3: dump(op(6, "started"), groups=groups)}
    )
    assert answer.causes[0].startswith("collective_")


def test_groups_called_in_different_order_wait_for_each_other(catalogue: Catalogue) -> None:
    groups = {"1": ("dp", [0, 1]), "2": ("tp", [0, 1])}
    dp, tp = ("1", "dp"), ("2", "tp")
    first = dump(op(1, "started", group=dp), groups=groups)
    second = dump(op(1, "started", group=tp), groups=groups)
    answer = together(catalogue, {0: first, 1: second})
    assert answer.findings[0].id == "crossed_groups"
    assert answer.causes[0] == "collective_mismatch"


def test_nothing_pending_is_said_and_blames_nobody(catalogue: Catalogue) -> None:
    answer = together(catalogue, dict.fromkeys(range(4), dump(op(1), op(2))))
    assert only(answer).id == "nothing_pending"
    assert answer.causes == ()


def test_pending_sends_are_said(catalogue: Catalogue) -> None:
    found = only(together(catalogue, {0: dump(op(1, "started", name="send 0->1"))}))
    assert found.id == "p2p_pending"
    assert "send 0->1" in found.says


def test_an_overwritten_entry_is_not_taken_for_a_missing_rank(catalogue: Catalogue) -> None:
    slow = dump(op(6, "started"))
    ahead = dump(op(2001))
    answer = together(catalogue, {0: slow, 1: ahead, 2: slow, 3: slow})
    assert only(answer).data["missing_ranks"] == []


def test_a_single_dump_says_that_the_others_are_needed(catalogue: Catalogue) -> None:
    answer = read(json.dumps(dump(op(6, "started"))).encode(), catalogue)
    assert only(answer).id == "no_dump"
    assert any("rank" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_12", 12),
        ("/tmp/comm_lib_trace_rank_0.json", 0),
        ("fr-7.pkl", 7),
        ("dump_3", 3),
        ("trace.json", None),
        ("node-3/trace.json", None),
        ("job_17_rank_4.pickle", 4),
    ],
)
def test_the_rank_is_in_the_file_name(name: str, rank: int | None) -> None:
    assert rank_of(name, {}) == rank


class _Calls:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("/tmp/gpuwhy-pickle-was-run",))


@pytest.mark.parametrize(
    "raw",
    [
        pickle.dumps({"version": "2.10", "pg_config": {}, "entries": _Calls()}, protocol=2),
        pickle.dumps({"pg_config": _Calls()}, protocol=5),
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueq\x00\x85R.",
        b"\x80\x02(X\x09\x00\x00\x00pg_configi__builtin__\neval\n.",
        b"\x80\x04\x8c\x09pg_config\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        b"\x80\x02X\x09\x00\x00\x00pg_configQ.",
    ],
    ids=["reduce", "protocol 5", "global", "inst", "stack global", "persistent"],
)
def test_a_pickle_that_would_run_something_is_refused(raw: bytes, catalogue: Catalogue) -> None:
    with pytest.raises(InputError, match="pickle"):
        read(raw, catalogue)
    assert not Path("/tmp/gpuwhy-pickle-was-run").exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x02X\x09\x00\x00\x00pg_configr\xff\xff\xff\x7f.",
        b"\x80\x02X\xff\xff\xff\x7fpg_config",
        b"\x80\x02}X\x09\x00\x00\x00pg_config",
        b"\x80\x05pg_config" + b"\x00" * 100,
        pickle.dumps({"pg_config": 1}, protocol=2),
        b"\x80\x02" + b"]" * 200_000 + b"pg_config.",
    ],
    ids=["memo bomb", "length", "cut", "zeros", "other", "deep"],
)
def test_a_broken_or_hostile_pickle_is_refused(raw: bytes, catalogue: Catalogue) -> None:
    with pytest.raises(InputError):
        read(raw, catalogue)


def test_lists_of_numbers_in_pytorchs_own_form_are_read() -> None:
    raw = b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R."
    assert loads(raw) == [1, 2]


@given(st.binary(max_size=200))
def test_no_pickle_makes_it_fail_otherwise(raw: bytes) -> None:
    with suppress(InputError):
        loads(b"\x80\x02" + raw)


_single = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
_flat = st.lists(_single, max_size=4) | st.dictionaries(st.text(max_size=12), _single, max_size=4)
_values = _single | _flat | st.lists(_flat, max_size=3)


@given(
    changes=st.dictionaries(st.sampled_from(sorted(op(3))), _values, max_size=5),
    tops=st.dictionaries(
        st.sampled_from(["pg_config", "pg_status", "entries", "version"]), _values, max_size=1
    ),
)
def test_malformed_entries_are_left_out(changes: dict[str, Any], tops: dict[str, Any]) -> None:
    whole = {**dump({**op(3, "started"), **changes}, op(2)), **tops}
    text = json.dumps(whole).encode("utf-8", "replace")
    for raw in (pickle.dumps(whole, protocol=2), text):
        with suppress(InputError):
            read(raw, PACKAGED)


def _doubled(times: int) -> list[Any]:
    value: list[Any] = ["a"]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "whole",
    [
        dump({**op(3), "process_group": _doubled(40)}),
        {**dump(op(3)), "pg_config": {"0": {"name": _doubled(40), "desc": "x", "ranks": "[0]"}}},
        dump(*[op(3)] * 100_000),
        {**dump(op(3)), "more": list(range(10**6, 3 * 10**6))},
    ],
    ids=["doubled lists", "doubled name", "one entry many times", "two million numbers"],
)
def test_a_pickle_that_unfolds_is_refused(whole: dict[str, Any], catalogue: Catalogue) -> None:
    with pytest.raises(InputError, match="pickle"):
        read(pickle.dumps(whole, protocol=2), catalogue)


def test_a_deeply_nested_pickle_is_refused(catalogue: Catalogue) -> None:
    nested = b"N" + b"\x85" * 300_000
    raw = (
        b"\x80\x02}(X\x07\x00\x00\x00versionX\x03\x00\x00\x002.4X\x09\x00\x00\x00pg_config" + nested
    )
    with pytest.raises(InputError, match="pickle"):
        read(raw + b"u.", catalogue)
