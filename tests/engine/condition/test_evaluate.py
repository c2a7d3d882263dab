"""What conditions mean, on samples written by hand. `judge` evaluates both ways and compares."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.condition import Memo
from engine.errors import UsageError
from engine.samples import Dropped
from tests.engine.condition.expressions import Maker
from tests.engine.condition.world import (
    AT,
    H100,
    compiled,
    constant,
    frame,
    judge,
    judge_all,
    series,
)

TRUE, UNKNOWN, FALSE = 1, 0, -1

RISING = {"gpu_temp": series([70, 71, 72, 73, 74])}
COUNTER = {"pcie_replay": series([100, 110, 120, 5, 9])}

CASES = [
    ("gpu_temp == 74", RISING, TRUE),
    ('avg(gpu_temp, "5m") == 72', RISING, TRUE),
    ('min(gpu_temp, "5m") == 70', RISING, TRUE),
    ('max(gpu_temp, "5m") == 74', RISING, TRUE),
    ('quantile(0.5, gpu_temp, "5m") == 72', RISING, TRUE),
    ('quantile(0.125, gpu_temp, "5m") == 70.5', RISING, TRUE),
    ('quantile(1, gpu_temp, "5m") == 74', RISING, TRUE),
    ('changes(gpu_temp, "5m") == 4', RISING, TRUE),
    ('abs(stddev(gpu_temp, "5m") - 1.4142135) < 1e-6', RISING, TRUE),
    # Closed at both ends: 30 s back are the samples at 0, 15 and 30 s.
    ('avg(gpu_temp, "30s") == 73', RISING, TRUE),
    ('avg(gpu_temp, "29s") == 73.5', RISING, TRUE),
    # Last minus first with what the reset lost: 9 - 100 + 120.
    ('increase(pcie_replay, "5m") == 29', COUNTER, TRUE),
    ('abs(rate(pcie_replay, "5m") - 29 / 60) < 1e-9', COUNTER, TRUE),
    ('increase(pcie_replay, "45s") == 19', COUNTER, TRUE),
    ('increase(pcie_replay, "10s") > 0', COUNTER, UNKNOWN),
    ('increase(pcie_replay, "5m") == 0', {"pcie_replay": constant(7)}, TRUE),
    # Equal samples have exactly their own average.
    ('avg(sm_active, "5m") >= 0.7', {"sm_active": constant(0.7)}, TRUE),
    ('avg(sm_active, "5m") <= 0.1', {"sm_active": constant(0.1, count=7)}, TRUE),
    ('quantile(0.9, sm_active, "5m") >= 0.7', {"sm_active": constant(0.7)}, TRUE),
    # One sample.
    *[(f'{f}(gpu_temp, "5m") == 88', {"gpu_temp": [(AT, 88)]}, TRUE) for f in ("avg", "min", "max")],
    ('quantile(0.3, gpu_temp, "5m") == 88', {"gpu_temp": [(AT - 7, 88)]}, TRUE),
    *[(f'{f}(gpu_temp, "5m") >= 0', {"gpu_temp": [(AT, 88)]}, UNKNOWN) for f in ("changes", "stddev")],
    *[(f'{f}(pcie_replay, "5m") >= 0', {"pcie_replay": [(AT, 8)]}, UNKNOWN) for f in ("rate", "increase")],
    # Two samples at one time have no rate.
    ('rate(pcie_replay, "5m") >= 0', {"pcie_replay": [(AT, 8), (AT, 9)]}, UNKNOWN),
    # Nothing in the window, nothing at all, samples after `at`.
    ('avg(gpu_temp, "1m") > 0', {"gpu_temp": [(AT - 61, 88)]}, UNKNOWN),
    ('avg(gpu_temp, "1m") > 0', {}, UNKNOWN),
    ("gpu_temp == 88", {"gpu_temp": [(AT - 300, 88), (AT + 1, 99)]}, TRUE),
    ("gpu_temp > 0", {"gpu_temp": [(AT - 301, 88)]}, UNKNOWN),
    # Age looks at the whole window fetched.
    ("age(gpu_temp) == 700", {"gpu_temp": [(AT - 800, 3), (AT - 700, 88)]}, TRUE),
    ("age(gpu_temp) > 0", {}, UNKNOWN),
    # Presence is never unknown.
    ("known(gpu_temp)", RISING, TRUE),
    ("known(gpu_temp)", {}, FALSE),
    ("missing(gpu_temp)", {"gpu_temp": [(AT - 400, 3)]}, TRUE),
    ("missing(gpu_temp)", RISING, FALSE),
    ("blank(gpu_temp)", {}, FALSE),
    # Arithmetic.
    ("gpu_temp / (gpu_temp - 74) > 0", RISING, UNKNOWN),
    ("gpu_temp * 2 - 100 == 48 and -gpu_temp < -73 and gpu_temp + 1 == 75", RISING, TRUE),
    ("coalesce(power_usage, gpu_temp) == 74", RISING, TRUE),
    ("coalesce(power_usage, 12) == 12", RISING, TRUE),
    ("coalesce(power_usage, gpu.tdp_w) == 700", RISING, UNKNOWN),
    # Kleene.
    ("gpu_temp > 80 and power_usage > 5", RISING, FALSE),
    ("gpu_temp > 70 and power_usage > 5", RISING, UNKNOWN),
    ("gpu_temp > 70 or power_usage > 5", RISING, TRUE),
    ("gpu_temp > 80 or power_usage > 5", RISING, UNKNOWN),
    ("not power_usage > 5", RISING, UNKNOWN),
    ("not (gpu_temp > 80 or power_usage > 5 and gpu_temp > 80)", RISING, TRUE),
    # Masks.
    ('has(throttle_reasons, "hw_power_brake")', {"throttle_reasons": constant(136)}, TRUE),
    ('has(throttle_reasons, "sw_thermal", "hw_slowdown")', {"throttle_reasons": constant(136)}, TRUE),
    ('has(throttle_reasons, "sw_thermal")', {"throttle_reasons": constant(136)}, FALSE),
    ('not has(throttle_reasons, "sw_thermal")', {"throttle_reasons": constant(0)}, TRUE),
    ('has(throttle_reasons, "sw_thermal")', {}, UNKNOWN),
    ('has(throttle_reasons, "gpu_idle")', {"throttle_reasons": constant(float("inf"))}, FALSE),
    ('has(throttle_reasons, "gpu_idle")', {"throttle_reasons": constant(-1)}, FALSE),
    ('share(throttle_reasons, "sw_power_cap", "1m") == 0.4', {"throttle_reasons": series([4, 0, 0, 0, 5])}, TRUE),
    ('share(throttle_reasons, "gpu_idle", "sw_power_cap", "1m") == 0.6',
     {"throttle_reasons": series([4, 0, 1, 8, 5])}, TRUE),
    # Codes.
    ("is_code(xid, {79, 119})", {"xid": constant(119)}, TRUE),
    ("is_code(xid, {79, 119})", {"xid": constant(13)}, FALSE),
    ("is_code(xid, {79, 119})", {}, UNKNOWN),
    ('changed_to(xid, {79}, "15m")', {"xid": series([0, 0, 79, 79])}, TRUE),
    ('changed_to(xid, {79}, "15m")', {"xid": series([13, 79])}, TRUE),
    ('changed_to(xid, {79}, "15m")', {"xid": constant(79)}, FALSE),
    ('changed_to(xid, {79}, "15m")', {"xid": series([79, 79, 0, 0])}, FALSE),
    ('changed_to(xid, {79}, "15m")', {"xid": series([0, 79, 79, 13])}, TRUE),
    ('changed_to(xid, {79}, "30s")', {"xid": series([0, 79, 79, 79, 79])}, FALSE),
    ('changed_to(xid, {79}, "15m")', {"xid": [(AT, 79)]}, UNKNOWN),
    ('changed_to(xid, {79}, "15m")', {"xid": [(AT, 0)]}, FALSE),
    ('changed_to(xid, {79}, "15m")', {}, UNKNOWN),
    ('changed_to(xid, xids("ecc"), "15m")', {"xid": series([0, 48])}, TRUE),
    # The past.
    ('past(gpu_temp, "30s") == 72', RISING, TRUE),
    ('past(gpu_temp == 72, "30s")', RISING, TRUE),
    ('past(past(gpu_temp, "15s"), "15s") == 72', RISING, TRUE),
    ('gpu_temp - past(gpu_temp, "1m") == 4', RISING, TRUE),
    ('past(gpu_temp, "1h") > 0', RISING, UNKNOWN),
    ('past(age(gpu_temp), "20s") == 10', RISING, TRUE),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "expected"), CASES)
def test_meaning(text, given, expected):
    assert judge(text, given) == expected
    assert judge(f"not ({text})", given) == -expected


UNTIMED = [
    ("gpu_temp == 74", RISING, TRUE),
    ('avg(gpu_temp, "1s") == 72', RISING, TRUE),
    ('stddev(gpu_temp, "1s") > 1', RISING, TRUE),
    ('share(throttle_reasons, "sw_power_cap", "1s") == 0.4', {"throttle_reasons": series([4, 0, 0, 0, 5])}, TRUE),
    ("known(gpu_temp)", RISING, TRUE),
    ("missing(power_usage)", RISING, TRUE),
    ("age(gpu_temp) >= 0", RISING, UNKNOWN),
    ('changes(gpu_temp, "1h") >= 0', RISING, UNKNOWN),
    ('increase(pcie_replay, "1h") >= 0', COUNTER, UNKNOWN),
    ('rate(pcie_replay, "1h") >= 0', COUNTER, UNKNOWN),
    ('changed_to(xid, {79}, "1h")', {"xid": series([0, 79])}, UNKNOWN),
    ("is_code(xid, {79})", {"xid": series([0, 79])}, TRUE),
    ('past(gpu_temp, "1h") > 0', RISING, UNKNOWN),
    ('past(known(gpu_temp), "1h")', RISING, UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "expected"), UNTIMED)
def test_samples_without_times(text, given, expected):
    assert judge(text, given, timed=False) == expected


def test_facts_of_the_model():
    text = 'max(gpu_temp, "5m") >= coalesce(gpu_max_op_temp, gpu.max_op_temp_c)'
    hot = {"gpu_temp": constant(88)}
    assert judge(text, hot, models=[H100]) == TRUE
    assert judge(text, hot, models=["unheard of"]) == UNKNOWN
    assert judge(text, {**hot, "gpu_max_op_temp": constant(95)}, models=[H100]) == FALSE


def test_blank_means_that_only_blank_samples_came():
    dropped = {("gpu_temp", 0): Dropped({"INT64_BLANK": 60})}
    assert judge("blank(gpu_temp)", {}, dropped=dropped) == TRUE
    assert judge("blank(gpu_temp)", {"gpu_temp": constant(50)}, dropped=dropped) == FALSE
    assert judge("blank(power_usage)", {}, dropped=dropped) == FALSE
    assert judge("blank(gpu_temp)", {}, dropped={("gpu_temp", 0): Dropped()}) == FALSE


def _host(*temps, hosts=None):
    return frame([{"gpu_temp": constant(t)} if t is not None else {} for t in temps], hosts=hosts)


def _both(text, made):
    ones, many = judge_all(compiled(text), made)
    assert ones == many
    return ones


def test_siblings():
    made = _host(60, 62, 64, 90)
    assert _both("siblings.median(gpu_temp) == 63", made) == [1] * 4
    assert _both("siblings.mad(gpu_temp) == 2", made) == [1] * 4
    assert _both("siblings.min(gpu_temp) == 60 and siblings.max(gpu_temp) == 90", made) == [1] * 4
    assert _both("gpu_temp > siblings.median(gpu_temp) + 5 * siblings.mad(gpu_temp)", made) == [
        -1,
        -1,
        -1,
        1,
    ]
    assert _both("siblings.count(gpu_temp > 61) == 3", made) == [1] * 4
    assert _both("siblings.share(gpu_temp > 61) == 0.75", made) == [1] * 4
    assert _both("siblings.count(not gpu_temp > 61) == 1", made) == [1] * 4


def test_siblings_need_three_known_values_on_a_known_host():
    made = _host(60, 62, None, 90, 91, 92, hosts=[0, 0, 0, 1, 1, 1])
    assert _both("siblings.median(gpu_temp) > 0", made) == [0, 0, 0, 1, 1, 1]
    assert _both("siblings.share(gpu_temp > 0) > 0", made) == [0, 0, 0, 1, 1, 1]
    assert _both("siblings.count(gpu_temp > 61) == 1", made) == [1, 1, 1, -1, -1, -1]
    assert _both("siblings.median(gpu_temp) > 0", _host(1, 2, 3, hosts=[-1, -1, -1])) == [0, 0, 0]
    assert _both("siblings.count(gpu_temp > 0) > 0", _host(1, 2, 3, hosts=[-1, -1, -1])) == [
        0,
        0,
        0,
    ]
    # That nobody can be judged is not a count of none.
    assert _both("siblings.count(gpu_temp > 61) == 0", _host(None, None, None)) == [0, 0, 0]
    # An entity without a reading of its own still has siblings.
    assert _both("siblings.median(gpu_temp) == 2", _host(1, 2, 3, None)) == [1, 1, 1, 1]


def test_an_empty_frame_and_a_foreign_memo():
    condition = compiled("gpu_temp > 5 and siblings.max(gpu_temp) > 3")
    empty = frame([])
    assert condition.evaluate(empty, Memo(empty)).tolist() == []
    assert condition._fleet(Memo(empty).fleet(AT)).tolist() == []
    with pytest.raises(UsageError, match="another frame"):
        condition.evaluate(_host(1), Memo(empty))


def _random_frame(rng, n):
    signals = ["gpu_util", "sm_active", "sm_clock", "max_sm_clock", "gpu_temp", "power_usage", "hw_slowdown_events",
               "throttle_reasons", "xid", "pcie_replay", "power_violation"]  # fmt: skip
    given = []
    for _ in range(n):
        one = {}
        for signal in signals:
            count = rng.choice([0, 0, 1, 2, 3, 20])
            values = [float(rng.choice([0, 1, 1, 4, 79, 119, 136, 500])) for _ in range(count)]
            times = sorted(
                AT - rng.choice([0, 15, 300, 301, 600, 900]) - rng.randint(-20, 50)
                for _ in range(count)
            )
            one[signal] = list(zip(times, values, strict=True))
        given.append(one)
    dropped = {(rng.choice(signals), rng.randrange(n)): Dropped({"blank": 1}) for _ in range(4)}
    return frame(given, hosts=[rng.randint(-1, 2) for _ in range(n)], models=[rng.choice([H100, None]) for _ in range(n)],
                 timed=rng.random() < 0.85, dropped=dropped)  # fmt: skip


def _lacked_by(condition, made, i):
    """What the reader of whole columns says of one entity."""
    unknown = condition.evaluate(made, Memo(made)) == 0
    found = condition.lacking(made, Memo(made), unknown)
    return frozenset(name for name, flags in found.items() if flags[i])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_both_evaluators_agree_and_keep_kleene_laws(seed):
    rng = random.Random(seed)
    made = _random_frame(rng, rng.randint(1, 9))
    maker = Maker(rng, made)
    a, b, c = (maker.condition() for _ in range(3))
    truths = {}
    for text in (a, b, c, f"not ({a})", f"({a}) and ({b})", f"({a}) or ({b})", f"not (({a}) and ({b}))",
                 f"(not ({a})) or (not ({b}))", f"({a}) and (({b}) or ({c}))",
                 f"(({a}) and ({b})) or (({a}) and ({c}))"):  # fmt: skip
        condition = compiled(text) if len(text) < 2000 else None
        if condition is None:
            return
        ones, many = judge_all(condition, made)
        assert ones == many, text
        truths[text] = np.array(ones)
        for i in range(len(made)):
            missing = condition.missing(made, i, memo := Memo(made))
            assert not missing or ones[i] == 0
            assert condition.explain(made, i, memo) or ones[i]
            assert missing == _lacked_by(condition, made, i)
    va, vb = truths[a], truths[b]
    assert (truths[f"not ({a})"] == -va).all()
    assert (truths[f"({a}) and ({b})"] == np.minimum(va, vb)).all()
    assert (truths[f"({a}) or ({b})"] == np.maximum(va, vb)).all()
    assert (truths[f"not (({a}) and ({b}))"] == truths[f"(not ({a})) or (not ({b}))"]).all()
    spread = truths[f"(({a}) and ({b})) or (({a}) and ({c}))"]
    assert (truths[f"({a}) and (({b}) or ({c}))"] == spread).all()
