"""Sentences, explanations, missing readings, and the PromQL that shows a reading."""

import pytest

from engine.condition import LabelProfile, Memo, show_query
from engine.condition.units import span_of, written
from engine.model import Truth
from engine.samples import Dropped, Matcher, Origin
from tests.engine.condition.world import H100, compiled, constant, frame, series

SENTENCES = [
    ('avg(sm_active, "5m") < 0.5', "average SM activity over 5 minutes is below 50 %"),
    ('max(gpu_temp, "5m") >= gpu.max_op_temp_c', "highest GPU temperature over 5 minutes is at least the GPU model's max op temp"),
    ("80 < gpu_temp", "GPU temperature is above 80 °C"),
    ('avg(sm_active, "5m") >= limit.busy', "average SM activity over 5 minutes is at least 50 %"),
    ("limit.hot <= gpu_temp", "GPU temperature is at least 85 °C"),
    ("sm_clock < limit.slow * max_sm_clock", "SM clock is below 80 % of maximum SM clock"),
    ("sm_clock > limit.ahead * max_sm_clock", "SM clock is above 1.25 times maximum SM clock"),
    ('rate(pcie_replay, "5m") > limit.replays / 60', "rate of PCIe replays over 5 minutes is above 0.133/s"),
    ("gpu_temp >= coalesce(gpu_max_op_temp, limit.hot) - limit.margin",
     "GPU temperature is at least (maximum operating temperature, or else 85 °C) minus 2 °C"),
    ("not gpu_temp > 80", "GPU temperature is at most 80 °C"),
    ("sm_clock < 0.8 * siblings.median(sm_clock)", "SM clock is below 80 % of the median of SM clock among the host's GPUs"),
    ('rate(power_violation, "5m") / 1e9 > 0.1', "rate of time capped by power over 5 minutes is above 10 %"),
    ("sm_clock / max_sm_clock < 0.5", "the ratio of SM clock to maximum SM clock is below 50 %"),
    ('changed_to(xid, {119, 79}, "15m")', "Xid changed to 79 or 119 in the last 15 minutes"),
    ('avg(gpu_util, "5m") / 100 >= 0.5', "average GPU utilisation over 5 minutes divided by 100 is at least 50 %"),
    ("not is_code(xid, {79})", "Xid is none of 79"),
    ('not has(throttle_reasons, "hw_slowdown")', "throttle reasons do not show hw_slowdown"),
    ("(gpu_temp > 80 or gpu_temp < 5) and missing(xid)",
     "(GPU temperature is above 80 °C or GPU temperature is below 5 °C) and there is no reading of Xid"),
    ('past(gpu_temp, "1h") > 80', "GPU temperature 1 hour earlier is above 80 °C"),
    ("abs(gpu_temp - 5) > 3", "the distance of GPU temperature from 5 °C is above 3 °C"),
    ("siblings.share(gpu_temp > 80) >= 0.5",
     "the share of the host's GPUs where GPU temperature is above 80 °C is at least 50 %"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_sentence(text, sentence):
    assert compiled(text).sentence() == sentence


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (88.0, "celsius", "88 °C"), (510.4, "MHz", "510 MHz"), (0.21, "ratio", "21 %"), (21.0, "percent", "21 %"),
        (12.43e9, "B/s", "12.4 GB/s"), (136.0, "bitmask", "0x88"), (3e-12, "ratio", "3e-12"), (0.0, "ratio", "0 %"),
        (7.0, "count", "7"), (2.5, "count/s", "2.5/s"), (1.2e8, "ns/s", "12 % of the time"), (3e9, "ns", "3 s"), (8.0, "count/min", "8/min"),
        (412.0, "J/s", "412 W"), (float("nan"), "W", "unknown"), (0.07, "ratio", "7 %"), (1755.0, "MHz", "1755 MHz"),
    ],
)  # fmt: skip
def test_numbers_carry_units(value, unit, text):
    assert written(value, unit) == text


def test_spans():
    assert [span_of(s) for s in (300, 90, 3600, 86400, 1, 0, 0.5)] == [
        "5 minutes", "90 seconds", "1 hour", "1 day", "1 second", "0 seconds", "0.5 seconds",
    ]  # fmt: skip


