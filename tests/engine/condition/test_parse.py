import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue.types import Place
from engine.condition import compile_condition
from engine.errors import CatalogueError
from tests.engine.condition.world import CATALOGUE, PLACE, compiled

GOOD = [
    'max(gpu_temp, "5m") >= coalesce(gpu_max_op_temp, gpu.max_op_temp_c)',
    'avg(sm_active,"1h30m") < 0.5 and not has(throttle_reasons, "hw_slowdown", \'sw_thermal\')',
    "(gpu_temp > 80 or gpu_temp < -5)\n  and known(gpu_temp)",
    'changed_to(xid, xids("ecc"), "15m") or is_code(xid, {79})',
    'sm_clock < 0.8 * siblings.median(past(sm_clock, "1h"))',
    'past(siblings.share(gpu_temp > 80) > 0.5, "1d")',
    "abs(-5) * gpu_temp > 2 * 3 / 4",
    "0x50 < gpu_temp",
    "last(gpu_temp) > 1_0",
    'avg(sm_active, "5m") >= limit.busy',
    "gpu_temp >= coalesce(gpu_max_op_temp, limit.hot) - limit.margin",
    'rate(pcie_replay, "5m") > limit.replays / 60',
]


@pytest.mark.parametrize("text", GOOD)
def test_good_conditions_compile(text):
    condition = compiled(text)
    assert condition.text == text
    assert condition.sentence()


