"""What follows from what, written by hand; both evaluators must say the same."""

import importlib
import sys

import pytest

import engine.inference
from engine.catalogue.types import Pattern
from engine.errors import CatalogueError
from engine.inference import Derived, make_inferrer
from engine.model import Truth
from tests.support.causes import causes

RULES = causes(
    brake=[Pattern(all=("brake_bit",))],
    hot=[
        Pattern(all=("thermal_bit", "at_limit")),
        Pattern(any=("thermal_bit", "at_limit"), none=("cool_inlet",)),
    ],
    power=[Pattern(all=("cap_bit", "busy"), unless=("cause/brake",))],
    idle=[Pattern(all=("no_work",), none=("busy",), unless=("brake_bit",))],
    slow=[Pattern(any=("cause/power", "cause/brake"))],
    healthy_load=[Pattern(all=("busy",), none=("cause/hot", "cause/slow"))],
    chain=[Pattern(all=("cause/slow", "cause/hot"))],
    twice=[Pattern(all=("busy",), any=("busy", "cap_bit"))],
    never=[Pattern(all=("busy",), unless=("busy",))],
    orphan=[Pattern(all=("cause/not_loaded",))],
    lone=[Pattern(all=("lonely",), unless=("cause/not_loaded",))],
)

# Symptoms: + true, - false, anything not named is unknown. Expected: cause, or cause:pattern
# indices where a cause has several patterns.
CASES = [
    ("", ""),
    ("-busy -no_work", ""),
    ("+unheard_of", ""),
    ("+brake_bit", "brake slow"),
    ("+thermal_bit", ""),  # cool_inlet unknown: not known to be false
    ("+thermal_bit -cool_inlet", "hot:1"),
    ("+thermal_bit +cool_inlet", ""),
    ("+thermal_bit +at_limit", "hot:0"),
    ("+thermal_bit +at_limit -cool_inlet", "hot:0,1"),
    ("+cap_bit", ""),
    ("+cap_bit +busy", "power slow twice"),
    ("+cap_bit +busy +brake_bit", "brake slow twice"),
    ("+busy", "healthy_load twice"),
    ("+busy +at_limit", "healthy_load twice"),
    ("+busy +at_limit -cool_inlet", "hot:1 twice"),
    ("+no_work", ""),  # busy unknown
    ("+no_work -busy", "idle"),
    ("+no_work +busy", "healthy_load twice"),
    ("+no_work -busy +brake_bit", "brake slow"),  # an asserted brake is not hidden by idleness
    ("+brake_bit +thermal_bit +at_limit", "brake chain hot:0 slow"),
    ("+cap_bit +busy +at_limit -cool_inlet", "chain hot:1 power slow twice"),
    ("+lonely", "lone"),
]


def truths_of(text):
    signs = {"+": Truth.TRUE, "-": Truth.FALSE, "?": Truth.UNKNOWN}
    return {word[1:]: signs[word[0]] for word in text.split()}


def derived_of(text):
    found = []
    for word in text.split():
        cause, _, patterns = word.partition(":")
        found.append(Derived(cause, tuple(int(p) for p in patterns.split(",") if p) or (0,)))
    return tuple(found)


@pytest.fixture(scope="module", params=["durable_rules", "reference"])
def inferrer(request):
    return make_inferrer(RULES, prefer=request.param)


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_case_by_hand(inferrer, given, expected):
    assert inferrer.infer(truths_of(given)) == derived_of(expected)


@pytest.mark.parametrize("given", ["+thermal_bit ?cool_inlet", "+no_work ?busy"])
def test_an_unknown_symptom_is_as_one_that_is_left_out(inferrer, given):
    assert inferrer.infer(truths_of(given)) == ()


def test_plain_words_do_for_truths(inferrer):
    assert inferrer.infer({"no_work": "true", "busy": "false"}) == (Derived("idle", (0,)),)


def test_answers_are_remembered_per_facts_not_per_question(inferrer):
    first = inferrer.infer(truths_of("+brake_bit"))
    assert inferrer.infer(truths_of("+brake_bit +unheard_of -at_limit")) is first


def test_order_of_truths_does_not_matter(inferrer):
    truths = truths_of("+cap_bit +busy +at_limit -cool_inlet")
    backwards = dict(reversed(truths.items()))
    assert make_inferrer(RULES, prefer=inferrer.name).infer(backwards) == inferrer.infer(truths)


@pytest.mark.parametrize("prefer", ["durable_rules", "reference"])
def test_no_rules_derive_nothing(prefer):
    assert make_inferrer({}, prefer=prefer).infer({"s": Truth.TRUE}) == ()


@pytest.mark.parametrize("prefer", ["durable_rules", "reference"])
def test_a_pattern_without_a_positive_condition_is_refused(prefer):
    rules = causes(a=[Pattern(all=("s",)), Pattern(unless=("s",))])
    with pytest.raises(CatalogueError, match="pattern 2 of cause 'a' has no `all` and no `any`"):
        make_inferrer(rules, prefer=prefer)


def test_auto_takes_durable_rules():
    assert make_inferrer(RULES).name == "durable_rules"


@pytest.fixture
def without_library(monkeypatch):
    """As where the library is not installed."""
    for name in ("engine.inference.durable", "durable", "durable.engine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "durable_rules_engine", None)


@pytest.mark.usefixtures("without_library")
def test_auto_falls_back_where_the_library_is_missing():
    inferrer = make_inferrer(RULES)
    assert inferrer.name == "reference"
    assert inferrer.infer(truths_of("+brake_bit")) == derived_of("brake slow")


@pytest.mark.usefixtures("without_library")
def test_the_library_asked_for_by_name_is_never_replaced():
    with pytest.raises(ImportError):
        make_inferrer(RULES, prefer="durable_rules")


def test_a_name_that_is_no_evaluator_is_refused():
    with pytest.raises(ValueError, match="no evaluator is called 'durable'; take one of auto,"):
        make_inferrer(RULES, prefer="durable")


def test_auto_does_not_hide_an_error_of_our_own(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'engine.inference.codes'", name=name)

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError):
        make_inferrer(RULES)


def test_public_face():
    assert engine.inference.__all__ == ["Derived", "Inferrer", "make_inferrer"]
    assert all(hasattr(engine.inference, name) for name in engine.inference.__all__)
