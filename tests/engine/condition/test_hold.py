import pytest

from engine.condition import Memo
from tests.engine.condition.world import AT, compiled, constant, frame, series

HOT = "gpu_temp > 80"


def held(text, hold_s, *given, **kwargs):
    made = frame(list(given), **kwargs)
    return compiled(text).held(made, Memo(made), hold_s).tolist()


@pytest.mark.parametrize(
    ("samples", "hold_s", "expected"),
    [
        (constant(88), 0, 1),
        (constant(88), 60, 1),
        (constant(88), 900, 1),
        (constant(70), 60, -1),
        # Cooler once within the hold time, or just before it.
        (series([88, 88, 70, 88, 88]), 60, -1),
        (series([70, 88, 88, 88, 88, 88]), 60, 1),
        # The history is as long as the hold time but for less than one interval, or too short.
        (series([88, 88, 88, 88]), 60, 1),
        (series([88, 88, 88]), 60, 0),
        ([(AT, 88)], 60, 0),
        ([], 60, 0),
        # A hold time below the sampling interval.
        (constant(88, step=60, count=10, at=AT - 20), 10, 1),
        # A gap longer than the lookback.
        ([*constant(88, at=AT - 400), *series([88, 88])], 600, 0),
        # Old samples only: unknown now.
        (constant(88, at=AT - 400), 60, 0),
    ],
)
def test_hold_time(samples, hold_s, expected):
    assert held(HOT, hold_s, {"gpu_temp": samples}) == [expected]


def test_signals_that_start_one_after_the_other():
    given = {"gpu_temp": constant(88, count=5), "sm_clock": constant(500, count=5, at=AT - 5)}
    assert held("gpu_temp > 80 and sm_clock < 900", 60, given) == [1]
    # A rate needs two samples: it can be judged from the second on.
    given = {"pcie_replay": series([k * 10 for k in range(5)])}
    assert held('rate(pcie_replay, "5m") > 0.1', 60, given) == [1]
    # A reading that was missing inside the span leaves it open.
    given = {
        "gpu_temp": constant(88),
        "sm_clock": [*constant(500, at=AT - 700), *constant(500, count=3)],
    }
    assert held("gpu_temp > 80 and sm_clock < 900", 600, given) == [0]


def test_without_times_nothing_is_held():
    assert held(HOT, 60, {"gpu_temp": constant(88)}, timed=False) == [0]
    assert held(HOT, 0, {"gpu_temp": constant(88)}, timed=False) == [1]
    assert held(HOT, 60, {"gpu_temp": constant(8)}, timed=False) == [-1]


def test_many_entities_and_siblings():
    given = [{"gpu_temp": constant(60 + k)} for k in range(20)]
    given[19] = {"gpu_temp": series([60] * 57 + [99] * 4)}
    text = "gpu_temp > siblings.median(gpu_temp) + 9"
    assert held(text, 30, *given) == [-1] * 19 + [1]
    assert held(text, 60, *given) == [-1] * 19 + [-1]