def explained(text, given, **kwargs):
    made = frame([given], models=[H100], **kwargs)
    memo = Memo(made)
    condition = compiled(text)
    return condition.explain(made, 0, memo), condition.missing(made, 0, memo)


def test_a_comparison_shows_the_number_and_where_the_threshold_came_from():
    (term,), missing = explained(
        'max(gpu_temp, "5m") >= coalesce(gpu_max_op_temp, gpu.max_op_temp_c)',
        {"gpu_temp": constant(88)},
    )
    assert (
        term.says
        == "highest GPU temperature over 5 minutes is 88 °C, at least 87 °C (the GPU model's max op temp)"
    )
    assert (term.signal, term.value, term.unit, term.op, term.threshold) == (
        "gpu_temp",
        88.0,
        "celsius",
        ">=",
        87.0,
    )
    assert (term.window_s, term.truth) == (300.0, Truth.TRUE)
    assert term.expression.startswith("max(gpu_temp")
    assert missing == frozenset()


def test_a_comparison_names_the_limits_that_took_part():
    text = "gpu_temp >= coalesce(gpu_max_op_temp, limit.hot) - limit.margin"
    (term,), _ = explained(text, {"gpu_temp": constant(84)})
    assert (term.limits, term.threshold) == (("hot", "margin"), 83.0)
    (term,), _ = explained(text, {"gpu_temp": constant(84), "gpu_max_op_temp": constant(85)})
    assert (term.limits, term.threshold) == (("margin",), 83.0)
    (term,), _ = explained("gpu_temp >= 80", {"gpu_temp": constant(84)})
    assert term.limits == ()


def test_a_mask_is_shown_whole():
    (term,), _ = explained(
        'has(throttle_reasons, "hw_power_brake", "sw_thermal")', {"throttle_reasons": constant(136)}
    )
    assert term.says == "throttle_reasons = 0x88 (hw_slowdown, hw_power_brake) has hw_power_brake"
    assert (term.value, term.op, term.threshold, term.unit) == (136, "has", 160, "bitmask")
    (term,), _ = explained(
        'not has(throttle_reasons, "sw_thermal")', {"throttle_reasons": constant(136)}
    )
    assert (
        term.says
        == "throttle_reasons = 0x88 (hw_slowdown, hw_power_brake) does not have sw_thermal"
    )
    assert (term.op, term.truth) == ("not has", Truth.TRUE)


def test_only_what_decided_is_shown():
    given = {"gpu_temp": constant(88), "sm_clock": constant(500)}
    terms, _ = explained("gpu_temp > 80 and sm_clock < 900", given)
    assert [t.signal for t in terms] == ["gpu_temp", "sm_clock"]
    terms, _ = explained("gpu_temp > 90 and sm_clock < 900", given)
    assert [(t.signal, t.truth) for t in terms] == [("gpu_temp", Truth.FALSE)]
    assert terms[0].says == "GPU temperature is 88 °C, at most 90 °C"
    terms, _ = explained("gpu_temp > 90 or sm_clock < 900 or power_usage > 5", given)
    assert [t.signal for t in terms] == ["sm_clock"]
    terms, missing = explained("gpu_temp > 80 and (power_usage > 5 or sm_clock > 900)", given)
    assert [(t.signal, t.value, t.truth) for t in terms] == [("power_usage", None, Truth.UNKNOWN)]
    assert terms[0].says == "cannot tell whether power draw is above 5 W: no reading of power_usage"
    assert missing == {"power_usage"}


def test_what_is_missing():
    def missing(text, given):
        return explained(text, given)[1]

    assert missing("coalesce(power_usage, sm_clock) > 5", {}) == {"power_usage", "sm_clock"}
    assert missing("gpu_temp > coalesce(gpu_max_op_temp, gpu.max_op_temp_c)", {}) == {"gpu_temp"}
    made = frame([{"gpu_temp": constant(5)}])
    condition = compiled("gpu_temp > coalesce(gpu_max_op_temp, gpu.max_op_temp_c)")
    assert condition.missing(made, 0, Memo(made)) == {"gpu_max_op_temp", "gpu.max_op_temp_c"}
    assert missing("gpu_temp / (gpu_temp - 5) > 1", {"gpu_temp": constant(5)}) == set()
    assert missing('past(gpu_temp, "1h") > 5', {"gpu_temp": constant(5)}) == {"gpu_temp"}
    assert missing("siblings.median(gpu_temp) > 5", {"gpu_temp": constant(5)}) == {"gpu_temp"}
    assert missing("power_usage > 5 and gpu_temp > 80", {"gpu_temp": constant(5)}) == set()
    (term,), lacking = explained(
        'increase(pcie_replay, "5m") > 5', {"pcie_replay": constant(5, count=1)}
    )
    assert lacking == {"pcie_replay"}
    assert term.says.endswith("too few samples of pcie_replay")


