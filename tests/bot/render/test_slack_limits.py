"""The validator: each limit holds at its number and breaks one above; nothing makes it raise."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from bot.render import slack
from bot.render.blockkit import Surface, as_text, sendable, size, units, validate


def mrkdwn(text):
    return {"type": "mrkdwn", "text": text}


def plain(text):
    return {"type": "plain_text", "text": text}


def section(text="x", **more):
    return {"type": "section", "text": mrkdwn(text), **more}


def button(**more):
    return {"type": "button", "action_id": "a", "text": plain("Go"), "value": "v", **more}


def actions(*buttons):
    return {"type": "actions", "elements": list(buttons)}


def confirm(**more):
    texts = {"title": "t", "text": "x", "confirm": "y", "deny": "n", **more}
    return {key: plain(text) for key, text in texts.items()}


def message(*blocks, text="words", **more):
    return {"text": text, "blocks": list(blocks), **more}


# What holds `n` of something, the number that Slack takes, and what the library's own models say.
LIMITS = {
    "blocks": (lambda n: message(*[section()] * n), 50, False),
    "text": (lambda n: message(text="x" * n), 4000, False),
    "bytes of text": (lambda n: message(text="é" * (n // 2)), 4000, False),
    "total text": (lambda n: message(*[section("x" * 2500)] * 3, section("x" * (n - 7500))), 10_000, False),
    "section": (lambda n: message(section("x" * n)), 3000, True),
    "section in UTF-16": (lambda n: message(section("👍" * (n // 2))), 3000, False),
    "fields": (lambda n: message({"type": "section", "fields": [mrkdwn("x")] * n}), 10, True),
    "field": (lambda n: message({"type": "section", "fields": [mrkdwn("x" * n)]}), 2000, False),
    "header": (lambda n: message({"type": "header", "text": plain("x" * n)}), 150, True),
    "context": (lambda n: message({"type": "context", "elements": [mrkdwn("x")] * n}), 10, True),
    "actions": (lambda n: message(actions(*[button(action_id=f"a{i}") for i in range(n)])), 25, True),
    "button": (lambda n: message(actions(button(text=plain("x" * n)))), 75, True),
    "value": (lambda n: message(actions(button(value="x" * n))), 2000, True),
    "url": (lambda n: message(actions(button(url="x" * n))), 3000, False),
    "action_id": (lambda n: message(actions(button(action_id="x" * n))), 255, True),
    "block_id": (lambda n: message(section(block_id="x" * n)), 255, True),
    "confirm title": (lambda n: message(actions(button(confirm=confirm(title="x" * n)))), 100, True),
    "confirm text": (lambda n: message(actions(button(confirm=confirm(text="x" * n)))), 300, True),
    "confirm button": (lambda n: message(actions(button(confirm=confirm(deny="x" * n)))), 30, True),
    "markdown": (lambda n: {"text": "w", "blocks": [{"type": "markdown", "text": "x" * n}]}, 12_000, True),
    "alt text": (lambda n: message({"type": "image", "image_url": "u", "alt_text": "x" * n}), 2000, True),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_holds_at_its_number_and_breaks_above(name):
    make, most, _ = LIMITS[name]
    problems = [p for p in validate(make(most)) if name != "markdown" or "of text" not in str(p)]
    assert problems == []
    step = 2 if "UTF-16" in name or "bytes" in name else 1
    assert validate(make(most + step)) != ()


@pytest.mark.parametrize("name", [name for name, (_, _, known) in LIMITS.items() if known])
def test_the_models_of_slack_sdk_draw_the_same_line(name):
    make, most, _ = LIMITS[name]
    taken_by_the_models(make(most))
    with pytest.raises(SlackObjectFormationError):
        taken_by_the_models(make(most + 1))


def taken_by_the_models(payload):
    for block in Block.parse_all(payload["blocks"]):
        block.to_dict()


WRONG = {
    "no text": ({"blocks": [section()]}, "/text"),
    "blank text": (message(text=" \n"), "/text"),
    "unknown argument": (message(txt="x"), "/txt"),
    "no list": ({"text": "w", "blocks": {}}, "/blocks"),
    "no block": (message("x"), "/blocks/0/type"),
    "unknown block": (message({"type": "sektion"}), "/blocks/0/type"),
    "block of another surface": (message({"type": "alert"}), "/blocks/0/type"),
    "empty section": (message({"type": "section"}), "/blocks/0"),
    "blank section": (message(section(" ")), "/blocks/0/text/text"),
    "mrkdwn in a header": (message({"type": "header", "text": mrkdwn("x")}), "/blocks/0/text/type"),
    "unknown key": (message(section(colour="red")), "/blocks/0/colour"),
    "emoji in mrkdwn": (
        message({"type": "section", "text": {**mrkdwn("x"), "emoji": True}}),
        "/blocks/0/text/emoji",
    ),
    "empty context": (message({"type": "context", "elements": []}), "/blocks/0/elements"),
    "no button": (message(actions({"type": "select"})), "/blocks/0/elements/0/type"),
    "a style": (message(actions(button(style="loud"))), "/blocks/0/elements/0/style"),
    "no action_id": (
        message(actions({"type": "button", "text": plain("Go")})),
        "/blocks/0/elements/0/action_id",
    ),
    "block_id twice": (message(section(block_id="b"), section(block_id="b")), "/blocks"),
    "action_id twice": (message(actions(button(), button())), "/blocks"),
    "everybody": (message(section("hi <!channel>")), "/blocks/0/text"),
    "everybody here": (message(section("<!here|x>")), "/blocks/0/text"),
    "a group": (message(section("<!subteam^S1>")), "/blocks/0/text"),
    "a channel": (message(text="<#C1>"), "/text"),
    "a half one": (message(section("<@U1")), "/blocks/0/text"),
    "a script": (message(section("<javascript:x|y>")), "/blocks/0/text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_slack_refuses_is_named_with_its_place(name):
    payload, pointer = WRONG[name]
    found = validate(payload)
    assert any(problem.pointer.startswith(pointer) for problem in found), found


def test_a_user_and_a_link_may_be_written():
    said = "<@U0ALICE> <https://gpuwhy.example.com/captures/1|trace>"
    assert validate(message(section(said), text=said)) == ()


def test_surfaces_differ():
    markdown = {"blocks": [{"type": "markdown", "text": "x"}]}
    assert validate({"text": "w", **markdown}) == ()
    assert validate(markdown, Surface.MODAL) != ()
    assert validate({"blocks": [section()] * 100}, Surface.HOME) == ()
    assert validate({"blocks": [section()] * 101}, Surface.HOME) != ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "blocks", "elements", "fields", "confirm", "action_id", "block_id", "style", "title"]
            ),
            inner | st.sampled_from(["section", "actions", "button", "context", "header", "image", "mrkdwn"]),
            max_size=6,
        )
    ),
    max_leaves=30,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(["text", "blocks", "x"]), json_values), st.sampled_from(Surface)
)
def test_no_payload_breaks_the_validator(payload, surface):
    before = copy.deepcopy(payload)
    validate(payload, surface)
    assert payload == before
    assert validate(sendable(payload)) == ()


def test_a_message_that_slack_would_refuse_goes_as_text(caplog):
    rows = [f"row {n} &lt;x&gt; <!channel> <@U0ALICE>" for n in range(60)]
    sent = sendable(message(*[section(row) for row in rows]))
    assert list(sent) == ["text"]
    assert sent["text"].startswith("row 0 &lt;x&gt; &lt;!channel&gt; <@U0ALICE>\nrow 1 ")
    assert "row 59" in sent["text"]
    assert "60 blocks" in caplog.text


@given(st.text(alphabet="<>&;ab!|@U漢👍\ud800\n", max_size=60), st.integers(1, 400))
def test_text_cut_short_is_still_sendable(text, times):
    assert validate(as_text(message(section(text * times), text="w"))) == ()


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_bytes_are_never_fewer_than_what_slack_counts(text):
    assert units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert len(text) <= units(text) <= size(text)


def test_helpers_make_valid_blocks():
    assert validate(message(slack.section("x"), slack.context("a", "b"))) == ()
