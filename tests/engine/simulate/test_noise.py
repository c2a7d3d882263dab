import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.simulate import noise

STEPS = np.arange(1000, 3000, dtype=np.int64)


def test_a_draw_does_not_depend_on_the_other_entities_or_steps() -> None:
    many = noise.entity_ids(["node-0:0", "node-0:1", "node-7:3"])
    alone = noise.entity_ids(["node-0:1"])
    whole = noise.normal(5, "power", many, STEPS)
    part = noise.normal(5, "power", alone, STEPS[100:110])
    assert np.array_equal(whole[100:110, 1], part[:, 0])


def test_seed_channel_and_entity_all_matter() -> None:
    one, two = noise.entity_ids(["a"]), noise.entity_ids(["b"])
    base = noise.uniform(1, "x", one, STEPS)
    for other in (
        noise.uniform(2, "x", one, STEPS),
        noise.uniform(1, "y", one, STEPS),
        noise.uniform(1, "x", two, STEPS),
    ):
        assert abs(np.corrcoef(base[:, 0], other[:, 0])[0, 1]) < 0.1


def test_normal_has_the_promised_moments_and_bounds() -> None:
    draws = noise.normal(3, "x", noise.entity_ids([str(i) for i in range(50)]), STEPS)
    assert abs(draws.mean()) < 0.02
    assert abs(draws.std() - 1.0) < 0.02
    assert abs(draws).max() <= 3.47


@given(seed=st.integers(0, 2**40), period=st.integers(1, 400), first=st.integers(0, 2**32))
def test_smooth_noise_is_bounded_and_slow(seed: int, period: int, first: int) -> None:
    steps = np.arange(first, first + 50, dtype=np.int64)
    draws = noise.smooth(seed, "x", noise.entity_ids(["a"]), steps, period)
    assert (abs(draws) <= 1.0).all()
    # Smoothstep rises at most 1.5 times as fast as a straight line between two knots 2 apart.
    assert (abs(np.diff(draws[:, 0])) <= 3.0 / period + 1e-9).all()
