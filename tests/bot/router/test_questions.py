"""What is a question to the knowledge base, and what is talk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.router import free_question


@pytest.mark.parametrize(
    "text",
    [
        "which tool shows idle gaps?",
        "how do I profile a running job with nsys",
        "<@U123> what is the busbw baseline for H100",
        "allreduce crawls",
        "ttft spikes at night",
        "dashboard says 100 % GPU util but it's slow",
        "ncu permission denied",
        "and on AMD?",
        "for 1003?",
        "hey gpuwhy, is 83 C too hot for an H100",
    ],
)
def test_questions_and_symptoms_are_asked(text: str) -> None:
    found = free_question(text)
    assert found is not None
    assert found.command == "ask"
    assert "<@" not in str(found.args["text"])


@pytest.mark.parametrize(
    "text",
    ["thanks!", "ok", "nvm", "good bot", "", "   ", "lol", "see you tomorrow", "```NVRM: Xid```"],
)
def test_talk_is_not(text: str) -> None:
    assert free_question(text) is None


def test_a_long_report_is_no_question() -> None:
    assert free_question("why " + "x" * 700) is None


@given(st.text(max_size=300))
def test_any_text_is_a_question_or_none(text: str) -> None:
    found = free_question(text)
    assert found is None or found.command == "ask"
