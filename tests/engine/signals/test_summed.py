"""Samples of one moment are added up alike, whether the series of a host have the same times or not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.signals.others import summed

moments = st.lists(st.sampled_from([0.0, 15.0, 30.0, 45.0]), unique=True, max_size=4).map(sorted)
values = st.floats(-1e9, 1e9)


@given(st.one_of(moments.flatmap(lambda one: st.lists(st.just(one))), st.lists(moments)), st.data())
def test_each_moment_has_the_sum_of_its_samples(series, data):
    times = np.array([t for one in series for t in one])
    given_values = data.draw(st.lists(values, min_size=times.size, max_size=times.size))
    expected: dict[float, float] = {}
    for t, value in zip(times.tolist(), given_values, strict=True):
        expected[t] = expected.get(t, 0.0) + value

    found, sums = summed(times, np.array(given_values))

    assert found.tolist() == sorted(expected)
    assert sums.tolist() == [expected[t] for t in found.tolist()]
