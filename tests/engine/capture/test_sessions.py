"""Reading nsys's list of sessions, and choosing the one that is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.capture import CaptureError
from engine.capture.profilers.nsyssessions import Session, choose, read_sessions
from tests.engine.capture.conftest import gpu, node

# As Nsight Systems 2022.4 writes it.
LISTING = """\
              ID         TIME                       STATE LAUNCH NAME
         1027595        00:50                    Launched      1 gpuwhy-5
         1127876     01:02:30                     Started      0 nosuch
         1328508        00:01                  Collection      1 [default]
         1328509        00:01                    Launched      2 two words
"""


def session(name, state="Launched", programs=1):
    return Session("1", name, state, programs)


def test_the_list_is_read():
    read = read_sessions("Welcome to node-3!\n" + LISTING)
    assert read == (
        Session("1027595", "gpuwhy-5", "Launched", 1),
        Session("1127876", "nosuch", "Started", 0),
        Session("1328508", "[default]", "Collection", 1),
        Session("1328509", "two words", "Launched", 2),
    )
    assert [(s.armed, s.recording) for s in read] == [
        (True, False),
        (False, False),
        (False, True),
        (True, False),
    ]


@given(st.text() | st.text("0123456789: \nLaunched"))
def test_any_text_is_read(text):
    for found in read_sessions(text):
        assert found.id.isdigit()


@pytest.mark.parametrize(
    ("there", "target", "chosen"),
    [
        ([session("gpuwhy-5"), session("gpuwhy-6")], gpu(), "gpuwhy-5"),
        ([session("gpuwhy-5"), session("train")], gpu(), "gpuwhy-5"),
        ([session("train")], gpu(), "train"),
        ([session("train"), session("gpuwhy-6")], gpu(), "train"),
        ([session("train"), session("idle", "Started", 0)], gpu(), "train"),
        ([session("[default]")], node(), "[default]"),
        ([session("gpuwhy-6")], node(), "gpuwhy-6"),
        ([session("gpuwhy"), session("gpuwhy-6")], node(), "gpuwhy"),
    ],
)
def test_the_session_that_is_meant(there, target, chosen):
    assert choose(there, target, "nsys").name == chosen


@pytest.mark.parametrize(
    ("there", "target", "code", "said"),
    [
        ([], gpu(), "not_armed", "nsys cannot attach to one that runs already; start the program"),
        ([], gpu(), "not_armed", "by: nsys launch --session-new=gpuwhy-5 --trace="),
        ([], node(), "not_armed", "by: nsys launch --session-new=gpuwhy --trace="),
        ([session("gpuwhy-6")], gpu(), "not_armed", "(there are sessions gpuwhy-6)"),
        ([session("gpuwhy-5", "Started", 0)], gpu(), "not_armed", "no program for node-3:5"),
        (
            [session("a"), session("b")],
            gpu(),
            "ambiguous_session",
            "(a, b); start the one that is meant with --session-new=gpuwhy-5",
        ),
        (
            [session(f"gpuwhy-{n}") for n in range(12)],
            node(),
            "ambiguous_session",
            "gpuwhy-7 and 4 more)",
        ),
        (
            [session("gpuwhy-5"), session("gpuwhy-5")],
            gpu(),
            "ambiguous_session",
            "(gpuwhy-5, gpuwhy-5)",
        ),
        ([session("gpuwhy-5", "Collection")], gpu(), "busy_session", "is being recorded already"),
        (
            [session("gpuwhy-5", "DelayedCollection"), session("train")],
            gpu(),
            "busy_session",
            "is being recorded already",
        ),
        ([session("gpuwhy-5", "Generation")], gpu(), "busy_session", "is being recorded already"),
    ],
)
def test_what_cannot_be_chosen_is_said(there, target, code, said):
    with pytest.raises(CaptureError) as caught:
        choose(there, target, "nsys")
    assert caught.value.code == code
    assert said in caught.value.one_line()
