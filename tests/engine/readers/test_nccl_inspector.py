"""Inspector's records in what people paste."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.model import Read
from engine.readers import Reading, read
from engine.readers.base import Context
from engine.readers.nccl_inspector import NcclInspectorReader
from tests.support import inspector, packaged

SAMPLES = Path(__file__).parents[2] / "data" / "read"
CATALOGUE = packaged.knowledge()


def test_a_late_rank_is_the_cause(catalogue: Catalogue) -> None:
    text = inspector.text(inspector.job(30, late={5: 800}))
    answer = read(text.encode(), catalogue)
    assert answer.kinds == ("nccl_inspector",)
    assert answer.causes == ("straggler",)
    assert answer.unread_lines == 0
    late, durations = answer.findings
    assert late.entity is not None
    assert (late.id, late.entity.rank, late.entity.host) == ("straggler", 5, "node-1")
    assert late.data["operations"] == 30
    assert "gpuwhy why node-1" in late.action
    assert (durations.data["collective"], durations.data["operations"]) == ("AllReduce", 240)
    assert durations.data["busbw_gbs"] < durations.data["busbw_moving_gbs"]


def test_ranks_that_are_equal_are_no_fault(catalogue: Catalogue) -> None:
    answer = read(inspector.text(inspector.job(30)).encode(), catalogue)
    assert answer.causes == ()
    assert [f.id for f in answer.findings] == ["durations"]


def test_a_file_of_one_rank_says_who_is_missing(catalogue: Catalogue) -> None:
    lines = inspector.job(30)
    answer = read(inspector.text({2: lines[2]}).encode(), catalogue)
    assert answer.causes == ()
    assert any("7 of them" in note for note in answer.notes)
    assert any("gpuwhy nccl stats" in note for note in answer.notes)


def _several(texts: list[str], catalogue: Catalogue) -> tuple[list[Read], Read]:
    reading = Reading(catalogue)
    for rank, text in enumerate(texts):
        reading.add(f"node-1-pid{rank}.log", text.encode())
    parts, whole = reading.finish()
    assert whole is not None
    return parts, whole


def test_files_of_all_ranks_are_compared(catalogue: Catalogue) -> None:
    job = inspector.job(30, late={5: 800})
    parts, whole = _several([inspector.text({r: own}) for r, own in job.items()], catalogue)
    (durations,) = whole.findings
    assert durations.data["operations"] == 240
    assert not any("in none of these files" in note for note in whole.notes)
    # The late rank stands with its own file.
    assert [len(part.findings) for part in parts] == [0, 0, 0, 0, 0, 1, 0, 0]
    (late,) = parts[5].findings
    assert (late.id, late.line) == ("straggler", 1)
    assert parts[5].causes == ("straggler",)


def test_of_files_of_some_ranks_the_missing_are_told_once(catalogue: Catalogue) -> None:
    job = inspector.job(30)
    parts, whole = _several([inspector.text({r: job[r]}) for r in (0, 3)], catalogue)
    said = [n for part in (*parts, whole) for n in part.notes if "in none of these files" in n]
    assert len(said) == 1
    assert "6 of them" in said[0]


def test_documents_of_all_ranks_are_compared(catalogue: Catalogue) -> None:
    job = inspector.job(30, late={1: 900})
    texts = [json.dumps([json.loads(one) for one in own]) for own in job.values()]
    _, whole = _several(texts, catalogue)
    assert whole.causes == ("straggler",)
    assert {f.line for f in whole.findings} == {None}


def test_lines_behind_the_name_of_their_file(catalogue: Catalogue) -> None:
    lines = inspector.job(30, late={1: 500})
    text = "".join(f"a/node-1-pid{r}.log:{one}\n" for r, own in lines.items() for one in own)
    answer = read(text.encode(), catalogue)
    assert answer.causes == ("straggler",)


def test_a_record_over_several_lines_and_a_list_of_records(catalogue: Catalogue) -> None:
    one = json.loads(inspector.record(2, 7, 61974, size=17179869184))
    (found,) = read(json.dumps(one, indent=2).encode(), catalogue).findings
    assert found.data["size_bytes"] == 17179869184
    assert "61974" not in found.says
    assert "62 ms" in found.says
    records = [json.loads(x) for own in inspector.job(9, late={1: 900}).values() for x in own]
    assert read(json.dumps(records).encode(), catalogue).causes == ("straggler",)


def test_text_for_node_exporter_among_other_metrics(catalogue: Catalogue) -> None:
    text = "node_load1 3.2\n" + "".join(inspector.prom(g, 1000, 400) for g in range(8))
    answer = read(text.encode(), catalogue)
    assert "nccl_inspector" in answer.kinds
    (found,) = [f for f in answer.findings if f.kind == "nccl_inspector"]
    assert found.data["p50_us"] == 1000
    assert "straggler" not in answer.causes


def test_a_record_that_is_cut_off_is_told(catalogue: Catalogue) -> None:
    line = inspector.record(0, 1, 10)
    answer = read(f"{line}\n{line[:-4]}\n".encode(), catalogue)
    assert any("1 record(s)" in note for note in answer.notes)


@pytest.mark.parametrize(
    "name",
    ["nccl_inspector.jsonl", "nccl_inspector_readme.json", "nccl_inspector.prom"],
)
def test_the_samples_are_read_in_full(name: str, catalogue: Catalogue) -> None:
    answer = read(SAMPLES / name, catalogue)
    assert "nccl_inspector" in answer.kinds
    assert answer.findings
    assert answer.unread_lines == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=12))
def test_random_text_finds_nothing_and_never_raises(lines: list[str]) -> None:
    reader = NcclInspectorReader(Context(CATALOGUE))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert reader.finish().findings == []


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_record_never_raises(data: st.DataObject) -> None:
    reader = NcclInspectorReader(Context(CATALOGUE))
    lines = [*inspector.job(2, ranks=2)[0], *inspector.prom(0, 1, 2).splitlines()]
    for number, line in enumerate(lines, 1):
        at = data.draw(st.integers(0, len(line)))
        put = data.draw(st.sampled_from(["", "null", '"', "{", "9" * 40, "\x00", "-", "NaN", "]"]))
        cut = data.draw(st.integers(0, 8))
        reader.feed(number, line[:at] + put + line[at + cut :])
    reader.finish()


def test_a_trace_of_the_example_plugin_is_read_as_what_it_is(catalogue: Catalogue) -> None:
    answer = read(SAMPLES / "nccl_profiler_trace.json", catalogue)
    assert answer.kinds == ("nccl_profiler",)
    (found,) = answer.findings
    assert (found.data["operations"], found.data["timing_source"]) == (4, "kernel_gpu")
    assert answer.causes == ()


def test_a_trace_that_was_just_begun_holds_nothing(catalogue: Catalogue) -> None:
    text = (SAMPLES / "nccl_profiler_trace.json").read_text().splitlines()[:2]
    answer = read("\n".join(text).encode(), catalogue)
    assert answer.findings == ()
    assert any("no collective that ended" in note for note in answer.notes)


def test_the_process_of_the_late_rank_is_named(catalogue: Catalogue) -> None:
    (late, _) = read(SAMPLES / "nccl_inspector.jsonl", catalogue).findings
    assert "py-spy dump --pid 4005" in late.action
    assert "on node-2" in late.action
