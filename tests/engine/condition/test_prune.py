"""Conditions cut down to the signals that a server holds stay true for the same entities."""

from __future__ import annotations

import random

import pytest

from engine.condition import Memo
from engine.condition.prune import ALWAYS, NEVER, prune
from engine.condition.single import truth
from engine.condition.tree import Compare, signals_of
from tests.engine.condition.expressions import Maker
from tests.engine.condition.world import H100, compiled, constant, frame

EVERYTHING = {"gpu_temp", "sm_clock", "gpu_util", "gpu.max_sm_clock_mhz"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu_temp > 80", NEVER),
        ("not (gpu_temp > 80)", NEVER),
        ("missing(gpu_temp)", ALWAYS),
        ("known(gpu_temp)", NEVER),
        ("blank(gpu_temp)", NEVER),
        ("not blank(gpu_temp)", ALWAYS),
        ("not changed_to(xid, {79}, '15m')", NEVER),
        ("coalesce(gpu_temp, 0) >= 1", NEVER),
        ("coalesce(gpu_temp, 3) >= 1", ALWAYS),
        ("gpu.max_sm_clock_mhz > 1", NEVER),
        ("siblings.count(gpu_temp > 80) >= 1", NEVER),
        ("missing(gpu_temp) and missing(xid)", ALWAYS),
        ("missing(gpu_temp) or sm_clock > 1", ALWAYS),
        ("gpu_temp > 80 or known(xid)", NEVER),
    ],
)
def test_nothing_is_left_to_ask_of_a_server_without_the_signals(text, expected):
    assert prune(compiled(text).tree, ()) == expected


def test_what_can_be_read_is_kept():
    tree = compiled("coalesce(xid, gpu_temp, 5) > 80 or power_usage > 3").tree
    left = prune(tree, EVERYTHING)
    assert isinstance(left, Compare)
    assert signals_of(left) == ("gpu_temp",)


def test_what_is_counted_over_siblings_stays_whole():
    tree = compiled("siblings.count(gpu_temp > 80 or power_usage > 3) < 2").tree
    assert prune(tree, EVERYTHING) == tree
    assert prune(compiled("siblings.count(missing(xid)) >= 1").tree, ()) != NEVER


@pytest.mark.parametrize("seed", range(40))
def test_true_stays_true_and_untrue_stays_untrue(seed):
    rng = random.Random(seed)
    signals = ["gpu_util", "sm_active", "sm_clock", "gpu_temp", "power_usage", "xid", "pcie_replay"]
    present = set(rng.sample(signals, rng.randint(1, 5)))
    given = [
        {s: constant(float(rng.randint(0, 100)), count=8) for s in present if rng.random() < 0.8}
        for _ in range(5)
    ]
    made = frame(given, hosts=[0, 0, 0, 1, 1], models=[H100, None, H100, H100, None])
    maker = Maker(rng, made)
    facts = {f"gpu.{name}" for name in made.attrs}
    for _ in range(30):
        condition = compiled(maker.condition())
        left = truth(prune(condition.tree, {*present, *facts}))
        memo = Memo(made)
        before = [condition._one(memo.one(i, made.at)) == 1 for i in range(len(made))]
        after = [left(memo.one(i, made.at)) == 1 for i in range(len(made))]
        assert before == after, condition.text
