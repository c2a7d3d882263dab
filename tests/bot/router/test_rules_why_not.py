"""`rules why-not` typed in Slack: its words, its errors, and whose permission it needs."""

from __future__ import annotations

import pytest

from bot.policy.names import names_of
from bot.request import Request
from bot.router import parse_words
from engine.errors import UsageError


def test_rule_and_target_are_taken_with_the_period():
    request = parse_words("rules why-not power_brake gpu 5 on node-3 --at 03:12 --window 30m")
    assert request.command == "rules"
    assert request.args == {
        "action": "why-not",
        "name": "power_brake",
        "target": "node-3:5",
        "at": "03:12",
        "window": "30m",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rules why-not", "needs a rule and a target"),
        ("rules why-not power_brake", "needs a rule and a target"),
        ("rules list --at 03:12", "has no option --at"),
        ("rules why-not power_brake node-3:5 --window x", "cannot read 'x'"),
    ],
)
def test_wrong_words_are_one_line(words, said):
    with pytest.raises(UsageError, match=said):
        parse_words(words)


def test_the_target_is_one_that_the_policy_knows():
    args = {"action": "why-not", "name": "power_brake", "target": "secret-1:0"}
    assert names_of(Request("rules", args)).names == ("secret-1:0", "secret-1")
    assert names_of(Request("rules", {"action": "list"})).names == ()
