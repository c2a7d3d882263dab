"""Raw series become one name, one unit, one scale per signal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.samples import Batch, RawSeries
from engine.signals import clean
from engine.signals.normalise import build_frame

AT = 1764432000.0
GPU = {"Hostname": "node-3", "gpu": "5", "UUID": "GPU-5a", "modelName": "NVIDIA A30"}


def signal(name, unit, spellings, low=None, high=None, kind="gauge", scope="gpu"):
    return Signal(name, name, unit, kind, scope, tuple(spellings), low, high)


CATALOGUE = Catalogue(
    hash="test",
    entries={},
    taxonomy={},
    models=(),
    signals={
        s.id: s
        for s in (
            signal("gpu_util", "percent", [Spelling("UTIL", "percent")], 0, 100),
            signal("gpu_temp", "celsius", [Spelling("TEMP", "celsius")], 0, 200),
            signal("tensor_active", "ratio", [Spelling("TENSOR", "ratio")], 0, 1),
            signal(
                "sm_clock",
                "MHz",
                [Spelling("CLOCK", "MHz"), Spelling("CLOCK_HZ", "Hz", 1e-6)],
                0,
                10000,
            ),
            signal("xid", "code", [Spelling("XID", "code")], 0, 9999, kind="code"),
            signal(
                "xid_count",
                "count",
                [Spelling("XID_COUNT", "count"), Spelling("XID_TOTAL", "count")],
            ),
            signal("energy", "J", [Spelling("ENERGY", "mJ", 1e-3)], kind="counter"),
            signal("exporter_up", "bool", [Spelling("up", "bool")], 0, 1, scope="node"),
            signal("node_up", "bool", [Spelling("up", "bool")], 0, 1, scope="node"),
            signal("pods", "count", []),
            signal("mig_instances", "count", []),
        )
    },
)


def series(name, values, labels=GPU, step=15.0, timed=True):
    count = len(values)
    ts = AT - step * (count - 1) + step * np.arange(count) if timed else np.zeros(count)
    return RawSeries(name, labels, ts, np.array(values, dtype=float), timed)


def frame_of(*some, at=AT, window_s=900.0):
    return build_frame(Batch(list(some), at, 1), CATALOGUE, at=at, window_s=window_s)


def values_of(readings, name, i=0):
    return readings.frame.samples(name, i)[1].tolist()


def test_units_and_spellings_become_one():
    readings = frame_of(series("CLOCK_HZ", [1.98e9, 1.9e9]))
    assert values_of(readings, "sm_clock") == [1980.0, 1900.0]
    assert readings.frame.origins[("sm_clock", 0)].name == "CLOCK_HZ"
    assert [(m.label, m.value) for m in readings.frame.origins[("sm_clock", 0)].matchers] == [
        ("UUID", "GPU-5a")
    ]


def test_label_variants_are_one_gpu():
    new = {"hostname": "node-3", "gpu": "5", "UUID": "GPU-5a"}
    readings = frame_of(series("TEMP", [60, 61]), series("CLOCK", [1980], new))
    assert [e.name for e in readings.frame.entities] == ["node-3:5"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2147483632, "INT32_BLANK"),
        (2147483634, "INT32_NOT_SUPPORTED"),
        (140737488355328.0, "FP64_BLANK"),
        (140737488355329.0, "FP64_NOT_FOUND"),
        (9223372036854775792, "INT64_BLANK"),
        (9.223372036854776e18, "INT64_BLANK"),
        (9.22337e18, "INT64_BLANK"),
        (9.5e18, "out of range"),
        (1e30, "out of range"),
        (1e300, "out of range"),
        (4294967295, "UINT32_MAX"),
        (float("nan"), "NaN"),
        (101, "out of range"),
        (-1, "out of range"),
    ],
)
def test_a_blank_is_no_reading_and_says_why(value, why):
    readings = frame_of(series("UTIL", [10, value, 20]))
    assert values_of(readings, "gpu_util") == [10.0, 20.0]
    assert readings.frame.dropped[("gpu_util", 0)].counts == {why: 1}


def test_a_counter_may_count_through_the_32_bit_marker():
    readings = frame_of(series("ENERGY", [2147483631, 2147483632, 2147483640]))
    assert len(values_of(readings, "energy")) == 3


def test_series_that_differ_in_descriptive_labels_are_merged_in_time():
    old = {**GPU, "err_code": "0"}
    new = {**GPU, "err_code": "79"}
    first = RawSeries("XID", old, np.array([AT - 60, AT - 45]), np.array([0.0, 0.0]))
    then = RawSeries("XID", new, np.array([AT - 30, AT - 15]), np.array([79.0, 79.0]))
    readings = frame_of(then, first)
    assert values_of(readings, "xid") == [0.0, 0.0, 79.0, 79.0]


def test_percent_scaled_ratios_are_found_per_exporter_and_said():
    idle = {**GPU, "gpu": "6", "UUID": "GPU-6a", "instance": "10.0.0.1:9400"}
    busy = {**GPU, "instance": "10.0.0.1:9400"}
    readings = frame_of(series("TENSOR", [54.0, 61.0], busy), series("TENSOR", [0.5, 0.4], idle))
    assert values_of(readings, "tensor_active", 0) == [0.54, 0.61]
    assert values_of(readings, "tensor_active", 1) == [0.005, 0.004]
    assert "percent" in readings.warnings[0]


def test_another_exporter_keeps_its_ratios():
    a = {**GPU, "instance": "10.0.0.1:9400"}
    b = {**GPU, "UUID": "GPU-6a", "gpu": "6", "instance": "10.0.0.2:9400"}
    readings = frame_of(series("TENSOR", [54.0], a), series("TENSOR", [0.9], b))
    assert values_of(readings, "tensor_active", 1) == [0.9]


def test_pods_on_one_gpu_are_counted_but_not_the_exporters_own():
    shared = [{**GPU, "namespace": "ml", "pod": f"job-{k}"} for k in range(4)]
    readings = frame_of(*(series("UTIL", [99], labels) for labels in shared))
    assert values_of(readings, "pods") == [4.0]
    assert readings.frame.entities[0].pod is None
    exporter = {
        **GPU,
        "namespace": "monitoring",
        "pod": "dcgm-exporter-78z52",
        "exported_pod": "train-7",
        "exported_namespace": "ml",
    }
    readings = frame_of(series("UTIL", [99], exporter))
    assert (readings.frame.entities[0].namespace, readings.frame.entities[0].pod) == (
        "ml",
        "train-7",
    )


def test_a_pod_that_left_does_not_share():
    gone = RawSeries("UTIL", {**GPU, "pod": "old"}, np.array([AT - 600]), np.array([90.0]))
    readings = frame_of(gone, series("UTIL", [99], {**GPU, "pod": "new"}))
    assert values_of(readings, "pods") == [1.0]


def test_mig_instances_are_one_physical_gpu():
    slices = [{**GPU, "GPU_I_ID": str(k), "GPU_I_PROFILE": "1g.6gb"} for k in (3, 4, 5)]
    readings = frame_of(*(series("TEMP", [40], labels) for labels in slices))
    assert len(readings.frame) == 1
    assert values_of(readings, "mig_instances") == [3.0]


def test_a_rise_of_an_xid_counter_is_a_change_of_the_xid():
    count = {**GPU, "xid": "79", "window_size_in_ms": "300000"}
    readings = frame_of(series("XID", [79, 79, 79]), series("XID_COUNT", [0, 1, 1], count))
    codes = values_of(readings, "xid")
    assert 0.0 in codes
    assert codes[-1] == 79.0


def test_up_of_the_gpu_exporter_is_told_from_other_jobs():
    at_home = {**GPU, "instance": "10.0.0.1:9400"}
    readings = frame_of(
        series("TEMP", [60], at_home),
        series("up", [0], {"job": "anything", "instance": "10.0.0.1:9400"}),
        series("up", [1], {"job": "node-exporter", "instance": "node-3:9100"}),
    )
    assert values_of(readings, "exporter_up") == [0.0]
    assert values_of(readings, "node_up") == [1.0]


def test_samples_outside_the_window_do_not_count():
    readings = frame_of(series("TEMP", [50, 60, 70], step=300.0), window_s=400.0)
    assert values_of(readings, "gpu_temp") == [60.0, 70.0]


def test_without_timestamps_repeated_series_are_successive_samples():
    readings = build_frame(
        Batch([series("UTIL", [0, 4294967295, 0], timed=False)], None, 1),
        CATALOGUE,
        at=None,
        window_s=900.0,
    )
    assert not readings.frame.timed
    assert values_of(readings, "gpu_util") == [0.0, 0.0]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.floats(allow_nan=True), max_size=5)), max_size=6
    )
)
def test_whatever_comes_the_columns_are_sound(rows):
    some = [
        series("UTIL", values, {**GPU, "gpu": str(k), "UUID": f"GPU-{k}"}) for k, values in rows
    ]
    frame = frame_of(*some).frame
    for name, column in frame.columns.items():
        assert column.offsets[0] == 0
        assert column.offsets[-1] == column.values.size == column.ts.size
        assert not np.isnan(column.values).any(), name
        for i in range(len(frame)):
            ts, values = frame.samples(name, i)
            assert (np.diff(ts) > 0).all()
            if name == "gpu_util":
                assert ((values >= 0) & (values <= 100)).all()


@given(st.floats())
def test_every_dropped_value_has_a_reason(value):
    assert clean.reason(value)
