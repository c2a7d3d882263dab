"""Samples of an answer are the numbers that Python reads from their text, whatever the form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import SourceError
from engine.sources.promjson import Answer, to_series, to_vector

texts = st.one_of(
    st.floats().map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(
        ["NaN", "+Inf", "-Inf", "1.", ".5", "1e400", "1e+06", "-0", "1e-0", "9223372036854775794"]
    ),
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
            assert math.isnan(seen) or math.copysign(1, seen) == math.copysign(1, float(text))


@pytest.mark.parametrize("text", ["1,2", "", "true", "[1]", "1 2", "one"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(SourceError, match="malformed"):
        to_series(answer(["1", text, "3"]), "here")


@pytest.mark.parametrize(
    "rows",
    [[[1, "2", "3"], [4, "5", "6"]], [[1], [2, "3", "4"]], ["12", "34"], [[None, "2"]],
     [[True, "2"]], [["1", "2"]], [[1, True]], [[1, ["2"]]], [[1, "2", 3]], [[]], {"ab": 1}, "1234",
     [{"a": 1, "b": 2}]],
)  # fmt: skip
def test_rows_that_are_no_pairs_of_a_time_and_a_value_are_refused(rows):
    well = {"metric": {"__name__": "m"}, "values": [[1, "2"]]}
    with pytest.raises(SourceError, match="malformed"):
        to_series(Answer([well, {"metric": {"__name__": "m"}, "values": rows}], []), "here")


@pytest.mark.parametrize("row", [[1, "2", "3"], [1], [], "12", [None, "2"], {"a": 1, "b": 2}, None])
def test_a_vectors_element_that_is_no_pair_is_refused(row):
    with pytest.raises(SourceError, match="malformed"):
        to_vector(Answer([{"metric": {"__name__": "m"}, "value": row}], []), "here")


def test_a_negative_zero_stays_one():
    (series,) = to_series(answer(["1", "-0"]), "here")
    assert math.copysign(1, series.values.item(1)) == -1
