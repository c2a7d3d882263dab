import pytest

from engine.catalogue.types import Pattern
from engine.errors import CatalogueError, Problem
from engine.inference.strata import assign_strata
from tests.support.causes import cause, causes


def test_causes_of_symptoms_only_stand_in_the_first_stratum():
    rules = causes(a=[Pattern(all=("s",))], b=[Pattern(any=("s", "t"), none=("u",))])
    assert assign_strata(rules) == {"a": 0, "b": 0}


def test_a_needed_cause_may_be_derived_in_the_same_stratum():
    rules = causes(
        a=[Pattern(all=("cause/b",))], b=[Pattern(any=("cause/c",))], c=[Pattern(("s",))]
    )
    assert assign_strata(rules) == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize("key", ["none", "unless"])
def test_a_cause_ruled_out_is_settled_one_stratum_before(key):
    rules = causes(
        a=[Pattern(all=("s",), **{key: ("cause/b",)})],
        b=[Pattern(all=("s",), **{key: ("cause/c",)})],
        c=[Pattern(all=("s",))],
        above=[Pattern(all=("cause/a",))],
    )
    assert assign_strata(rules) == {"a": 2, "b": 1, "c": 0, "above": 2}


def test_the_latest_of_all_patterns_decides():
    rules = causes(
        a=[Pattern(all=("cause/b",)), Pattern(all=("s",), unless=("cause/b",))],
        b=[Pattern(all=("s",))],
    )
    assert assign_strata(rules) == {"a": 1, "b": 0}


def test_a_cause_without_a_rule_orders_nothing():
    assert assign_strata(causes(a=[Pattern(all=("s",), unless=("cause/gone",))])) == {"a": 0}


@pytest.mark.parametrize("key", ["all", "any", "none", "unless"])
def test_a_circle_names_every_cause_in_it_at_the_place_of_the_first(key):
    circle = [("c", "a"), ("a", "b"), ("b", "c")]
    rules = {
        one: cause(one, Pattern(("s",)), Pattern(**{key: (f"cause/{other}",)}), line=7)
        for one, other in circle
    }
    with pytest.raises(CatalogueError) as caught:
        assign_strata(rules)
    assert caught.value.problems == (
        Problem(
            "causes/a.yaml",
            7,
            1,
            "causes refer to each other in a circle: a -> b -> c -> a",
            "take one `cause/...` reference out, or refer to the symptoms behind it",
        ),
    )


def test_a_cause_that_refers_to_itself_is_a_circle():
    with pytest.raises(CatalogueError, match=r"cause a:1:1: .* circle: a -> a"):
        assign_strata(causes(a=[Pattern(all=("s",), unless=("cause/a",))]))


def test_every_separate_circle_is_reported():
    refs = {"a": "b", "b": "a", "x": "y", "y": "x", "free": "a"}
    rules = causes(**{one: [Pattern(all=(f"cause/{other}",))] for one, other in refs.items()})
    with pytest.raises(CatalogueError) as caught:
        assign_strata(rules)
    assert [p.message.rpartition(": ")[2] for p in caught.value.problems] == [
        "a -> b -> a",
        "x -> y -> x",
    ]


def test_the_order_of_rules_in_the_catalogue_does_not_matter():
    rules = causes(
        c=[Pattern(all=("s",))],
        b=[Pattern(all=("s",), unless=("cause/c",))],
        a=[Pattern(all=("cause/b",))],
    )
    backwards = dict(reversed(rules.items()))
    assert assign_strata(rules) == assign_strata(backwards)
