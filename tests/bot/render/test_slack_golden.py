"""Answers and cards as Slack gets them, held against files."""

from __future__ import annotations

import json

import pytest

from bot.answer import Answer, Fields, Heading, Note, NoteKind, Steps, code, line, strong
from bot.commands import decode, read, sweep, why
from bot.commands import help as help_
from bot.failure import failed
from bot.render import slackcards
from bot.render.blockkit import validate
from bot.request import Actor, ActorKind
from engine.errors import UsageError
from engine.model import Step
from tests.support import golden
from tests.support.answers import AT, DECODES, READS, SWEEPS, WHYS

ALICE = Actor(ActorKind.SLACK, "U0ALICE", "alice", channel="C0GPUS")
PLAN = Answer(
    title=line("Capture ", strong("nsys"), " on ", strong("node-3:5"), " for 10 s"),
    blocks=(
        Fields(
            (
                ("session", line(code("gpuwhy-5"), ", armed by nsys launch")),
                ("route", line("ssh node-3")),
                ("overhead", line("a few per cent while it records")),
                ("file", line(code("captures/0192f/node-3-5.nsys-rep"))),
            )
        ),
        Heading(line("What will be run"), 2),
        Steps(
            (
                Step(
                    "start to record",
                    "nsys start --session=gpuwhy-5 --sample=none",
                    risk="disturbs",
                ),
                Step("stop after 10 s", "nsys stop --session=gpuwhy-5"),
            )
        ),
        Note(NoteKind.INFO, line("the program goes on; it is not started again")),
    ),
    data={"schema": "gpuwhy/capture/1"},
)
ANSWERS = {
    **{f"why-{name}": why.answer(found) for name, found in WHYS.items()},
    **{f"sweep-{name}": sweep.answer(found) for name, found in SWEEPS.items()},
    **{f"decode-{name}": decode.answer(found) for name, found in DECODES.items()},
    **{
        f"read-{name}": read.answer([read.Part("-", found)], found.causes)
        for name, found in READS.items()
    },
    "help": help_.run(),
    "help-why": help_.run("why"),
    "refusal": failed(UsageError("no command 'whi' here", hint="did you mean 'why'?")),
}
CARDS = {
    "progress": (slackcards.progress(ALICE, "why is gpu 5 on node-3 slow?"),),
    "progress-still": (slackcards.progress(ALICE, "sweep", "still looking after 20 s"),),
    "capture-plan": slackcards.plan(PLAN, "0192f3a0-7", ALICE, expires_at=AT + 900),
    "capture-approved": slackcards.decided(PLAN, ALICE, "approved", at=AT + 60),
    "capture-expired": slackcards.decided(PLAN, None, "expired", at=AT + 900),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_as_blocks(name):
    check(name, slackcards.answer(ANSWERS[name]))


@pytest.mark.parametrize("name", CARDS)
def test_a_card_as_blocks(name):
    check(name, CARDS[name])


def check(name, payloads):
    for payload in payloads:
        assert validate(payload) == ()
    text = json.dumps(payloads, indent=1, ensure_ascii=False) + "\n"
    golden.check(f"slack/{name}.json", text)


@pytest.mark.parametrize("name", [name for name in ANSWERS if not name.startswith("help")])
def test_the_verdict_comes_first_and_is_what_notifications_say(name):
    first = slackcards.answer(ANSWERS[name])[0]
    title = "".join(span.text for span in ANSWERS[name].title)
    words = [word for word in title.split() if word.isalnum()]
    for shown in (first["text"], first["blocks"][0]["text"]["text"]):
        at = -1
        for word in words:
            at = shown.index(word, at + 1)


def test_a_plan_keeps_its_commands_out_of_its_buttons():
    (card,) = slackcards.plan(PLAN, "0192f3a0-7", ALICE)
    (buttons,) = [block for block in card["blocks"] if block["type"] == "actions"]
    assert [one["value"] for one in buttons["elements"]] == ["0192f3a0-7"] * 2
    assert [one["style"] for one in buttons["elements"]] == ["primary", "danger"]
    assert "nsys" not in str(buttons)


def test_a_decided_plan_has_no_buttons_and_names_who_decided():
    (card,) = slackcards.decided(PLAN, ALICE, "denied", at=AT)
    assert "actions" not in [block["type"] for block in card["blocks"]]
    assert card["blocks"][-1]["text"]["text"] == "*denied* by <@U0ALICE> at 2025-11-29T16:00:00Z"


def test_only_slack_users_are_mentioned():
    assert slackcards.person(ALICE) == "<@U0ALICE>"
    assert slackcards.person(Actor(ActorKind.TOKEN, "U0ALICE", "ci")) == "`ci`"
    assert slackcards.person(Actor(ActorKind.SLACK, "U1> <!channel", "")) == "`U1&gt; &lt;!channel`"
    assert slackcards.person(Actor(ActorKind.LOCAL, "")) == "somebody"
