"""Which cause is named first, and what hangs beneath it."""

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diagnosis.rank import Fired, rank
from engine.model import Class, Confidence, Entity, Kind, Severity

NODE = Entity(Kind.NODE, "node-3", host="node-3")
OTHER_NODE = Entity(Kind.NODE, "node-4", host="node-4")
GPUS = [Entity(Kind.GPU, f"node-3:{i}", host="node-3", gpu=i) for i in (0, 2, 10)]
GPU = GPUS[0]
NOTES = (Class.BENIGN, Class.BLIND)


def fired(
    cause,
    explains="",
    effects="",
    *,
    entity=GPU,
    class_=Class.FAULT,
    severity=Severity.HIGH,
    confidence=Confidence.CERTAIN,
):
    return Fired(
        cause,
        entity,
        class_,
        severity,
        confidence,
        frozenset(explains.split()),
        tuple(effects.split()),
    )


def outline(ranked):
    """Roots in order, effects in brackets: ``a(b(c) d) e``."""

    def tree(effects):
        return "(" + " ".join(e.cause + tree(e.effects) for e in effects) + ")" if effects else ""

    return " ".join(r.fired.cause + tree(r.effects) for r in ranked)


def test_nothing_fired():
    assert rank([]) == ()


# --- effects beneath causes


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([fired("a", effects="b"), fired("b")], "a(b)"),
        # b did not fire: nothing says that a brought about c, which b may have as an effect
        ([fired("a", effects="b"), fired("c")], "a c"),
        ([fired("a", effects="b"), fired("b", effects="c"), fired("c")], "a(b(c))"),
        ([fired("a", effects="b c"), fired("b", effects="c"), fired("c")], "a(b(c))"),
        ([fired("a", effects="b c"), fired("b"), fired("c")], "a(b c)"),
        # an effect of two causes hangs once, beneath the first in order
        ([fired("a", effects="c"), fired("b", effects="c"), fired("c")], "a(c) b"),
        (
            [
                fired("a", effects="c"),
                fired("b", effects="c", severity=Severity.CRITICAL),
                fired("c"),
            ],
            "b(c) a",
        ),
        # effects are in order, too
        ([fired("a", effects="b c"), fired("b", severity=Severity.LOW), fired("c")], "a(c b)"),
        # a listed effect that is worse than its cause is still its effect
        (
            [
                fired("airflow", "all_hot", "slowdown", severity=Severity.MEDIUM),
                fired("slowdown", "thermal_bit", severity=Severity.CRITICAL),
            ],
            "airflow(slowdown)",
        ),
        ([fired("a", effects="a")], "a"),
        ([fired("a", effects="b b"), fired("b")], "a(b)"),
    ],
)
def test_effects_hang_beneath_their_causes(causes, expected):
    assert outline(rank(causes)) == expected


def test_effects_hang_across_a_node_and_its_gpus_only():
    causes = [fired("brake", effects="slow", entity=NODE)]
    causes += [fired("slow", entity=entity) for entity in (*GPUS, NODE, OTHER_NODE)]
    (brake, elsewhere) = rank(causes)
    assert [e.entity for e in brake.effects] == [NODE, *GPUS]
    assert elsewhere.fired.entity == OTHER_NODE
    assert outline(rank([fired("a", effects="b", entity=GPU), fired("b", entity=NODE)])) == "a(b)"
    assert outline(rank([fired("a", effects="b", entity=GPUS[0]), fired("b", entity=GPUS[1])])) == (
        "a b"
    )


def test_the_same_host_name_in_another_cluster_is_another_place():
    here = Entity(Kind.NODE, "n", host="n", cluster="a")
    there = Entity(Kind.GPU, "n:0", host="n", cluster="b")
    assert outline(rank([fired("a", effects="b", entity=here), fired("b", entity=there)])) == "a b"


def test_without_a_known_host_nothing_is_shared():
    node, gpu = Entity(Kind.NODE, "?"), Entity(Kind.GPU, "GPU 0", gpu=0)
    assert outline(rank([fired("a", effects="b", entity=node), fired("b", entity=gpu)])) == "a b"


@pytest.mark.parametrize("note", NOTES)
def test_what_needs_action_never_hangs_beneath_a_note(note):
    causes = [fired("note", "x y", "fault", class_=note), fired("fault", "y")]
    assert outline(rank(causes)) == "fault note"


