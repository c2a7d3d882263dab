"""Local evaluation and real PromQL mean the same."""

from __future__ import annotations

import random

import pytest

from engine.condition import Memo
from engine.condition.tree import PastNumber, PastTruth, Reading, children
from engine.condition.windows import NEEDS_TWO
from tests.engine.condition.expressions import Maker
from tests.engine.condition.world import compiled, judge_all

EXPRESSIONS = 150


def _has_lone_sample(frame, node, offset_s=0):
    """Say whether any window that needs two samples has just one, for any entity."""
    if isinstance(node, PastNumber | PastTruth):
        return _has_lone_sample(frame, node.operand, offset_s + node.offset_s)
    if isinstance(node, Reading) and node.function in NEEDS_TWO:
        memo = Memo(frame)
        return any(
            len(memo.one(i, frame.at - offset_s).times(node.signal, node.window_s)) == 1
            for i in range(len(frame))
        )
    return any(_has_lone_sample(frame, child, offset_s) for child in children(node))


@pytest.mark.parametrize("variant", ["one", "split"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_true_here_is_found_there(twin, seed, variant):
    maker = Maker(random.Random(seed), twin.frame)
    compared = exact = decided = narrowed = 0
    for _ in range(EXPRESSIONS):
        condition = compiled(maker.condition())
        ones, many = judge_all(condition, twin.frame)
        assert ones == many, condition.text
        true = {twin.uuids[i] for i, t in enumerate(ones) if t > 0}
        pushed = condition.promql(twin.profile(variant))
        found = twin.ask(pushed.query)
        assert true <= found, (condition.text, pushed.query, true - found)
        compared += 1
        decided += 0 < len(true) < len(twin.uuids)
        narrowed += len(found) < len(twin.uuids)
        if pushed.exact and not _has_lone_sample(twin.frame, condition.tree):
            exact += 1
            assert found == true, (condition.text, pushed.query, found ^ true)
    # The test is worth something only if the conditions tell entities apart.
    assert compared == EXPRESSIONS
    assert decided > EXPRESSIONS / 3
    assert narrowed > EXPRESSIONS / 3
    assert exact > (EXPRESSIONS / 4 if variant == "one" else 5)
