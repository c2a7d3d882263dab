"""Who may do what: a denial wins, captures need a rule, and what is unknown is not allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy import Policy, PolicyRule, RefusedError
from bot.policy.groups import GroupBook
from bot.policy.policy import unknown_commands
from bot.policy.rules import UNKNOWN_GROUPS
from bot.request import Actor, ActorKind, Request
from engine.errors import SourceError

ADA = Actor(ActorKind.SLACK, "U1", channel="C1", groups=("S1",))
BOB = Actor(ActorKind.SLACK, "U2", channel="C2")
CI = Actor(ActorKind.TOKEN, "ci")
ROOT = Actor(ActorKind.LOCAL, "root")


def why(target: str) -> Request:
    return Request("why", {"target": target})


def capture(target: str = "node-3:5") -> Request:
    return Request("capture", {"profiler": "nsys", "target": target, "duration_s": 10})


def allow(**parts: tuple[str, ...]) -> PolicyRule:
    return PolicyRule(True, **parts)


def deny(**parts: tuple[str, ...]) -> PolicyRule:
    return PolicyRule(False, **parts)


def allowed(rules: list[PolicyRule], actor: Actor, request: Request, **options: bool) -> bool:
    return Policy(rules, **options).decide(actor, request).allowed


@pytest.mark.parametrize("actor", [ADA, CI, ROOT])
def test_without_rules_everybody_may_look_and_nobody_may_capture(actor):
    assert allowed([], actor, why("node-3:5"))
    assert allowed([], actor, Request("sweep"))
    assert not allowed([], actor, capture())
    assert not allowed([], actor, Request("approve", {"target": "node-3:5"}))


@pytest.mark.parametrize(
    ("who", "actor", "expected"),
    [
        ("user:U1", ADA, True),
        ("user:U1", BOB, False),
        ("user:U*", BOB, True),
        ("group:S1", ADA, True),
        ("group:S1", BOB, False),
        ("token:ci", CI, True),
        ("token:U1", ADA, False),
        ("user:ci", CI, False),
        ("local:root", ROOT, True),
        ("*", ADA, True),
    ],
)
def test_who(who, actor, expected):
    assert allowed([allow(who=(who,), commands=("capture",))], actor, capture()) is expected


def test_a_channel_is_a_place_that_can_be_named_together_with_people():
    rule = allow(who=("user:U1",), channels=("C1",), commands=("capture",))
    assert allowed([rule], ADA, capture())
    elsewhere = Actor(ActorKind.SLACK, "U1", channel="C9")
    assert not allowed([rule], elsewhere, capture())


@pytest.mark.parametrize(
    ("pattern", "target", "expected"),
    [
        ("node-3:5", "node-3:5", True),
        ("node-3:5", "gpu 5 on node-3", True),
        ("node-3:5", "NODE-3:5", True),
        ("node-3", "node-3:5", True),
        ("node-3:*", "node-3:5", True),
        ("node-3:*", "node-30:5", False),
        ("node-[4-7]*", "node-3:5", False),
        ("node-3:5", "GPU-3a4f", False),
        ("a::node-3:5", "a::node-3:5", True),
        ("b::node-3:5", "a::node-3:5", False),
        ("*", "job/7", True),
    ],
)
def test_targets_by_pattern(pattern, target, expected):
    assert allowed([allow(commands=("capture",), targets=(pattern,))], ADA, capture(target)) is (
        expected
    )


def test_a_denial_wins_in_any_order():
    rules = [allow(), deny(who=("user:U1",))]
    for both in (rules, rules[::-1]):
        assert not allowed(both, ADA, why("node-3:5"))
        assert allowed(both, BOB, why("node-3:5"))


def test_a_denied_target_denies_what_takes_it_in():
    rules = [allow(), deny(targets=("secret-*",))]
    assert not allowed(rules, ADA, why("secret-1:0"))
    assert not allowed(rules, ADA, why("fleet"))
    assert not allowed(rules, ADA, Request("sweep"))
    assert allowed(rules, ADA, why("node-3:5"))
    # Decoding concerns no target.
    assert allowed(rules, ADA, Request("decode", {"text": "0x48"}))


@pytest.mark.parametrize("target", ["GPU-3a4f", "job/7", "pod/a/b", "secret"])
def test_what_names_its_hosts_late_is_checked_again(target):
    policy = Policy([deny(targets=("secret-*",))])
    request = why(target)
    assert policy.decide(ADA, request).allowed
    shown = {"target": {"kind": "gpu", "name": "secret-1:0", "host": "secret-1"}}
    assert not policy.recheck(ADA, request, shown).allowed
    other = {"target": {"kind": "gpu", "name": "node-1:0", "host": "node-1"}}
    assert policy.recheck(ADA, request, other).allowed


def test_closed_by_default_leaves_help():
    options = {"open_by_default": False}
    assert not allowed([], ADA, why("node-3:5"), **options)
    assert allowed([], ADA, Request("help"), **options)


def test_a_refusal_says_what_and_whom_to_ask():
    with pytest.raises(
        RefusedError, match="you may not use capture node-3:5: capture needs a rule"
    ):
        Policy().check(ADA, capture())


@given(st.lists(st.sampled_from([allow(), deny(), allow(who=("user:U1",))]), max_size=5))
def test_more_denials_never_allow_more(rules):
    before = allowed(rules, ADA, capture())
    assert not (allowed([*rules, deny(who=("user:U1",))], ADA, capture()) and not before)


@given(st.text(max_size=80))
def test_no_target_breaks_a_decision(target):
    rules = [deny(targets=("secret-*", "[")), allow(targets=("*",))]
    decision = Policy(rules).decide(ADA, why(target))
    assert decision.reason


def test_names_of_commands_in_rules_are_checked():
    rules = [allow(commands=("capture", "approve", "w*", "sweeep"))]
    assert unknown_commands(rules, ["why", "sweep"]) == ["sweeep"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_groups_are_learned_and_forgotten_when_too_old():
    clock = Clock()
    answers = {"S1": ("U2",)}

    async def fetch(group):
        if group not in answers:
            raise SourceError("Slack is away")
        return answers[group]

    book = GroupBook(("S1",), fetch, clock)
    assert book.known(BOB).groups == (UNKNOWN_GROUPS,)
    await book.refresh()
    assert book.known(BOB).groups == ("S1",)
    assert book.known(CI) is CI
    answers.clear()
    clock.now = 1800
    await book.refresh()
    assert book.known(BOB).groups == ("S1",)
    clock.now = 4000
    assert book.known(BOB).groups == (UNKNOWN_GROUPS,)


def test_an_unknown_group_allows_nobody_and_denies_everybody():
    unsure = Actor(ActorKind.SLACK, "U2", groups=(UNKNOWN_GROUPS,))
    assert not allowed([allow(who=("group:S1",), commands=("capture",))], unsure, capture())
    assert not allowed([deny(who=("group:S1",))], unsure, why("node-3:5"))
