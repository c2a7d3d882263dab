"""How people describe a slow GPU to each other: figures in prose, judged as readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.readers import read
from engine.readers.base import Context
from engine.readers.stories.figures import _figures, figures_in
from tests.support.readings import catalogue, judge


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SM clock 345 MHz, power 150 of 700 W, 38 C, utilisation 100 percent, mask 0x88",
            {"sm_clock": 345, "power_usage": 150, "enforced_power_limit": 700, "gpu_temp": 38,
             "gpu_util": 100, "throttle_reasons": 0x88},
        ),
        (
            "GPU-Util 99 percent, SM clock 450 to 550 MHz (normal 1755), temperature 88 C",
            {"sm_clock": 500, "max_sm_clock": 1755, "gpu_temp": 88, "gpu_util": 99},
        ),
        (
            "clock 630 to 650 of 3003 MHz, idle temperature 67 C, now 71 C",
            {"sm_clock": 640, "max_sm_clock": 3003, "gpu_temp": 71},
        ),
        ("others reach 1980 MHz at 640 W; the twin was at 1965 MHz", {}),
        ("1200 MHz clock? clock 1200 MHz, 87 C, SW thermal slowdown active",
         {"sm_clock": 1200, "gpu_temp": 87, "throttle_reasons": 0x20}),
        ("clock 1200 MHz, no SW thermal slowdown", {"sm_clock": 1200}),
    ],
)  # fmt: skip
def test_figures_are_taken_with_their_meaning(text, expected):
    assert dict(_figures(text)) == expected


STORY = (
    b"8x H100 node half as fast as its twins since a PSU was replaced\n"
    b"all GPUs: SM clock 345 MHz, power 150 of 700 W, 38 C, utilisation 100 percent, mask 0x88\n"
)


def test_a_story_with_figures_is_judged_by_the_rules():
    found = read(STORY, catalogue(), judge)
    assert found.causes[0] == "power_brake"
    assert {d.confidence for d in found.diagnoses} == {"possible"}
    assert found.kinds == ("figures in words",)


def test_each_gpu_that_is_named_is_judged_by_itself():
    text = b"GPU 5: SM clock 500 MHz, 90 C, mask 0x20, util 99 %; GPU 4: SM clock 1900 MHz, 60 C, mask 0, util 99 %"
    found = read(text, catalogue(), judge)
    assert {(d.cause, d.entity.name) for d in found.diagnoses} == {("thermal_slowdown_sw", "GPU 5")}


def test_what_another_reader_knows_is_left_to_it():
    log = b"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    assert "figures in words" not in read(log + STORY, catalogue(), judge).kinds


def test_a_sentence_without_figures_says_nothing():
    assert read(b"our GPU is slow since Monday", catalogue(), judge).causes == ()


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    assert figures_in(text.encode("utf-8", "replace"), Context(catalogue(), judge)) is not None
