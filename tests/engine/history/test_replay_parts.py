"""The parts of a replay: what the tape keeps, how pieces shrink and grow, spans, two versions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import SourceError
from engine.history.episodes import Episodes, Fire
from engine.history.replaymodel import Ended
from engine.history.tape import SAMPLES_A_PIECE, Tape, pieces
from engine.history.versions import compare
from engine.model import Confidence, Entity, Kind
from engine.samples import Batch, RawSeries, Selection
from engine.sources.matching import clip
from tests.support.memory import MemorySource

GPU = Entity(Kind.GPU, "node-1:0")
KEY = ("rule", GPU.key)


def series(times: Sequence[float], name: str = "a") -> RawSeries:
    stamps = np.array(times, dtype=np.float64)
    return RawSeries(name, {"gpu": "0"}, stamps, stamps * 2)


@given(
    st.lists(st.integers(0, 2000), unique=True, min_size=1).map(sorted),
    st.lists(st.integers(1, 1999), unique=True).map(sorted),
    st.integers(1, 500),
)
def test_a_moment_sees_the_same_however_the_span_was_cut(times, cuts, window):
    whole, tape = series(times), Tape(float(window), (), 0.0)
    start = 0
    for end in [*cuts, 2000]:
        ts, values = clip(whole.ts, whole.values, start, end)  # both ends, as sources give it
        tape.add([RawSeries("a", whole.labels, ts, values)])
        seen = tape.at(float(end))
        ts, values = clip(whole.ts, whole.values, end - window, end)
        assert [one.ts.tolist() for one in seen] == ([ts.tolist()] if ts.size else [])
        assert [one.values.tolist() for one in seen] == ([values.tolist()] if ts.size else [])
        tape.forget(float(end))
        start = end


def test_of_a_gpu_that_fell_silent_the_last_reading_is_known_for_a_day():
    tape = Tape(900.0, ("life",), 86400.0)
    tape.add([series([0.0, 15.0, 30.0], "life"), series([0.0, 15.0], "other")])
    for moment in (3600.0, 80000.0):
        tape.forget(moment)
        assert [(s.name, s.ts.tolist()) for s in tape.at(moment)] == [("life", [30.0])]
    tape.forget(90000.0)
    assert len(tape) == 0


class Capped(MemorySource):
    """A server that refuses more samples than a limit."""

    def __init__(self, found: Sequence[RawSeries], limit: int) -> None:
        super().__init__(found)
        self.limit = limit

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        batch = await super().select(selections, at=at)
        if sum(one.ts.size for one in batch.series) > self.limit:
            raise SourceError("too many samples", code="source_limit")
        return batch


async def read(source: MemorySource, end: float, least_s: float = 60.0):
    def ask(span_s: float) -> list[Selection]:
        return [Selection(("a",), (), span_s)]

    return [p async for p in pieces(source, ask, 0.0, end, least_s=least_s)]


async def test_a_piece_that_is_refused_is_halved_and_nothing_is_lost():
    times = [float(t) for t in range(0, 7201, 15)]
    found = await read(Capped([series(times)], 15), 7200.0)
    tape = Tape(1e9, (), 0.0)
    for piece in found:
        assert piece.batch is not None
        tape.add(piece.batch.series)
    assert tape.at(7200.0)[0].ts.tolist() == times
    assert max(p.end - p.start for p in found) <= 225.0


async def test_pieces_grow_while_little_comes():
    found = await read(MemorySource([series([0.0, 40000.0])]), 80000.0)
    spans = [p.end - p.start for p in found]
    assert spans[0] < spans[1] < spans[2] <= 6 * 3600.0
    assert SAMPLES_A_PIECE * 16 < 64 << 20


async def test_what_is_refused_down_to_the_least_is_told_piece_by_piece():
    dense = [float(t) for t in range(1000, 1100)]
    found = await read(Capped([series([0.0, *dense, 1900.0])], 50), 1900.0)
    lost = [(p.start, p.end) for p in found if p.batch is None]
    assert lost
    assert all(end - start <= 60.0 for start, end in lost)
    assert min(s for s, _ in lost) >= 900.0
    assert max(e for _, e in lost) <= 1200.0


async def test_a_source_that_stops_answering_leaves_the_rest_unread():
    class Dying(MemorySource):
        async def select(self, selections, *, at):
            if at > 3000.0:
                raise SourceError("connection refused", code="source_unreachable")
            return await super().select(selections, at=at)

    found = await read(Dying([series([0.0, 100.0])]), 9000.0)
    assert found[0].batch is not None
    assert (found[-1].batch, found[-1].end) == (None, 9000.0)


@given(st.lists(st.sampled_from("fqug"), min_size=1, max_size=40))
def test_spans_cover_exactly_the_moments_that_fired(moments):
    """f fires, q is quiet, u is unknown, g could not be read."""
    episodes = Episodes(60.0)
    for k, state in enumerate(moments):
        if state == "g":
            episodes.unread()
            continue
        fired = {KEY: Fire(GPU, Confidence.LIKELY)} if state == "f" else {}
        why = Ended.UNKNOWN if state == "u" else Ended.OVER
        episodes.look(k * 60.0, fired, lambda _, why=why: why)
    episodes.finish()
    covered = {
        k for one in episodes.firings for k in range(int(one.start // 60), int(one.end // 60) + 1)
    }
    assert covered == {k for k, state in enumerate(moments) if state == "f"}
    total = sum(one.lasted_s for one in episodes.firings)
    assert total == 60.0 * moments.count("f")
    expect = {"q": Ended.OVER, "u": Ended.UNKNOWN, "g": Ended.UNREAD}
    for one in episodes.firings:
        after = int(one.end // 60) + 1
        ended = Ended.GOES_ON if after == len(moments) else expect[moments[after]]
        assert one.ended is ended


@pytest.mark.parametrize(
    ("before", "after", "differences", "same"),
    [
        ("ff..", "ff..", [], 1),
        ("ff..", "....", ["gone"], 0),
        ("....", ".ff.", ["new"], 0),
        ("ff..", "fff.", ["longer"], 0),
        ("ffff", ".f..", ["shorter"], 0),
        ("f.f.", "fff.", ["longer"], 0),
        ("f..f", "f...", ["gone"], 1),
    ],
)
def test_two_histories_are_compared_span_by_span(before, after, differences, same):
    changes, equal = compare(firings(before), firings(after))
    assert [str(change.difference) for change in changes] == differences
    assert equal == same


def firings(moments: str):
    episodes = Episodes(60.0)
    for k, state in enumerate(moments):
        fired = {KEY: Fire(GPU, None)} if state == "f" else {}
        episodes.look(k * 60.0, fired, lambda _: Ended.OVER)
    episodes.finish()
    return episodes.firings
