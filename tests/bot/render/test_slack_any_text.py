"""Whatever comes from outside, Slack takes the messages and obeys nothing in them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.answer import (
    Align,
    Answer,
    Bullet,
    Bullets,
    Code,
    Fields,
    Heading,
    Level,
    Mark,
    Note,
    NoteKind,
    Rule,
    Span,
    Steps,
    Table,
    Text,
    Tone,
)
from bot.render import mrkdwn, slack, slackcards
from bot.render.blockkit import size, validate
from bot.render.safe import visible
from bot.request import Actor, ActorKind
from engine.errors import GpuwhyError
from engine.model import Step

HOSTILE = "<!channel><@U1>&;`*_~:ab:>|\n\t\x00\x1b\u202e\u200b\u2028\ud800 漢é👍\u0301x7"
texts = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=40),
    st.text(alphabet=HOSTILE, max_size=30),
    st.sampled_from(
        [
            "<!channel>",
            "<!here> <!everyone> <!subteam^S0ABC|ops>",
            "<@U0ALICE>",
            "<https://evil.example|node-3>",
            "&lt;!channel&gt;",
            "*bold* _italic_ ~gone~ `code` ```block```",
            "> quoted",
            ":fire: 0000:ab:00 12:30:45",
            "a" * 700,
            "👍" * 700,
            "&" * 700,
            "<" * 700,
            "\U000e0001" * 700,
            "*a " * 400,
        ]
    ),
)
spans = st.builds(Span, texts, st.sampled_from(Mark), st.sampled_from(Tone))
lines = st.lists(spans, max_size=4).map(tuple)
bullets = st.builds(Bullet, lines, st.lists(st.builds(Bullet, lines), max_size=2).map(tuple))


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    rows = st.lists(st.lists(lines, min_size=width, max_size=width).map(tuple), max_size=3)
    columns = st.lists(texts, min_size=width, max_size=width).map(tuple)
    aligns = st.lists(st.sampled_from(Align), min_size=width, max_size=width).map(tuple)
    return Table(draw(columns), draw(rows.map(tuple)), draw(aligns))


risks = st.sampled_from(["none", "disturbs", "disrupts", "odd"])
steps = st.lists(st.builds(Step, texts, st.none() | texts, st.none(), risks), max_size=3)
blocks = st.one_of(
    st.builds(Heading, lines, st.integers(1, 2)),
    st.builds(Text, lines),
    st.builds(Fields, st.lists(st.tuples(texts, lines), max_size=3).map(tuple)),
    tables(),
    st.builds(Bullets, st.lists(bullets, max_size=3).map(tuple)),
    st.builds(Code, texts, texts),
    st.builds(Steps, steps.map(tuple)),
    st.builds(Note, st.sampled_from(NoteKind), lines),
    st.builds(Rule),
)
answers = st.builds(
    Answer,
    lines,
    st.lists(blocks, max_size=8).map(tuple),
    st.just({}),
    st.sampled_from(Level),
    st.lists(st.builds(GpuwhyError, texts), max_size=1).map(tuple),
)
actors = st.builds(Actor, st.sampled_from(ActorKind), texts, texts)

FORMATTED = re.compile(r"(?<![A-Za-z0-9])([*_~])(?=\S)[^\n]*?(?<=\S)\1(?![A-Za-z0-9])")
CODE = re.compile(r"`[^`\n]+`")
EMOJI = re.compile(r":[a-z0-9_+-]*[a-z_+-][a-z0-9_+-]*:", re.IGNORECASE)


def unescaped(text):
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@given(answers)
def test_every_answer_is_within_the_limits(answer):
    messages = slack.render(answer)
    assert 1 <= len(messages) <= 5
    for message in messages:
        assert validate(message.payload()) == ()


@given(answers, actors, texts, st.floats(0, 4e9))
def test_every_card_is_within_the_limits(answer, actor, text, at):
    cards = [
        slackcards.progress(actor, text, text),
        *slackcards.plan(answer, "job", actor, expires_at=at),
        *slackcards.decided(answer, actor, text or "denied", at=at),
        *slackcards.decided(answer, None, "expired", at=at),
        *slackcards.answer(answer),
    ]
    for card in cards:
        assert validate(card) == ()
        assert "blocks" in card, "nothing had to fall back to text"


@given(texts)
@example("`a` `b`")
def test_prose_says_the_same_and_formats_nothing(text):
    written = mrkdwn.prose(text)
    assert unescaped(written.replace("`", "")) == visible(text).replace("`", "\u02cb")
    outside = CODE.sub("x", written)
    assert "`" not in outside
    assert not FORMATTED.search(outside)
    assert not EMOJI.search(outside)
    assert not written.lstrip().startswith("&gt;")


@given(texts)
def test_bold_is_one_run_or_none(text):
    written = mrkdwn.strong(text)
    inside = written.strip()
    if inside.startswith("*") and inside != "*":
        assert inside.endswith("*")
        assert "*" not in inside[1:-1]
        assert inside[1] != " "
        assert inside[-2] != " "
    else:
        assert written == mrkdwn.prose(text)


@given(texts)
def test_code_ends_where_it_should(text):
    written = mrkdwn.code(text)
    assert "`" not in written.strip("`")
    assert "<" not in written
    assert "```" not in mrkdwn.code_row(text)


@given(st.text(alphabet=HOSTILE + "\u0301\U0001f3fd", max_size=900), st.integers(20, 300))
def test_chunks_are_the_text(text, most):
    parts = list(mrkdwn.chunks(text, most))
    assert "".join(parts) == text
    assert all(0 < len(part) <= most for part in parts)


@given(lines)
def test_a_piece_always_fits_in_a_row(line):
    assert all(size(text) <= 2800 for _, text in mrkdwn.pieces(line))


def test_names_with_underscores_and_times_stay_prose():
    for text in ("hw_power_brake at 0x88", "2025-11-29T15:50:00Z", "a * b", "about ~5 %", "2*3*4"):
        assert "`" not in mrkdwn.prose(text)


def test_what_would_format_is_set_as_code():
    assert mrkdwn.prose("GPU 0000:ab:00, gone") == "GPU `0000:ab:00`, gone"
    assert mrkdwn.prose("see (*this*).") == "see (`*this*`)."
    assert mrkdwn.prose("> not a quotation") == "`&gt;` not a quotation"
    assert mrkdwn.strong("a*b") == "a*b"
    assert mrkdwn.strong(" node-3 ") == " *node-3* "


@pytest.mark.parametrize("label", ["<!channel>", "<!here|x>", "<@U0ALICE>", "<!subteam^S1>"])
@pytest.mark.parametrize("mark", Mark)
def test_a_host_label_never_becomes_a_mention(label, mark):
    span = Span(f"node {label} is degraded", mark)
    blocks = (
        Heading((span,), 1),
        Text((span,)),
        Fields(((label, (span,)),)),
        Table((label,), (((span,),),), (Align.LEFT,)),
        Bullets((Bullet((span,), (Bullet((span,)),)),)),
        Code(span.text),
        Steps((Step(span.text, span.text),)),
        Note(NoteKind.WARNING, (span,)),
    )
    answer = Answer((span,), blocks, {})
    for message in slack.render(answer):
        assert label not in str(message.payload())
        assert label in unescaped(str(message.payload()))


def test_a_long_answer_goes_on_in_more_messages_and_says_where_it_ends():
    blocks = tuple(Text((Span(f"{n} " + "words " * 400),)) for n in range(60))
    messages = slack.render(Answer((Span("long"),), blocks, {}))
    assert len(messages) == 5
    shown = [block["text"]["text"] for m in messages for block in m.blocks if "text" in block]
    assert [text.split()[0] for text in shown[1:]] == [str(n) for n in range(len(shown) - 1)]
    assert "goes on" in messages[-1].blocks[-1]["elements"][0]["text"]
    assert all("goes on" not in str(m.blocks) for m in messages[:-1])


def test_five_messages_are_complete_without_a_remark():
    blocks = tuple(Text((Span(f"{n} " + "words " * 400),)) for n in range(14))
    messages = slack.render(Answer((Span("long"),), blocks, {}))
    assert 2 <= len(messages) <= 5
    assert "13 words" in str(messages[-1].blocks)
    assert "goes on" not in str(messages)


def test_a_huge_paste_is_rendered_quickly_enough_to_answer():
    items = tuple(Bullet((Span(f"line {n}: Xid 79"),)) for n in range(40_000))
    assert len(slack.render(Answer((Span("t"),), (Bullets(items),), {}))) == 5


def test_commands_to_type_are_written_for_slack_and_copied_whole():
    steps = (Step("see", "gpuwhy why node-3:5"), Step("look", "echo `date` | grep 'gpuwhy why'"))
    (message,) = slack.render(Answer((Span("t"),), (Steps(steps),), {}))
    assert "```\n/gpu why node-3:5\n```" in message.blocks[1]["text"]["text"]
    assert "```\necho `date` | grep 'gpuwhy why'\n```" in message.blocks[1]["text"]["text"]