def test_a_note_may_hang_beneath_a_fault_or_another_note():
    off_bus = fired("gpu_off_bus", effects="no_data")
    down = fired("exporter_down", effects="no_data", class_=Class.BLIND)
    no_data = fired("no_data", class_=Class.BLIND)
    assert outline(rank([off_bus, no_data])) == "gpu_off_bus(no_data)"
    assert outline(rank([down, no_data])) == "exporter_down(no_data)"


@pytest.mark.parametrize(
    ("cause", "effect", "seen_by_effect", "expected"),
    [
        (Confidence.POSSIBLE, Confidence.CERTAIN, "x y", "effect guess"),
        (Confidence.POSSIBLE, Confidence.LIKELY, "x y", "effect guess"),
        (Confidence.POSSIBLE, Confidence.CERTAIN, "x", "guess(effect)"),
        (Confidence.POSSIBLE, Confidence.POSSIBLE, "x y", "guess(effect)"),
        (Confidence.LIKELY, Confidence.CERTAIN, "x y", "guess(effect)"),
    ],
)
def test_a_guess_does_not_swallow_what_is_sure(cause, effect, seen_by_effect, expected):
    causes = [
        fired("guess", "x", "effect", confidence=cause),
        fired("effect", seen_by_effect, confidence=effect),
    ]
    assert outline(rank(causes)) == expected


def test_a_circle_of_effects_loses_nothing():
    causes = [fired("b", effects="c"), fired("c", effects="a"), fired("a", effects="b")]
    assert outline(rank(causes)) == "a(b(c))"


# --- what comes first


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        # one cause that explains the others' symptoms stands before them
        ([fired("a", "x"), fired("b", "y"), fired("c", "x y")], "c a b"),
        # even of a milder class, if the others add nothing
        (
            [fired("a", "x"), fired("b", "y"), fired("c", "x y", class_=Class.WORKLOAD)],
            "c a b",
        ),
        # all are needed: then class decides
        ([fired("a", "x y", class_=Class.VICTIM), fired("b", "z")], "b a"),
        # a cause is credited with what its effects explain
        (
            [fired("z", "x", "late"), fired("late", "y"), fired("b", "y"), fired("a", "x")],
            "z(late) a b",
        ),
        # ... also where only the number decides
        ([fired("a", "p q"), fired("b", "x", "late"), fired("late", "y z")], "b(late) a"),
        # the largest is not part of the smallest set: two that cover all beat it
        (
            [
                fired("big", "1 2 3 4"),
                fired("left", "1 2 5", severity=Severity.LOW),
                fired("right", "3 4 6", severity=Severity.LOW),
            ],
            "left right big",
        ),
        # two smallest sets: the better one
        ([fired("b", "x"), fired("a", "x", severity=Severity.LOW)], "b a"),
        # a cause that accounts for nothing comes last of its group
        ([fired("a"), fired("b", "x", severity=Severity.LOW)], "b a"),
        # notes do not compete with what needs action
        (
            [
                fired("idle", "x y z", class_=Class.BENIGN),
                fired("no_data", "x y", class_=Class.BLIND),
                fired("brake", "x", class_=Class.LIMIT, severity=Severity.LOW),
            ],
            "brake idle no_data",
        ),
    ],
)
def test_the_smallest_explanation_comes_first(causes, expected):
    assert outline(rank(causes)) == expected


def test_ties_are_broken_by_class_severity_confidence_number_and_id():
    in_order = [
        fired("z", "s1", severity=Severity.CRITICAL),
        fired("y", "s2", confidence=Confidence.CERTAIN),
        fired("x", "s3 s4", confidence=Confidence.LIKELY),
        fired("a", "s5", confidence=Confidence.LIKELY),
        fired("b", "s6", confidence=Confidence.LIKELY),
        fired("w", "s7", class_=Class.LIMIT, severity=Severity.CRITICAL),
        fired("v", "s8", class_=Class.WORKLOAD, severity=Severity.CRITICAL),
        fired("u", "s9", class_=Class.VICTIM, severity=Severity.CRITICAL),
    ]
    assert [r.fired for r in rank(reversed(in_order))] == in_order