def test_a_change_says_from_what_and_when():
    given = {"xid": series([0] * 40 + [79] * 20)}
    (term,), _ = explained('changed_to(xid, {79}, "15m")', given)
    assert term.says == "Xid changed from 0 to 79 285 seconds ago"
    (term,), _ = explained('changed_to(xid, {48}, "15m")', given)
    assert term.says == "Xid changed from 0 to 79 285 seconds ago, not to 48"
    (term,), _ = explained('changed_to(xid, {79}, "15m")', {"xid": constant(79)})
    assert term.says == "Xid stayed 79 over 15 minutes"


def test_samples_without_times_say_so():
    (term,), missing = explained(
        'changed_to(xid, {79}, "15m")', {"xid": series([0, 79])}, timed=False
    )
    assert (
        term.says
        == "cannot tell whether Xid changed to 79 in the last 15 minutes: no times with the samples of xid"
    )
    assert missing == {"xid"}


def test_presence_says_why():
    dropped = {("gpu_temp", 0): Dropped({"INT64_BLANK": 60})}
    (term,), _ = explained("blank(gpu_temp)", {}, dropped=dropped)
    assert (
        term.says == "GPU temperature has no reading, only samples that are none (60 x INT64_BLANK)"
    )
    (term,), _ = explained("missing(gpu_temp)", {})
    assert term.says == "GPU temperature has no reading in the last 5 minutes"


def test_close_numbers_are_told_apart():
    (term,), _ = explained("gpu_temp < 188", {"gpu_temp": constant(187.96)})
    assert term.says == "GPU temperature is 187.96 °C, below 188 °C"


def test_parts_of_a_ratio_and_the_past_are_shown():
    given = {"sm_clock": constant(510), "max_sm_clock": constant(1980)}
    (term,), _ = explained("sm_clock / max_sm_clock < 0.5", given)
    assert "25.8 % (SM clock 510 MHz, maximum SM clock 1980 MHz), below 50 %" in term.says
    (term,), _ = explained('past(sm_clock < 600, "5m")', given)
    assert term.says == "5 minutes earlier, SM clock is 510 MHz, below 600 MHz"
    assert term.offset_s == 300


def test_queries_that_show_a_reading():
    made = frame([{"gpu_temp": constant(88)}])
    made.origins[("gpu_temp", 0)] = Origin(
        "DCGM_FI_DEV_GPU_TEMP", (Matcher("UUID", "=", 'GPU-"3\\a'),)
    )
    memo = Memo(made)
    condition = compiled('avg(gpu_temp, "5m") > 80')
    (term,) = condition.explain(made, 0, memo)
    assert (
        condition.query_for(made, 0, term)
        == 'avg_over_time(DCGM_FI_DEV_GPU_TEMP{UUID="GPU-\\"3\\\\a"}[5m])'
    )
    made.origins.clear()
    assert condition.query_for(made, 0, term) == ""
    origin = Origin("bad.name", (), scale=1e-6)
    assert show_query(origin, "last", 300) == '{__name__="bad.name"} * 1e-06'
    assert (
        show_query(Origin("a", ()), "quantile", 90, q=0.9, offset_s=3600)
        == "quantile_over_time(0.9, a[90s] offset 1h)"
    )


def test_promql_of_a_simple_condition():
    pushed = compiled('avg(sm_active, "5m") < 0.5').promql(LabelProfile(one_series=True))
    assert pushed.exact
    assert (
        pushed.query
        == '(max by (UUID) (avg_over_time(DCGM_FI_PROF_SM_ACTIVE{UUID!=""}[5m])) < 0.5)'
    )
    pushed = compiled('avg(sm_active, "5m") < 0.5').promql(LabelProfile())
    assert not pushed.exact
    assert pushed.query.startswith("(min by (UUID)")
