"""An answer that was stored or sent is the same answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import answer_json
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
from bot.commands import decode
from bot.commands import help as help_
from engine.errors import GpuwhyError, InputError, SourceError
from engine.model import Step
from tests.support.readings import catalogue

words = st.text(max_size=20)
lines = st.lists(
    st.builds(Span, words, st.sampled_from(Mark), st.sampled_from(Tone)), max_size=4
).map(tuple)
bullet = st.recursive(
    st.builds(Bullet, lines),
    lambda inner: st.builds(Bullet, lines, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)
steps = st.builds(
    Step,
    words,
    st.none() | words,
    st.none() | st.lists(words, max_size=3).map(tuple),
    st.sampled_from(["none", "disturbs"]),
    st.none() | words,
)


@st.composite
def tables(draw):
    width = draw(st.integers(0, 3))
    row = st.tuples(*[lines] * width)
    return Table(
        draw(st.tuples(*[words] * width)),
        draw(st.lists(row, max_size=3).map(tuple)),
        draw(st.tuples(*[st.sampled_from(Align)] * width)),
    )


blocks = st.one_of(
    st.builds(Heading, lines, st.integers(1, 2)),
    st.builds(Text, lines),
    st.builds(Fields, st.lists(st.tuples(words, lines), max_size=3).map(tuple)),
    tables(),
    st.builds(Bullets, st.lists(bullet, max_size=3).map(tuple)),
    st.builds(Code, words, words),
    st.builds(Steps, st.lists(steps, max_size=3).map(tuple)),
    st.builds(Note, st.sampled_from(NoteKind), lines),
    st.just(Rule()),
)
answers = st.builds(
    Answer,
    lines,
    st.lists(blocks, max_size=4).map(tuple),
    st.dictionaries(words, st.none() | st.floats(allow_nan=False) | words, max_size=3),
    st.sampled_from(Level),
)


@given(answers)
def test_there_and_back(answer):
    assert answer_json.from_json(json.loads(json.dumps(answer_json.to_json(answer)))) == answer


@pytest.mark.parametrize("text", ["0x48", "72", "xid 79", "field 1003", "nothing known"])
def test_real_answers(text):
    answer = decode.run(text, catalogue=catalogue())
    back = answer_json.from_json(json.loads(json.dumps(answer_json.to_json(answer))))
    assert back == answer
    assert list(back.data) == list(answer.data)


def test_errors_keep_code_words_and_exit_status():
    errors = (
        InputError("a cannot be read", hint="check"),
        SourceError("b is away", code="source_redirect"),
    )
    answer = Answer((), (), {}, errors=errors)
    back = answer_json.from_json(answer_json.to_json(answer)).errors
    assert [(e.code, e.message, e.hint, e.exit_status) for e in back] == [
        (e.code, e.message, e.hint, e.exit_status) for e in errors
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    )
)
def test_anything_else_is_refused_in_one_line(document):
    with pytest.raises(InputError) as refused:
        answer_json.from_json(document)
    assert "\n" not in refused.value.one_line()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "gpuwhy/answer/2"},
        {"blocks": [{"type": "hologram"}]},
        {"blocks": [{"type": "text"}]},
        {"blocks": [{"type": "text", "line": "bare"}]},
        {"blocks": [{"type": "text", "line": [{"text": 5, "mark": "plain", "tone": "neutral"}]}]},
        {"blocks": [{"type": "table", "columns": ["a"], "rows": [[]], "align": ["left"]}]},
        {"level": "awful"},
        {"title": None},
    ],
)
def test_a_document_that_is_slightly_wrong_is_refused(change):
    good = answer_json.to_json(help_.run())
    with pytest.raises(InputError, match="the answer cannot be read"):
        answer_json.from_json({**good, **change})


def test_lists_without_end_are_refused():
    item: dict[str, object] = {"line": [], "under": []}
    for _ in range(500):
        item = {"line": [], "under": [item]}
    good = answer_json.to_json(help_.run())
    with pytest.raises(InputError):
        answer_json.from_json({**good, "blocks": [{"type": "bullets", "items": [item]}]})


def test_help_names_what_there_is():
    with pytest.raises(GpuwhyError, match="did you mean 'sweep'"):
        help_.run("swep")
    assert help_.run("why").data["commands"][0]["name"] == "why"
