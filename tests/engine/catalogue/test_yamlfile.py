"""One YAML file: what is read, what is refused, and where the message points."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue.types import Place
from engine.catalogue.yamlfile import parse_yaml
from engine.errors import CatalogueError


def problems(raw: bytes) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        parse_yaml(raw, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_plain_data_and_places():
    document = parse_yaml(b"# top\nids:\n  - id: 79\n    hex: 0x4f\n    ok: true\n    x: ~\n", "f")
    assert document.data == {"ids": [{"id": 79, "hex": 79, "ok": True, "x": None}]}
    assert document.place(("ids", 0, "id")) == Place("f", 3, 9)
    assert document.place(("ids", 0, "no such key")) == Place("f", 3, 5)
    assert document.key_place(("ids", 0, "hex")) == Place("f", 4, 5)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("when: max(x) > 1\n", 1, 7),
        ('when: "max(x) > 1"\n', 1, 8),
        ("when: >-\n  max(x) > 1\n", 2, 3),
        ("when: |\n\n    max(x) > 1\n", 3, 5),
    ],
)
def test_place_of_a_text_is_where_its_characters_begin(text, line, column):
    assert parse_yaml(text.encode(), "f").place(("when",)) == Place("f", line, column)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1.0e-6", 1e-6),
        ("-2.5", -2.5),
        ("'yes'", "yes"),
        ("'2026-01-31'", "2026-01-31"),
        ("4.6.1", "4.6.1"),
        ("0000:1a:00", "0000:1a:00"),
        ("!!str 12", "12"),
        ("Norway", "Norway"),
    ],
)
def test_scalars(text, value):
    assert parse_yaml(f"k: {text}".encode(), "f").data == {"k": value}


def test_int_keys_become_text_as_in_json():
    assert parse_yaml(b"actions: {0: none, 1: reset}", "f").data == {
        "actions": {"0": "none", "1": "reset"}
    }


@pytest.mark.parametrize(
    "word",
    ["yes", "No", "ON", "off", "2026-01-31", "12:30", "010", "1_000", "0b11", ".nan", "-.inf"],
)
def test_words_that_readers_disagree_on(word):
    (problem,) = problems(f"a: 1\nk: {word}\n".encode())
    assert problem.startswith(f"f.yaml:2:4: '{word}' ")
    assert problem.endswith("put it in quotes if it is text")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b"a:\n\t- b\n",
            "f.yaml:2:1: a tab is used for indentation, which YAML forbids; use spaces",
        ),
        (
            b"a: 1\nb: 2\na: 3\n",
            "f.yaml:3:1: key 'a' is written twice (first in line 1); remove one of them",
        ),
        (b"a: &x [1]\nb: 1\n", "f.yaml:1:4: anchor '&x' is not allowed; write the value out"),
        (b"a: *x\n", "f.yaml:1:4: alias '*x' is not allowed; write the value out"),
        (b"- 1\n", "f.yaml:1:1: must hold a mapping at the top, found a list; start with 'key:'"),
        (b"", "f.yaml:1:1: is empty; write at least one entry, or delete the file"),
        (b"# only\n", "f.yaml:1:1: is empty; write at least one entry, or delete the file"),
        (b"a: 1\nb: \xff\n", "f.yaml:2:4: is not UTF-8 text; save the file as UTF-8"),
        (b"a: \x07\n", "f.yaml:1:4: holds a control character (U+0007); remove it"),
        (b"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document starts here; use one file for each"),
        (b"? [a]\n: 1\n", "f.yaml:1:3: a key must be text; put the key in quotes"),
        (b"1.5: a\n", "f.yaml:1:1: a key must be text, found the number 1.5; put it in quotes"),
        (b"a: " + b"[" * 60, "f.yaml:1:27: is nested deeper than 24 levels; flatten it"),
        (
            b"a: 1e999\n",
            "f.yaml:1:4: '1e999' is too large for a number; put it in quotes if it is text",
        ),
    ],
)
def test_refusals(raw, message):
    assert problems(raw) == [message]


def test_code_in_tags_is_refused_and_never_run():
    (problem,) = problems(b"a: !!python/object/apply:os.system ['true']\n")
    assert "is not allowed; remove it" in problem


def test_every_problem_of_a_file_is_reported():
    found = problems(b"a: yes\nb: 010\nb: 1\n")
    assert [problem.split(":")[1] for problem in found] == ["1", "2", "3"]


def test_alias_bomb_is_refused_at_once():
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{previous}'] * 9)}]\n".encode()
    assert problems(bomb) == ["f.yaml:1:4: anchor '&a' is not allowed; write the value out"]


def outcome(raw: bytes) -> object:
    """The data of a file, or the problems it has."""
    try:
        return parse_yaml(raw, "f.yaml").data
    except CatalogueError as error:
        return error.problems


@settings(deadline=None)  # a busy machine is no fault
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw):
    assert isinstance(outcome(raw), dict | tuple)


@settings(deadline=None)  # a busy machine is no fault
@given(st.text("abc:-[]{}&*!|>'\"#%@`?, \n\t0129.", max_size=60))
def test_any_yaml_like_text_is_read_or_refused_with_a_place(text):
    found = outcome(text.encode())
    if isinstance(found, tuple):
        assert all(problem.line >= 1 and problem.column >= 1 for problem in found)
