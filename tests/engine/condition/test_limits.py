"""``limit.ID`` means its number, in all readers, whatever the number is."""

import random
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue.types import Catalogue
from engine.condition import Condition, LabelProfile, Memo, compile_condition
from tests.engine.condition.expressions import Maker
from tests.engine.condition.world import AT, CATALOGUE, H100, LIMITS, PLACE, compiled, frame

LIMIT = re.compile(r"limit\.([a-z]+)")
VALUES = {
    "gpu_util": (0, 100), "sm_active": (0, 1), "sm_clock": (300, 1980), "max_sm_clock": (1900, 1980),
    "gpu_temp": (40, 95), "power_usage": (80, 700), "pcie_replay": (0, 40), "power_violation": (0, 9e9),
}  # fmt: skip


def with_limits(values: dict[str, float]) -> Catalogue:
    """Return the test catalogue with other values, as an overlay gives them."""
    old = CATALOGUE.entries["thresholds"]
    new = {name: old[name] | {"value": value} for name, value in values.items()}
    return replace(CATALOGUE, entries={**CATALOGUE.entries, "thresholds": {**old, **new}})


def spelled_out(text: str, catalogue: Catalogue) -> Condition:
    """Compile with every limit written as its number."""
    plain = LIMIT.sub(lambda found: repr(catalogue.limits[found[1]].value), text)
    return compile_condition(plain, catalogue, PLACE)


def readings(rng: random.Random):
    """Return a frame of four GPUs of one host with random samples."""
    given_ = [
        {
            signal: [(AT - 15 * k, rng.uniform(*bounds)) for k in reversed(range(61))]
            for signal, bounds in VALUES.items()
            if rng.random() < 0.9
        }
        for _ in range(4)
    ]
    return frame(given_, models=[H100] * 4)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.fixed_dictionaries({name: st.floats(0.01, 200) for name in LIMITS}),
)
def test_a_limit_is_its_number(seed, values):
    rng = random.Random(seed)
    made = readings(rng)
    catalogue = with_limits(values)
    maker = Maker(rng, made)
    text = maker.condition()
    for _ in range(50):
        if LIMIT.search(text):
            break
        text = maker.condition()
    condition = compile_condition(text, catalogue, PLACE)
    plain = spelled_out(text, catalogue)
    assert condition.limits == {name for name in LIMITS if f"limit.{name}" in text}
    assert plain.limits == frozenset()
    memo = Memo(made)
    judged = condition.evaluate(made, memo).tolist()
    assert judged == plain.evaluate(made, memo).tolist(), text
    assert (
        condition._fleet(memo.fleet(made.at)).tolist() == plain._fleet(memo.fleet(made.at)).tolist()
    )
    assert condition.promql(LabelProfile()) == plain.promql(LabelProfile())
    for i in range(len(made)):
        assert condition.missing(made, i, memo) == plain.missing(made, i, memo)
        terms = zip(condition.explain(made, i, memo), plain.explain(made, i, memo), strict=True)
        for one, other in terms:
            assert (one.value, one.threshold, one.truth) == (
                other.value,
                other.threshold,
                other.truth,
            )
            assert set(one.limits) <= condition.limits


def test_another_value_is_another_verdict():
    made = frame([{"gpu_temp": [(AT, 84.0)]}])
    text = "gpu_temp >= limit.hot"
    assert compiled(text).evaluate(made, Memo(made)).tolist() == [-1]
    lower = compile_condition(text, with_limits({"hot": 84.0}), PLACE)
    assert lower.evaluate(made, Memo(made)).tolist() == [1]
    assert lower.sentence() == "GPU temperature is at least 84 °C"
    assert ">= 84" in lower.promql(LabelProfile()).query


def test_the_origin_names_the_limit_and_the_file_of_a_site():
    limit = CATALOGUE.limits["hot"]
    assert limit.origin == "site default: ours (limit.hot)"
    assert replace(limit, file="knowledge/thresholds.yaml").origin == limit.origin
    mine = replace(limit, file="/etc/site/knowledge/t.yaml")
    assert mine.origin == "site default: ours (limit.hot in /etc/site/knowledge/t.yaml)"
