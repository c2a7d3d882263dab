"""Whatever comes from outside, nothing printed is obeyed by a terminal, and nothing raises."""

from __future__ import annotations

import json as stdlib_json
import re
import unicodedata

import pytest
from hypothesis import given
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
from bot.render import json, plain, terminal
from bot.render.safe import visible, visible_lines
from engine.errors import GpuwhyError
from engine.model import Step

HOSTILE = (
    "\x1b[31m\x9b\x07\r\n\t\x00\u202e\u2066\u200b\u2028\ufeff\ud800[red]:smile:{}<!channel>&*_`|-"
)
texts = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=40),
    st.text(alphabet=HOSTILE, max_size=20),
    st.text(alphabet="漢é👍ａ\u0301 ", max_size=20),
)
spans = st.builds(Span, texts, st.sampled_from(Mark), st.sampled_from(Tone))
lines = st.lists(spans, max_size=3).map(tuple)
bullets = st.builds(Bullet, lines, st.lists(st.builds(Bullet, lines), max_size=2).map(tuple))


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    rows = st.lists(st.lists(lines, min_size=width, max_size=width).map(tuple), max_size=3)
    columns = st.lists(texts, min_size=width, max_size=width).map(tuple)
    aligns = st.lists(st.sampled_from(Align), min_size=width, max_size=width).map(tuple)
    return Table(draw(columns), draw(rows.map(tuple)), draw(aligns))


risks = st.one_of(st.sampled_from(["none", "disturbs", "disrupts"]), texts)
blocks = st.one_of(
    st.builds(Heading, lines, st.integers(1, 2)),
    st.builds(Text, lines),
    st.builds(Fields, st.lists(st.tuples(texts, lines), max_size=3).map(tuple)),
    tables(),
    st.builds(Bullets, st.lists(bullets, max_size=3).map(tuple)),
    st.builds(Code, texts, texts),
    st.builds(
        Steps,
        st.lists(st.builds(Step, texts, st.none() | texts, st.none(), risks), max_size=3).map(
            tuple
        ),
    ),
    st.builds(Note, st.sampled_from(NoteKind), lines),
    st.builds(Rule),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
answers = st.builds(
    Answer,
    lines,
    st.lists(blocks, max_size=5).map(tuple),
    st.dictionaries(texts, values, max_size=3),
    st.sampled_from(Level),
)

OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
SGR = re.compile(r"\x1b\[[0-9;]*m")


def obeyed(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in OBEYED]


@given(answers)
def test_plain_text_holds_nothing_that_is_obeyed(answer):
    text = plain.render(answer)
    assert obeyed(text) == []
    assert text.endswith("\n")


@given(answers, st.integers(0, 200), st.booleans())
def test_terminal_text_holds_colours_only(answer, width, colour):
    text = terminal.render(answer, width=width, colour=colour)
    assert obeyed(SGR.sub("", text) if colour else text) == []


@given(answers)
def test_json_reads_back_and_is_ascii(answer):
    text = json.render(answer)
    assert text.isascii()
    assert stdlib_json.loads(text) == answer.data
    assert list(stdlib_json.loads(text)) == list(answer.data)


@given(texts)
def test_visible_is_one_line_and_keeps_what_is_harmless(text):
    shown = visible(text)
    assert obeyed(shown) == []
    assert "\n" not in shown
    if not obeyed(text) and "\n" not in text:
        assert shown == text


@given(texts)
def test_lines_are_split_at_newlines_only(text):
    assert len(visible_lines(text)) == text.replace("\r\n", "\n").count("\n") + 1


def test_markup_of_rich_is_not_interpreted():
    answer = Answer((Span("[red]x[/red] :smile: [link=http://a]b[/link]"),), (), {})
    assert "[red]x[/red] :smile: [link=http://a]b[/link]" in terminal.render(
        answer, width=100, colour=True
    )


def test_numbers_that_json_cannot_spell_are_refused():
    with pytest.raises(ValueError, match="Out of range"):
        json.render(Answer((), (), {"value": float("nan")}))


def test_errors_beside_the_answer_are_in_the_document():
    answer = Answer((), (), {"schema": "gpuwhy/x/1"}, errors=(GpuwhyError("a", hint="b"),))
    assert stdlib_json.loads(json.render(answer))["errors"] == [
        {"code": "error", "message": "a", "hint": "b"}
    ]


def test_commands_are_not_folded_so_that_they_can_be_copied():
    long = "nvidia-smi " + "x" * 300
    answer = Answer((Span("t"),), (Steps((Step("do", long),)), Code(long)), {})
    assert terminal.render(answer, width=60, colour=False).count(long) == 2
