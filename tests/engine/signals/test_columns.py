"""All signals in one pass give what one signal after the other, sample by sample, would give."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue.types import Signal, Spelling
from engine.model import Entity, Kind
from engine.samples import Frame, RawSeries
from engine.signals.clean import FP64_BLANK, INT32_BLANK
from engine.signals.columns import fill
from engine.signals.labels import locate
from engine.signals.pieces import Piece, Tag

AT, WINDOW_S, GPUS = 1000.0, 100.0, 3
BLANKS = (INT32_BLANK, FP64_BLANK, 9.3e18, float("nan"), float("inf"))


def signal(name, kind, low, high):
    return Signal(name, name, "W", kind, "gpu", (), low=low, high=high)


SIGNALS = {s.id: s for s in (signal("a", "gauge", 0.0, 50.0), signal("b", "counter", None, None))}

sample = st.tuples(
    st.sampled_from([890.0, 900.0, 930.0, 960.0, 1000.0, 1010.0]),
    st.one_of(st.integers(-5, 100).map(float), st.sampled_from(BLANKS)),
)
one_series = st.tuples(
    st.sampled_from(sorted(SIGNALS)),
    st.integers(0, GPUS - 1),
    st.sampled_from([1.0, 0.5]),
    st.lists(sample, max_size=5, unique_by=lambda s: s[0]).map(sorted),
)


def as_piece(owner, scale, samples):
    ts = np.array([t for t, _ in samples])
    values = np.array([v for _, v in samples])
    place = locate({"UUID": f"GPU-{owner}"})
    spelling = Spelling("m", "W", scale)
    return Piece(
        Tag(owner, place, "x", lambda _: ()), RawSeries("m", {}, ts, values), spelling, scale
    )


def is_reading(value, scale, of):
    if not np.isfinite(value) or value >= 9.2e18 or FP64_BLANK <= value <= FP64_BLANK + 3:
        return False
    if of.kind != "counter" and INT32_BLANK <= value <= INT32_BLANK + 3:
        return False
    low = -np.inf if of.low is None else of.low
    high = np.inf if of.high is None else of.high
    return low <= value * scale <= high and not FP64_BLANK <= value * scale <= FP64_BLANK + 3


@given(st.lists(one_series, max_size=12))
def test_columns_hold_every_reading_inside_the_window_once(series):
    entities = [Entity(Kind.GPU, f"n:{i}") for i in range(GPUS)]
    frame = Frame(entities, AT, True, {}, {}, np.zeros(GPUS, dtype=np.int64), window_s=WINDOW_S)
    pieces = {}
    expected, dropped = {}, {}
    for name, owner, scale, samples in series:
        pieces.setdefault(name, []).append(as_piece(owner, scale, samples))
        for t, value in samples:
            if not AT - WINDOW_S <= t <= AT:
                continue
            if is_reading(value, scale, SIGNALS[name]):
                cell = expected.setdefault((name, owner), {})
                cell[t] = max(cell.get(t, -np.inf), value * scale)
            else:
                dropped[name, owner] = dropped.get((name, owner), 0) + 1

    fill(frame, SIGNALS, pieces)

    for name in SIGNALS:
        for owner in range(GPUS):
            ts, values = frame.samples(name, owner)
            assert dict(zip(ts.tolist(), values.tolist(), strict=True)) == expected.get(
                (name, owner), {}
            )
            assert (np.diff(ts) > 0).all()
    assert {key: sum(d.counts.values()) for key, d in frame.dropped.items()} == dropped
    assert set(frame.origins) == {(name, owner) for name, owner, _, _ in series}
