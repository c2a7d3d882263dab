"""Local evaluation and real PromQL mean the same."""

from __future__ import annotations

import random

import pytest

from engine.condition import Memo, show_query
from engine.condition.tree import PastNumber, PastTruth, Reading, children
from engine.condition.windows import NEEDS_TWO
from engine.samples import Matcher, Origin
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
@pytest.mark.parametrize("seed", list(range(40, 55)))
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu_temp > 80", {"GPU-hot"}),
        ("gpu_temp < 80", {"GPU-cool"}),
        ("missing(gpu_temp)", {"GPU-all-blank"}),
        ("blank(gpu_temp)", {"GPU-all-blank"}),
        ("known(gpu_temp)", {"GPU-hot", "GPU-cool"}),
        ("not known(gpu_temp)", {"GPU-all-blank"}),
        ('min(gpu_temp, "5m") < 80', {"GPU-cool"}),
        ("gpu_temp > gpu.max_op_temp_c", {"GPU-hot"}),
    ],
)
def test_blank_samples_in_the_server_are_no_readings(twin, text, expected):
    assert twin.ask(compiled(text).promql(twin.profile("blank")).query) == expected


def test_what_cannot_be_pushed_down_finds_everything(twin):
    for text in ("pods > 1", "exporter_up == 0 and gpu_util > 5 or pods > 3"):
        pushed = compiled(text).promql(twin.profile("blank"))
        assert not pushed.exact
        assert twin.ask(pushed.query) == {"GPU-all-blank", "GPU-hot", "GPU-cool"}
    # The part that can be pushed down still narrows.
    pushed = compiled("gpu_temp > 80 and pods > 1").promql(twin.profile("blank"))
    assert not pushed.exact
    assert twin.ask(pushed.query) == {"GPU-hot"}


def test_a_reading_can_be_shown(twin):
    origin = Origin(
        "DCGM_FI_DEV_GPU_TEMP", (Matcher("UUID", "=", "GPU-hot"), Matcher("variant", "=", "blank"))
    )
    functions = [
        "last",
        "avg",
        "min",
        "max",
        "stddev",
        "rate",
        "increase",
        "changes",
        "share",
        "changed_to",
        "age",
    ]
    for function in functions:
        for offset in (0, 120):
            query = show_query(origin, function, 300, offset_s=offset)
            assert twin.raw(query)["result"], query
    shown = twin.raw(show_query(origin, "quantile", 300, q=0.9))["result"][0]["value"][1]
    assert float(shown) == 91
    hertz = Origin("DCGM_FI_DEV_GPU_TEMP", origin.matchers, scale=0.5)
    assert float(twin.raw(show_query(hertz, "last", 300))["result"][0]["value"][1]) == 45.5
