"""What people say, and what the bot makes of it: `tests/data/router/phrasings.yaml`."""

import time
from collections import Counter
from pathlib import Path

import pytest

from bot.request import Request
from bot.router import COMMANDS, understand
from bot.selector import parse_selector
from bot.times import parse_moment, parse_span
from engine.decode import decode
from engine.readers import read
from engine.topology import parse_target
from tests.support import packaged
from tests.support.yamlfiles import parse

PHRASINGS = parse(
    (Path(__file__).parents[2] / "data" / "router" / "phrasings.yaml").read_text(encoding="utf-8")
)
UNDERSTOOD = PHRASINGS["understood"]
NOT_UNDERSTOOD = PHRASINGS["not_understood"]


@pytest.fixture(scope="module")
def catalogue():
    return packaged.knowledge()


@pytest.mark.parametrize("entry", UNDERSTOOD, ids=lambda entry: entry["text"][:60])
def test_is_understood(entry):
    found = understand(entry["text"])
    assert found is not None
    assert (found.command, found.args) == (entry["command"], entry["args"])


@pytest.mark.parametrize("text", NOT_UNDERSTOOD, ids=lambda text: text[:60] or "nothing")
def test_is_no_command(text):
    assert understand(text) is None


def test_the_set_is_large_varied_and_without_repeats():
    texts = [entry["text"] for entry in UNDERSTOOD] + NOT_UNDERSTOOD
    assert len(set(texts)) == len(texts)
    assert len(UNDERSTOOD) >= 200
    assert len(NOT_UNDERSTOOD) >= 60
    # The others are typed, or are what a question that is no command goes to.
    spoken = set(COMMANDS) - {"ask", "calc", "export", "kb"}
    assert set(Counter(entry["command"] for entry in UNDERSTOOD)) == spoken


@pytest.mark.parametrize(
    "entry",
    [entry for entry in UNDERSTOOD if not set("&<>") & set(entry["text"])],
    ids=lambda entry: entry["text"][:60],
)
def test_a_mention_in_front_and_spaces_around_change_nothing(entry):
    plain = understand(entry["text"])
    assert plain is not None
    told = understand(f"<@U02GPUWHY>   {entry['text']}  ")
    assert told is not None
    assert (told.command, told.args) == (plain.command, plain.args) or plain.command == "read"


@pytest.mark.parametrize("entry", UNDERSTOOD, ids=lambda entry: entry["text"][:60])
def test_arguments_are_what_the_commands_take(entry, catalogue):
    args = entry["args"]
    match entry["command"]:
        case "why":
            parse_target(args["target"])
        case "capture":
            parse_target(args["target"])
            assert args["duration_s"] > 0
        case "decode":
            decode(args["text"], catalogue)
        case "sweep":
            parse_selector(args.get("where", ""))
    if "at" in args:
        parse_moment(args["at"], now=1_750_000_000.0)
    if "window" in args:
        parse_span(args["window"])


def test_pasted_output_reaches_the_readers_whole(catalogue):
    pastes = [entry for entry in UNDERSTOOD if entry["command"] == "read"]
    silent = [
        entry["text"]
        for entry in pastes
        if not read(entry["args"]["text"].encode(), catalogue).kinds
    ]
    assert silent == ["what does this mean?\n```\nstep 100 loss 2.3\nstep 101 loss nan\n```"]


def test_what_is_asked_comes_back_as_typed_and_survives_storage():
    found = understand("<@U1> why is node-3:5 slow &amp; hot?")
    assert found is not None
    assert found.text == "why is node-3:5 slow & hot?"
    assert Request.from_json(found.to_json()) == found


def test_a_sentence_takes_few_milliseconds():
    texts = [entry["text"] for entry in UNDERSTOOD] + NOT_UNDERSTOOD
    started = time.process_time()
    for text in texts:
        understand(text)
    assert (time.process_time() - started) / len(texts) < 0.02


def test_no_chatter_in_the_knowledge_is_taken_for_an_order(catalogue):
    """Sentences of the knowledge speak of GPUs all the time and never order anything.

    Titles and texts are left out: some name a need as a user would ("are the GPUs healthy"), some
    quote log lines.
    """
    sentences = [
        str(value)
        for table in catalogue.entries.values()
        for entry in table.values()
        for key, value in entry.items()
        if isinstance(value, str) and " " in value and key not in {"title", "text"}
    ]
    assert len(sentences) > 500
    found = [understand(sentence) for sentence in sentences]
    assert not [f for f in found if f is not None and f.command in {"capture", "sweep"}]
