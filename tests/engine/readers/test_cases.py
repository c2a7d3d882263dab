"""What people pasted, and what the answer must hold."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue
from engine.readers import read
from tests.support.cases import Case, case, check, decode_faults, family, plain, text_faults
from tests.support.readings import judge

FAMILIES = (
    "amd",
    "dcgm_metrics",
    "nccl_logs",
    "nccl_tests",
    "nvidia_smi",
    "throttle",
    "vllm_metrics",
    "xid_lines",
)


@pytest.mark.parametrize("one", [c for name in FAMILIES for c in family(name)], ids=str)
def test_a_case_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = read(one.input.encode(), catalogue, judge)
    assert check(one, answer, plain(answer), catalogue) == []


@pytest.mark.parametrize("id_", ["thr-014"])
def test_a_mask_is_decoded_where_the_rules_decide_the_cause(id_: str, catalogue: Catalogue) -> None:
    one = case("throttle", id_)
    answer = read(one.input.encode(), catalogue)
    assert list(decode_faults(one, answer)) == []
    assert not set(answer.causes) & set(one.causes_not)


def test_a_rate_is_named_as_one_where_the_rules_decide_the_cause(catalogue: Catalogue) -> None:
    one = case("dcgm_metrics", "dcgm-019")
    answer = read(one.input.encode(), catalogue)
    idle, *others = text_faults(one, plain(answer))
    assert "idle" in idle
    assert others == []


def test_the_checker_finds_fault_with_an_empty_answer(catalogue: Catalogue) -> None:
    one = case("xid_lines", "xid-022")
    answer = read(b"", catalogue)
    faults = check(one, answer, plain(answer), catalogue)
    assert any(f.startswith("data xid") for f in faults)
    assert any(f.startswith("first cause") for f in faults)
    assert any(f.startswith("text lacks") for f in faults)


def test_an_answer_that_repeats_its_input_has_said_nothing() -> None:
    one = case("xid_lines", "xid-022")
    assert list(text_faults(one, one.input)) != []
