"""Who the others wait for: the rank with the shortest time, never the one with the longest."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model import Confidence, Kind
from engine.nccl import NcclStats, Tally, summary
from engine.nccl.files import Given, tally_of
from engine.nccl.sketch import Sketch
from tests.support import inspector


def stats(text: str) -> NcclStats:
    tally = Tally()
    tally_of([Given("f", [text.encode()])], tally)
    return summary(tally)


def of_job(lines: Mapping[int, list[str]]) -> NcclStats:
    return stats(inspector.text(lines))


def test_the_late_rank_is_named_with_the_proof() -> None:
    found = of_job(inspector.job(40, late={5: 800}))
    (late,) = found.stragglers
    assert (late.entity.kind, late.entity.rank, late.entity.host) == (Kind.RANK, 5, "node-1")
    assert late.confidence is Confidence.LIKELY
    assert (late.operations, late.last_share, late.caused_share) == (40, 1.0, 1.0)
    assert late.wait_us == pytest.approx(800, rel=0.02)
    assert "Rank 5 on node-1 arrives last in 100 % of 40 operations" in late.says
    assert "shortest is the late one" in late.says


def test_equal_ranks_are_no_stragglers() -> None:
    found = of_job(inspector.job(200))
    assert found.stragglers == ()
    (comm,) = found.communicators
    assert comm.wait_share is not None
    assert comm.wait_share < 0.02


def test_noise_of_single_operations_names_nobody() -> None:
    rng = random.Random(4)
    lines: dict[int, list[str]] = {rank: [] for rank in range(8)}
    for sequence in range(300):
        for rank, own in lines.items():
            own.append(inspector.record(rank, sequence, 1000 + rng.randrange(900)))
    found = of_job(lines)
    assert found.stragglers == ()
    assert any("no rank in particular" in note for note in found.notes)


def test_short_waits_are_the_noise_of_small_messages() -> None:
    assert of_job(inspector.job(200, base_us=20, late={1: 10}, size=8192)).stragglers == ()


def test_few_operations_are_only_possible() -> None:
    (late,) = of_job(inspector.job(3, late={1: 900})).stragglers
    assert late.confidence is Confidence.POSSIBLE
    assert "Only 3 operation(s)" in late.says


def test_a_host_is_named_where_its_ranks_take_turns() -> None:
    lines: dict[int, list[str]] = {rank: [] for rank in range(32)}
    for sequence in range(80):
        slow = 8 + sequence % 8
        for rank, own in lines.items():
            delay = 700 if rank == slow else 0
            own.append(
                inspector.record(
                    rank, sequence, 1700 - delay, ranks=32, nodes=4, host=f"node-{rank // 8 + 1}"
                )
            )
    (late,) = of_job(lines).stragglers
    assert (late.entity.kind, late.entity.name) == (Kind.NODE, "node-2")


def test_of_operations_with_a_root_nobody_is_blamed() -> None:
    found = of_job(inspector.job(60, late={0: 900}, collective="Broadcast"))
    assert found.stragglers == ()
    assert any("with a root" in note for note in found.notes)


def test_ranks_that_were_not_seen_are_told() -> None:
    lines = inspector.job(30)
    del lines[3], lines[6]
    found = of_job(lines)
    assert found.communicators[0].missing == (3, 6)
    assert any("2 of them (3, 6)" in note for note in found.notes)


def test_communicators_are_kept_apart() -> None:
    one = inspector.job(30, comm="0x1", late={1: 600})
    other = inspector.job(30, comm="0x2", comm_name="TP 0")
    found = stats(inspector.text(one) + inspector.text(other))
    assert [s.comm for s in found.stragglers] == ["0x1"]
    assert len(found.groups) == 2


def test_averages_name_a_gpu_as_possible_only() -> None:
    text = "".join(inspector.prom(g, 300 if g == 5 else 1000, 400) for g in range(8))
    (late,) = stats(text).stragglers
    assert (late.entity.name, late.confidence) == ("node-1:5", Confidence.POSSIBLE)


@pytest.mark.parametrize("name", ["unknown", ""])
def test_averages_of_communicators_without_a_name_are_not_compared(name: str) -> None:
    text = "".join(
        inspector.prom(g, 300 if g == 5 else 1000, 400, comm_name=name) for g in range(8)
    )
    assert stats(text).stragglers == ()


def test_averages_of_more_gpus_than_ranks_are_of_several_communicators() -> None:
    text = "".join(
        inspector.prom(g, 300 if g == 5 else 1000, 400, node=f"n{n}")
        for g in range(8)
        for n in (1, 2)
    )
    assert stats(text).stragglers == ()


def test_many_records_are_thinned_the_same_way_on_every_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from engine.nccl.matches import Matches

    monkeypatch.setattr(Matches, "LIMIT", 500)
    found = of_job(inspector.job(400, ranks=4, late={2: 800}))
    (late,) = found.stragglers
    assert late.entity.rank == 2
    assert late.last_share == 1.0
    assert found.communicators[0].compared < 400
    assert any("one of" in note for note in found.notes)
    assert found.groups[0].count == 1600


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "GROUPS", 3)
    monkeypatch.setattr(Tally, "MEMBERS", 4)
    lines = [inspector.record(r, 1, 10, comm=f"0x{c}") for r in range(4) for c in range(9)]
    found = stats("\n".join(lines) + "\n")
    assert len(found.groups) == 3
    assert found.left_out == 24
    assert any("in no group" in note for note in found.notes)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.9, 1.0])
)
def test_a_quantile_is_off_by_a_hundredth_at_most(values: list[float], share: float) -> None:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    exact = sorted(values)[int(share * (len(values) - 1))]
    spread = max(values) / min(values)
    if spread < 80:  # beyond that the highest buckets are merged
        assert sketch.quantile(share) == pytest.approx(exact, rel=0.0101)
    assert min(values) <= sketch.quantile(share) <= max(values)


def test_a_file_that_is_only_a_sample_is_told() -> None:
    lines = [inspector.record(rank, 40 * n + rank, 900) for n in range(20) for rank in range(2)]
    found = stats("\n".join(lines) + "\n")
    (note,) = [n for n in found.notes if "has records" in n]
    assert "Only 2.6 % of AllReduce" in note
    assert "before NCCL 2.30" in note


def test_a_whole_file_is_not_called_a_sample() -> None:
    assert not any("has records" in n for n in of_job(inspector.job(30)).notes)
