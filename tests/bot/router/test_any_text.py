"""Properties that hold for every text."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.request import Request
from bot.router import COMMANDS, parse_words, understand
from bot.router.profilers import PROFILERS
from bot.router.slacktext import plain, read_message
from bot.router.vocabulary import CAPTURE, COMPLAINT, FILLER, LOOK, RECORDING
from engine.errors import UsageError
from tests.support.yamlfiles import parse

PHRASINGS = parse(
    (Path(__file__).parents[2] / "data" / "router" / "phrasings.yaml").read_text(encoding="utf-8")
)
_TEXTS = [entry["text"] for entry in PHRASINGS["understood"]] + PHRASINGS["not_understood"]
_WORDS = sorted({word for text in _TEXTS for word in text.split()} | FILLER | COMPLAINT | LOOK)
_THINGS = [
    *("node-3:5", "gpu 5", "gpu 72", "node-3", "on", "0x48", "xid 79", "03:12", "25:61", "10s"),
    *("GPU-3a4f", "pod/ml/a", "job 47", "--at", "--window", "```", "`", "&gt;", "<@U1>", "\n", "?"),
    *(
        ".",
        ",",
        "~",
        "*",
        "_",
        "“",
        "’",
        "—",
        "don't",
        "cluster=a",
        "why",
        "decode",
        "read",
        "nsys",
    ),
    *(
        "/gpu",
        "capture",
        "rules",
        "show rule code",
        "NVRM: Xid (PCI:0000:1a:00): 79,",
        '"',
        "'",
        "=",
    ),
    *("2h ago", "last hour", "99999 weeks ago", "host:99999", "TARGET", "CODE", "999.999.1.1"),
]
sentences = st.lists(st.sampled_from(_WORDS) | st.sampled_from(_THINGS), max_size=14).map(" ".join)
texts = st.one_of(
    sentences, st.text(max_size=300), st.text(alphabet="`&<>|@#!*_~:;\n\" '-.", max_size=80)
)


def outcome(reader, text):
    """Return what a reader made of a text, and the line with which it refused."""
    try:
        return reader(text), ""
    except UsageError as error:
        return None, error.one_line()


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@given(texts)
def test_understanding_never_fails(text):
    found = understand(text)
    if found is not None:
        assert found.command in COMMANDS
        assert Request.from_json(found.to_json()) == found


@given(texts)
def test_words_are_read_or_refused_in_one_line(text):
    found, refusal = outcome(parse_words, text)
    assert "\n" not in refusal
    assert len(refusal) < 400
    if found is not None:
        assert found.command in COMMANDS
        assert Request.from_json(found.to_json()) == found


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_what_a_person_types_comes_out_as_typed(text):
    assert plain(escaped(text)) == text


@given(st.text(max_size=200))
def test_nothing_unprintable_comes_out(text):
    assert plain(text).replace("\n", "").replace("\t", "").isprintable()


@given(sentences, st.sampled_from([" & you", " > 5", " < 5", " &&"]), st.integers(0, 60))
def test_escaping_by_slack_changes_nothing(text, sign, place):
    # What Slack alone writes (mentions, links, entities) nobody types.
    words = re.sub(r"[<>]|&\w+;", "", text)
    typed = f"why {words[:place]}{sign}{words[place:]}"
    once, twice = understand(escaped(typed)), understand(typed)
    assert once == twice


@given(sentences.filter(lambda text: "<" not in text and "&" not in text))
def test_angle_brackets_that_a_person_types_are_text(text):
    found = understand(escaped(f"{text} <b>"))
    assert found is None or "<b>" in found.text or len(found.text) == 300


@given(sentences)
def test_the_same_words_always_mean_the_same(text):
    assert understand(text) == understand(text)


@given(st.lists(st.sampled_from(["don't", "do not", "never", "stop", "no need to"])), sentences)
def test_a_forbidden_capture_is_none(forbidding, text):
    for word in forbidding:
        found = understand(f"{word} {text.replace('/gpu', '')}")
        assert (
            found is None
            or found.command != "capture"
            or "\n" in text
            or "." in text
            or "?" in text
        )


@given(sentences)
def test_a_capture_names_its_target_and_its_act(text):
    found = understand(text)
    if found is not None and found.command == "capture":
        assert found.args["duration_s"] > 0
        acts = CAPTURE | RECORDING | PROFILERS.keys()
        assert any(act in text.lower() for act in acts)
        assert '"' not in text or "/gpu" in text


@pytest.mark.parametrize(
    "text",
    [
        "why is node-3:5 slow " * 1905,
        "x" * 40_000,
        "```" * 13_333,
        "<" * 40_000,
        "*a " * 13_333,
        "~a " * 13_333,
        "`a" * 20_000,
        "&gt; a\n" * 5_700,
        "é" * 40_000,
        "ﷺ" * 40_000,
        "0x" * 20_000,
        "DCGM_FI_DEV_GPU_TEMP{" * 1_900,
        'a{b="c"} ' * 4_400,
        "Key  : Value\n" * 3_000,
        "A  " * 13_333,
        "=" * 40_000,
        "a=b," * 10_000,
        '"' * 40_000,
        "[ 12.3] NVRM: Xid (PCI:0000:1a:00): 79, pid=1234, GPU has fallen off the bus.\n" * 500,
        "why\n" + "loss 2.3\n" * 4_000,
        "decode " + "9" * 40_000,
        "why " + "node-" * 8_000,
        "sweep " + "--at " * 8_000,
        "capture " + "a" * 39_000 + " 10s",
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("reader", [understand, parse_words])
def test_forty_thousand_characters_take_less_than_50_ms(reader, text):
    best = min(_seconds(reader, text) for _ in range(3))
    assert best < 0.05


def _seconds(reader, text):
    started = time.process_time()
    _, refusal = outcome(reader, text)
    assert len(refusal) < 500
    return time.process_time() - started


def test_a_long_log_is_kept_to_the_last_letter():
    log = "[ 12.3] NVRM: Xid (PCI:0000:1a:00): 79, pid=1234, GPU has fallen off the bus.\n" * 500
    found = understand(log)
    assert found is not None
    assert found.args == {"text": log.strip()}


def test_fences_quotations_and_prose_are_told_apart():
    message = read_message("see\n&gt; he said\n```\na &lt; b\nc\n```\nand `c`")
    assert message.prose.split() == ["see", "and", "`c`"]
    assert message.quoted == "he said"
    assert message.fences == ("a < b\nc",)
