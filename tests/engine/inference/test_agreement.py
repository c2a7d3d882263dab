"""durable_rules and the plain evaluator agree on random rules and random truths."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.catalogue.types import Pattern
from engine.inference.compiled import compile_rules
from engine.inference.durable import DurableEvaluator
from engine.inference.reference import ReferenceEvaluator
from engine.model import Truth
from tests.support.causes import cause

SYMPTOMS = [f"s{i}" for i in range(7)]
MAX_CAUSES = 8


@st.composite
def patterns(draw, earlier):
    """Draw a pattern over symptoms and the causes that may be referred to without a circle."""
    refs = st.sampled_from([*SYMPTOMS, *(f"cause/{c}" for c in earlier)])
    few = st.lists(refs, max_size=3).map(tuple)
    pattern = Pattern(all=draw(few), any=draw(few), none=draw(few), unless=draw(few))
    return pattern if pattern.all or pattern.any else Pattern(any=(draw(refs),))


@st.composite
def rule_sets(draw):
    """Draw causes in an order unlike that of their ids; each refers only to those before it."""
    names = draw(st.permutations([f"c{i}" for i in range(MAX_CAUSES)]))
    count = draw(st.integers(1, MAX_CAUSES))
    rules = {}
    for index, name in enumerate(names[:count]):
        listed = draw(st.lists(patterns(names[:index]), min_size=1, max_size=3))
        rules[name] = cause(name, *listed)
    return rules


TRUTHS = st.fixed_dictionaries(
    {}, optional={symptom: st.sampled_from(list(Truth)) for symptom in SYMPTOMS}
)


@settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rule_sets(), st.lists(TRUTHS, min_size=1, max_size=6))
def test_both_evaluators_hold_the_same_patterns(rules, questions):
    program = compile_rules(rules)
    durable, reference = DurableEvaluator(program), ReferenceEvaluator(program)
    for truths in questions:
        facts = program.facts(truths)
        if facts:
            assert durable.evaluate(facts) == reference.evaluate(facts)


def holds(pattern, truths, derived):
    """The meaning of a pattern as its documentation has it, without compiled facts."""

    def truth(ref):
        if ref.startswith("cause/"):
            return Truth.TRUE if ref[6:] in derived else Truth.FALSE
        return truths.get(ref, Truth.UNKNOWN)

    return (
        all(truth(ref) is Truth.TRUE for ref in pattern.all)
        and (not pattern.any or any(truth(ref) is Truth.TRUE for ref in pattern.any))
        and all(truth(ref) is Truth.FALSE for ref in pattern.none)
        and all(truth(ref) is not Truth.TRUE for ref in pattern.unless)
    )


@settings(max_examples=300, deadline=None)
@given(rule_sets(), TRUTHS)
def test_what_is_derived_is_exactly_what_the_patterns_say(rules, truths):
    # Rules come in an order in which each refers only to earlier ones: one pass decides them all.
    expected = set()
    derived = set()
    for name, rule in rules.items():
        held = {(name, i) for i, p in enumerate(rule.patterns) if holds(p, truths, derived)}
        expected |= held
        derived |= {name} if held else set()
    program = compile_rules(rules)
    facts = program.facts(truths)
    assert (ReferenceEvaluator(program).evaluate(facts) if facts else set()) == expected