# The text, the part that the error must point at, and what the message must say.
BAD = [
    ("sm_clok > 5", "sm_clok", "unknown signal 'sm_clok'; did you mean 'sm_clock'?"),
    ("gpu_util > 5 and gpu.tdp > 3", "tdp ", "unknown GPU attribute 'tdp'; did you mean 'tdp_w'?"),
    ("gpu_temp > limit.hott", "hott", "unknown limit 'hott'; did you mean 'hot'?"),
    ("gpu_util > limit.busy", "limit.busy", "limit.busy is in ratio, what it is compared with in percent; write unit: percent, "),
    ("limit.hot < sm_active", "limit.hot", "limit.hot is in celsius, what it is compared with in ratio"),
    ("limit.busy < limit.slow", "limit.busy", "compares constants only"),
    ("limit > 5", "limit", "unknown signal 'limit'"),
    ("gpu_util / (limit.hot - limit.hot) > 2", "limit.hot - limit", "division by zero"),
    ('quantile(limit.busy, gpu_temp, "5m") > 5', "limit.busy", "a quantile is a number from 0 to 1"),
    ("coalesce(limit.hot, gpu_temp) > 5", "limit.hot", "a constant is always known"),
    ("siblings.max(limit.hot) > 5", "limit.hot", "all peers share a constant"),
    ('past(limit.hot, "1h") > 5', "limit.hot", "only readings have a past"),
    ('avrg(gpu_util, "5m") > 5', "avrg", "unknown function 'avrg'; did you mean 'avg'?"),
    ("siblings.medain(gpu_util) > 5", "medain", "did you mean 'siblings.median'?"),
    ('has(throttle_reasons, "hw_slowdwn")', '"hw_slowdwn"', "did you mean 'hw_slowdown'?"),
    ('changed_to(xid, xids("gpu_off_bas"), "5m")', '"gpu_off_bas"', "did you mean 'gpu_off_bus'?"),
    ('changed_to(xid, xids("straggler"), "5m")', '"straggler"', "no Xid means straggler"),
    ("gpu_util", "gpu_util", "a number where a condition is needed"),
    ("5 and gpu_util > 3", "5", "a number where a condition is needed"),
    ("known(gpu_util) > 5", "known(gpu_util)", "a condition where a number is needed"),
    ("-(gpu_util > 3) > 5", "gpu_util > 3", "a condition where a number is needed"),
    ("1 < gpu_util < 5", "5", "comparisons cannot be chained"),
    ("gpu_util in 5", "gpu_util", "no such comparison"),
    ("gpu_util ** 2 > 5", "*", "no such operator"),
    ("gpu_util // 2 > 5", "gpu_util //", "no such operator"),
    ("3 > 2", "3 > 2", "compares constants only"),
    ("gpu_util / 0 > 2", "0 >", "division by zero"),
    ("gpu_util / (2 - 2) > 2", "2 - 2", "division by zero"),
    ("gpu_util > 1e999", "1e999", "the number is too large"),
    ("gpu_util * (1e200 * 1e200) > 1", "1e200 *", "the number is too large"),
    ("gpu_util > True", "True", "True is not a number"),
    ("gpu_util > 'x'", "'x'", "'x' is not a number"),
    ("gpu_util > 1j", "1j", "1j is not a number"),
    ("gpu_util > None", "None", "is not a number"),
    ("avg(gpu_util) > 5", "avg(", 'avg() has 1 argument(s); write: avg(signal, "5m")'),
    ("avg(gpu_util, 5) > 5", "5) ", "a window must stand in quotes"),
    ('avg(gpu_util, "5") > 5', '"5"', "'5' is no duration"),
    ('avg(gpu_util, "8d") > 5', '"8d"', "'8d' is out of bounds"),
    ('avg(gpu_util, "0s") > 5', '"0s"', "'0s' is out of bounds"),
    ('avg(gpu_util + 1, "5m") > 5', "gpu_util + 1", "not the name of a signal"),
    ("avg(s=gpu_util) > 5", "gpu_util", "arguments have no names here"),
    ("avg(*gpu_util) > 5", "avg(", "1 argument(s)"),
    ('avg(throttle_reasons, "5m") > 5', "throttle_reasons", "does not go with throttle_reasons, which is a mask"),
    ('rate(gpu_temp, "5m") > 5', "gpu_temp", "it takes a counter"),
    ('has(gpu_temp, "hw_slowdown")', "gpu_temp", "it takes a mask"),
    ('quantile(1.5, gpu_temp, "5m") > 5', "1.5", "a quantile is a number from 0 to 1"),
    ('quantile(gpu_util, gpu_temp, "5m") > 5', "gpu_util", "a quantile is a number from 0 to 1"),
    ('changed_to(xid, {79.5}, "5m")', "79.5", "a code must be a whole number"),
    ('changed_to(xid, 79, "5m")', "79", "codes must be a set"),
    ("is_code(xid, xids(79))", "xids", "codes must be a set"),
    ("xids('ecc') > 5", "xids", "xids() gives codes"),
    ("coalesce(5, gpu_util) > 5", "5, ", "a constant is always known"),
    ("siblings.max(siblings.max(gpu_util)) > 5", "siblings.max(gpu_util)", "peers inside peers"),
    ("siblings.max(5) > 5", "5) ", "all peers share a constant"),
    ("siblings.count(gpu_util) > 5", "gpu_util", "a number where a condition is needed"),
    ('past(gpu.tdp_w, "1h") > 5', "gpu.", "only readings have a past"),
    ('past(blank(gpu_util), "1h")', "blank", "blank() cannot be asked about the past"),
    ('past(avg(gpu_util, "4d"), "4d") > 1', "past", "looks back too far"),
    ("gpu_util > 5 # hot", "#", "unexpected character '#'"),
    ("gpu_util > 5; import os", ";", "unexpected character ';'"),
    ("gpu_util > 5 \\", "\\", "unexpected character"),
    ("gpu_util\u00a0> 5", "\u00a0", "unexpected character"),
    ("température > 5", "é", "unexpected character"),
    ("gpu_util > 5\x00", "\x00", "unexpected character"),
    ("(gpu_util > 5", "(", "cannot be read"),
    ("gpu_util > > 5", "> 5", "cannot be read"),
    ("gpu_util > 5 if gpu_util else 3", "gpu_util > 5 if", "not part of the condition language"),
    ("gpu_util > f(3)", "f(", "unknown function 'f'"),
    ("gpu_util.x > 5", "gpu_util.x", "not part of the condition language"),
    ("(1, 2) > 5", "(1", "not part of the condition language"),
    ("f'{gpu_util}' > 5", "f'", "not part of the condition language"),
    ("+gpu_util > 5", "+", "not part of the condition language"),
    ("", "", "the condition is empty"),
    ("  \n ", "", "the condition is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "message"), BAD)
def test_bad_conditions_name_the_place_and_the_fix(text, at, message):
    with pytest.raises(CatalogueError) as caught:
        compiled(text)
    (problem,) = caught.value.problems
    assert problem.file == PLACE.file
    assert problem.line == PLACE.line
    if message != "the condition is empty" and "** 2" not in text:
        assert text[problem.column - PLACE.column :].startswith(at), problem
    assert message in str(problem)
    assert "\n" not in str(caught.value)


def test_places_in_a_text_of_several_lines():
    text = "gpu_util > 5\nand\n   gpu_tmp > 80"
    with pytest.raises(CatalogueError) as caught:
        compile_condition(text, CATALOGUE, Place("a.yaml", 10, 5))
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (12, 8)


def test_caps():
    with pytest.raises(CatalogueError, match="longer than 2000"):
        compiled("gpu_util > 5 or " * 200 + "gpu_util > 5")
    with pytest.raises(CatalogueError, match="nested deeper than 20"):
        compiled("gpu_util" + " + gpu_util" * 25 + " > 5")
    for deep in (
        "(" * 900 + "gpu_util > 5" + ")" * 900,
        "not " * 400 + "gpu_util > 5",
        "-" * 1900 + "gpu_util > 5",
    ):
        with pytest.raises(CatalogueError):
            compiled(deep)


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from("gpu_util gptdw.()<>=!+-*/{}\"'0159em\n,#\\\0é") | st.characters(),
        max_size=60,
    )
)
def test_any_text_compiles_or_is_refused_in_one_line(text):
    refusal = ""
    try:
        compiled(text)
    except CatalogueError as error:
        refusal = str(error)
    assert re.fullmatch(r"(rules/symptoms/power/x.yaml:\d+:\d+: [^\n]+)?", refusal)


WORDS = ["gpu_util", "gpu_temp", "gpu.tdp_w", "limit.hot", "limit.busy", "avg(", "has(", "siblings.max(", "past(", "changed_to(xid, ",
         '"5m"', '"hw_slowdown"', "{79}", "(", ")", ",", "and", "or", "not", ">", "==", "+", "*", "5", "0"]  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_words_compile_or_are_refused(text):
    try:
        condition = compiled(text)
    except CatalogueError:
        return
    assert condition.sentence()
    assert condition.max_window_s >= 0


def test_what_a_condition_reads():
    condition = compiled(
        'past(avg(gpu_temp, "10m"), "1h") > gpu.tdp_w and siblings.max(power_usage) < 5 or known(xid)'
    )
    assert condition.signals == {"gpu_temp", "power_usage", "xid"}
    assert condition.attrs == {"tdp_w"}
    assert condition.limits == frozenset()
    assert compiled("gpu_temp > limit.hot - 2 * abs(-limit.margin)").limits == {"hot", "margin"}
    assert condition.uses_siblings
    assert condition.sibling_signals == {"power_usage"}
    assert condition.max_window_s == 3600 + 600
    assert compiled("gpu_temp > 5").max_window_s == 300
    assert compiled('changed_to(xid, {79}, "15m")').max_window_s == 900
    assert not compiled("gpu_temp > 5").uses_siblings
