"""Samples of an answer are the numbers that Python reads from their text, whatever the form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import SourceError
from engine.sources.promjson import Answer, to_series

texts = st.one_of(
    st.floats().map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1.", ".5", "1e400", "1e+06", "9223372036854775794"]),
)


def answer(*series: list[str]) -> Answer:
    rows = [[[float(k), text] for k, text in enumerate(values)] for values in series]
    return Answer([{"metric": {"__name__": "m"}, "values": row} for row in rows], [])


@given(st.lists(st.lists(texts, max_size=6), max_size=4))
def test_numbers_are_those_of_their_text(given_texts):
    found = to_series(answer(*given_texts), "here")
    for series, values in zip(found, given_texts, strict=True):
        assert series.ts.tolist() == [float(k) for k in range(len(values))]
        for seen, text in zip(series.values.tolist(), values, strict=True):
            assert seen == float(text) or (math.isnan(seen) and math.isnan(float(text)))


@pytest.mark.parametrize("text", ["1,2", "", "true", "[1]", "1 2", "one"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(SourceError, match="malformed"):
        to_series(answer(["1", text, "3"]), "here")