def test_the_same_cause_of_several_gpus_is_ordered_by_entity():
    ranked = rank([fired("a", f"x{i}", entity=GPUS[i]) for i in (2, 0, 1)])
    assert [r.fired.entity for r in ranked] == GPUS


def test_of_a_cause_given_twice_the_better_counts():
    sure, unsure = fired("a", "x"), fired("a", "x y", confidence=Confidence.POSSIBLE)
    assert [r.fired for r in rank([unsure, sure])] == [sure]


@pytest.mark.parametrize("turn", [1, -1])
def test_of_a_cause_given_twice_alike_the_order_of_the_input_does_not_decide(turn):
    twice = [fired("a", "y"), fired("a", "x", "b"), fired("a", "x", "c")]
    assert [r.fired for r in rank(twice[::turn])] == [twice[1]]


def test_explains_is_that_of_the_whole_tree():
    (root,) = rank([fired("a", "x", "b"), fired("b", "y", "c"), fired("c", "z")])
    assert root.explains == {"x", "y", "z"}


# --- for any input

CAUSES = [f"c{i}" for i in range(8)]
SYMPTOMS = [f"s{i}" for i in range(6)]

ANY_FIRED = st.builds(
    Fired,
    cause=st.sampled_from(CAUSES),
    entity=st.sampled_from([*GPUS, NODE, OTHER_NODE]),
    class_=st.sampled_from(Class),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    explains=st.frozensets(st.sampled_from(SYMPTOMS), max_size=4),
    effects=st.lists(st.sampled_from(CAUSES), max_size=3).map(tuple),
)
ANY_INPUT = st.lists(ANY_FIRED, max_size=9, unique_by=lambda one: one.key)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_FIRED, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(causes, random):
    shuffled = list(causes)
    random.shuffle(shuffled)
    assert rank(shuffled) == rank(causes)


def below(effects):
    for effect in effects:
        yield (effect.cause, effect.entity.key)
        yield from below(effect.effects)


@settings(max_examples=300, deadline=None)
@given(ANY_INPUT)
def test_everything_that_fired_is_there_exactly_once(causes):
    shown = [key for root in rank(causes) for key in (root.fired.key, *below(root.effects))]
    assert sorted(shown) == sorted(one.key for one in causes)


@settings(max_examples=300, deadline=None)
@given(ANY_INPUT)
def test_what_hangs_is_a_listed_effect_and_no_fault_hangs_beneath_a_note(causes):
    by_key = {one.key: one for one in causes}

    def check(above, effects):
        for effect in effects:
            one = by_key[effect.cause, effect.entity.key]
            assert one.cause in above.effects
            assert above.class_ not in NOTES or one.class_ in NOTES
            check(one, effect.effects)

    for root in rank(causes):
        check(root.fired, root.effects)


@settings(max_examples=300, deadline=None)
@given(ANY_INPUT)
def test_the_first_roots_are_a_smallest_set_that_explains_everything(causes):
    roots = [root for root in rank(causes) if root.fired.class_ not in NOTES]
    everything = frozenset().union(*(root.explains for root in roots))

    def explain_all(some):
        return everything == frozenset().union(*(root.explains for root in some))

    smallest = next(
        size
        for size in range(len(roots) + 1)
        if any(explain_all(chosen) for chosen in combinations(roots, size))
    )
    assert explain_all(roots[:smallest])


@settings(max_examples=300, deadline=None)
@given(ANY_INPUT)
def test_notes_come_after_what_needs_action_and_blind_ones_last(causes):
    groups = [max(0, list(Class).index(r.fired.class_) - 3) for r in rank(causes)]
    assert groups == sorted(groups)


def test_many_causes_are_ranked_greedily_and_fast():
    # Pairs over 40 symptoms: no symptom has a single cause, so nothing is needed at once.
    names = [f"s{i:02d}" for i in range(40)]
    causes = [
        fired(f"c{a}{b}", f"{a} {b}") for a, b in zip(names, names[1:] + names[:1], strict=True)
    ]
    started = time.perf_counter()
    ranked = rank(causes)
    assert time.perf_counter() - started < 1
    assert len(ranked) == 40
    assert frozenset().union(*(root.explains for root in ranked[:20])) == set(names)
