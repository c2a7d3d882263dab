"""Asking: the right entry first, follow-ups, placeholders, and saying so when not sure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.lookup.ask import MAX_CHARACTERS
from engine.lookup.placeholders import PLACEHOLDERS, fill
from engine.model import to_json
from tests.support.shelf import library


def first(question: str, after: str | None = None) -> str:
    """Return the id of the first answer."""
    return library().ask(question, after=after).answers[0].id


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("what is xid 79", "xid/79"),
        ("XID 79?", "xid/79"),
        ("dcgm feild 1003", "dcgm_fields/1003"),
        ("throttle mask 0x40", "throttle_reasons/hw_thermal"),
        ("what does NCCL_IB_HCA do", "nccl_variables/nccl_ib_hca"),
        ("nsys profile -p PID: does nsys attach to a process?", "nsys/attach"),
        ("AMD equivalent of Nsight Compute", "amd_tools/ncu"),
        ("why is my GPU slow", "howto/gpu_slow"),
        ("where do I start", "howto/gpu_slow"),
        ("nccl falls back to socket", "howto/nccl_socket_fallback"),
        ("power cap", "throttle_reasons/sw_power_cap"),
    ],
)
def test_what_is_named_is_answered(question: str, wanted: str) -> None:
    found = library().ask(question)
    assert found.answers[0].id == wanted
    assert found.sure


@pytest.mark.parametrize(
    ("before", "question", "wanted"),
    [
        ("what does dcgm field 1002 mean", "for 1003?", "dcgm_fields/1003"),
        ("what does dcgm field 1002 mean", "and 1004?", "dcgm_fields/1004"),
        ("what is xid 79", "and xid 48?", "xid/48"),
        ("which tool shows kernel counters like ncu", "and on AMD?", "amd_tools/ncu"),
    ],
)
def test_a_follow_up_keeps_the_subject(before: str, question: str, wanted: str) -> None:
    found = library().ask(question, after=before)
    assert wanted in [answer.id for answer in found.answers[:2]]
    assert found.after == before


def test_follow_ups_go_on_from_each_other() -> None:
    found = library().ask("and 1005?", after="what does dcgm field 1002 mean\nfor 1003?")
    assert found.answers[0].id == "dcgm_fields/1005"


def test_a_question_that_stands_alone_follows_nothing() -> None:
    found = library().ask(
        "which command lists the stripe layout of a lustre file", after="what is xid 79"
    )
    assert found.after is None
    assert found.answers[0].id.startswith("storage/")


def test_commands_are_filled_from_the_target() -> None:
    found = library().ask("what is dcgm field 1002", values={"gpu": "5"})
    assert found.answers[0].commands[0] == "dcgmi dmon -e 1002 -i 5 -c 10"
    assert found.answers[0].runs[0].argv[-3] == "5"


def test_what_looks_at_its_own_machine_goes_to_the_host() -> None:
    found = library().ask("what is dcgm field 1002", values={"gpu": "5", "host": "node-3"})
    line = "dcgmi dmon -e 1002 -i 5 -c 10"
    assert found.answers[0].commands[0] == f"ssh node-3 {line}"
    assert found.answers[0].runs[0].argv == ("ssh", "node-3", line)


def test_several_codes_are_all_answered() -> None:
    found = library().ask("xid 79 and 48")
    assert {answer.id for answer in found.answers[:2]} == {"xid/79", "xid/48"}
    found = library().ask("0x48")
    assert {answer.id for answer in found.answers[:2]} == {
        "throttle_reasons/hw_thermal",
        "throttle_reasons/hw_slowdown",
    }


def test_what_is_not_known_is_an_upper_case_word() -> None:
    found = library().ask("what is dcgm field 1002")
    assert "-i GPU " in found.answers[0].commands[0]


def test_values_are_quoted_for_a_shell() -> None:
    assert fill("cat {file} | wc", {"file": "a b; rm -rf /"}, quote=True) == (
        "cat 'a b; rm -rf /' | wc"
    )
    assert fill("{nothing} {file}") == "{nothing} FILE"


@pytest.mark.parametrize(
    "question",
    [
        "how do I bake sourdough bread",
        "what is the capital of France",
        "best striker in the premier league",
        "my printer has a paper jam",
        "how do I cancel my flight",
        "zzzz qqqq xxxx",
        "?!",
        "the and of",
    ],
)
def test_what_lies_outside_is_said_to_be_unsure(question: str) -> None:
    assert not library().ask(question).sure


@pytest.mark.parametrize(
    "question", ["what is the capital of France", "how do i bake bread", "who won the world cup"]
)
def test_nothing_is_offered_for_what_has_nothing_to_do_with_it(question: str) -> None:
    assert library().ask(question).answers == ()


@pytest.mark.parametrize("question", ["", "  ", "\n\t", "\x00\x07"])
def test_nothing_asked_is_said(question: str) -> None:
    with pytest.raises(UsageError, match="nothing was asked"):
        library().ask(question)


def test_too_long_a_question_is_sent_to_read() -> None:
    with pytest.raises(UsageError, match="gpuwhy read"):
        library().ask("x" * (MAX_CHARACTERS + 1))


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=200), st.none() | st.text(max_size=100))
def test_any_text_gives_an_answer_and_always_the_same(text: str, after: str | None) -> None:
    try:
        one = library().ask(text, after=after)
    except UsageError as error:
        refused = error
    else:
        refused = None
    if refused:
        assert "\n" not in refused.one_line()
        return
    assert to_json(one) == to_json(library().ask(text, after=after))
    assert all(0 <= answer.score <= 1 for answer in one.answers)
    assert len({answer.id for answer in one.answers}) == len(one.answers)


def test_every_placeholder_is_explained() -> None:
    assert all(about for about in PLACEHOLDERS.values())
