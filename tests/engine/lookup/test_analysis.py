"""Terms: what people vary in writing makes no difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lookup.analysis import Analyser, stem

ANALYSER = Analyser({"allreduce": ["allreduce", "all reduce"], "slow": ["slow", "crawls"]})


@pytest.mark.parametrize(
    "text", ["AllReduce", "all-reduce", "all reduce", "ALLREDUCE", "allreduce"]
)
def test_a_name_is_met_in_every_spelling(text: str) -> None:
    assert "~allreduce" in ANALYSER.terms(text)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("DCGM_FI_PROF_SM_ACTIVE", "dcgm_fi_prof_sm_active"),
        ("DCGM_FI_PROF_SM_ACTIVE", stem("active")),
        ("--duration", stem("duration")),
        ("vllm:num_requests_waiting", "vllm:num_requests_waiting"),
        ("H100", "h100"),
        ("it crawls", "~slow"),
        ("throttling", stem("throttled")),
        ("100 %", "100"),
    ],
)
def test_terms_of(text: str, term: str) -> None:
    assert term in ANALYSER.terms(text)


def test_words_without_a_subject_are_no_terms() -> None:
    assert ANALYSER.terms("what is it and how do I do that") == []


@given(st.text(max_size=300))
def test_any_text_has_terms_without_blanks(text: str) -> None:
    assert all(term and not term.isspace() for term in ANALYSER.terms(text))
    words = ANALYSER.analyse(ANALYSER.words(text))
    assert all(word.exact for word in words)
