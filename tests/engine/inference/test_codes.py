"""Rule sets at the edges of what the library's tables hold."""

from itertools import combinations

import pytest

from engine.catalogue.types import Pattern
from engine.errors import CatalogueError
from engine.inference import codes
from engine.inference.compiled import compile_rules
from engine.inference.durable import DurableEvaluator
from engine.inference.reference import ReferenceEvaluator
from tests.support.causes import causes


def fnv1a_32(text):
    """The hash by which durable_rules tells facts apart (json.c, state.c)."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def agree(rules, *questions):
    program = compile_rules(rules)
    durable, reference = DurableEvaluator(program), ReferenceEvaluator(program)
    for facts in questions:
        expected = reference.evaluate(facts)
        assert durable.evaluate(facts) == expected
        yield {cause for cause, _ in expected}


def test_no_two_numbers_collide():
    ids = [str(number) for number in range(codes.MAX_CODES + 1)]
    assert len({fnv1a_32(id_) for id_ in ids}) == len(ids)


def test_a_symptom_in_many_patterns():
    rules = causes(**{f"c{i}": [Pattern(all=("s",), unless=("t",))] for i in range(600)})
    with_t, without = agree(rules, ("s", "t"), ("s",))
    assert (len(with_t), len(without)) == (0, 600)


def test_a_symptom_in_many_choices():
    rules = causes(**{f"c{i}": [Pattern(any=("s", "t"), none=("u", "v"))] for i in range(150)})
    held, both, blocked, unsure = agree(rules, ("s",), ("s", "t"), ("s", "v"), ("t", "unknown/u"))
    assert [len(found) for found in (held, both, blocked, unsure)] == [150, 150, 0, 0]


def test_the_longest_patterns():
    many = tuple(f"a{i}" for i in range(codes.MAX_FACTS_IN_RULE - 2))
    either = tuple(f"b{i}" for i in range(codes.MAX_PARTS))
    out = tuple(f"x{i}" for i in range(3 * codes.MAX_PARTS))
    rules = causes(long=[Pattern(all=many, any=either, unless=out)])
    assert list(
        agree(
            rules,
            (*many, either[0]),
            (*many, either[-1]),
            (*many, *either),
            many,
            (*many[1:], *either),
            (*many, *either, out[0]),
            (*many, *either, out[-1]),
        )
    ) == [{"long"}, {"long"}, {"long"}, set(), set(), set(), set()]


def test_as_many_facts_as_the_library_holds():
    symptoms = [f"s{i}" for i in range(codes.MAX_CODES - 1)]  # the probe takes one number
    rules = causes(**{f"c_{s}": [Pattern(all=(s,))] for s in symptoms})
    everything = list(agree(rules, tuple(symptoms), (symptoms[-1],)))
    assert len(everything[0]) == len(symptoms)
    assert everything[1] == {f"c_{symptoms[-1]}"}


def refused(rules):
    with pytest.raises(CatalogueError) as caught:
        DurableEvaluator(compile_rules(rules))
    return [problem.message for problem in caught.value.problems]


def test_more_facts_are_refused():
    rules = causes(**{f"c{i}": [Pattern(all=(f"s{i}",))] for i in range(codes.MAX_CODES)})
    assert refused(rules) == ["the rules refer to 501 facts; durable_rules holds 500"]


def test_more_rules_than_the_library_takes_are_refused():
    symptoms = [f"s{i}" for i in range(40)]
    pairs = list(combinations(symptoms, 2)) * 6
    message = refused(causes(c=[Pattern(all=pair) for pair in pairs]))[0]
    assert message.startswith("durable_rules does not take the rules: ")


def test_patterns_that_are_too_long_are_refused_with_their_place():
    rules = causes(
        a=[Pattern(all=("s",)), Pattern(all=tuple(f"s{i}" for i in range(14)))],
        b=[Pattern(any=tuple(f"s{i}" for i in range(29)))],
    )
    assert refused(rules) == [
        "pattern 2 of cause 'a' has 14 references in `all`; at most 13 are possible",
        "pattern 1 of cause 'b' has 29 references in `any`; at most 28 are possible",
    ]


def test_the_same_rules_have_the_same_digest_and_others_another():
    first, again, other = (
        codes.encode(compile_rules(causes(a=[Pattern(all=(s,))], b=[Pattern(any=("x", "y"))])))[0]
        for s in ("x", "x", "y")
    )
    assert first.digest == again.digest != other.digest
