from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.selector import format_selector, parse_selector
from engine.errors import UsageError
from engine.samples import Matcher


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("{}", ()),
        ("cluster=a", (Matcher("cluster", "=", "a"),)),
        (
            'Hostname=~"node-.*",cluster="a"',
            (Matcher("Hostname", "=~", "node-.*"), Matcher("cluster", "=", "a")),
        ),
        ("{ gpu != '3' , }", (Matcher("gpu", "!=", "3"),)),
        (r'path=~"a\\d+"', (Matcher("path", "=~", r"a\d+"),)),
        (r"path!~`a\d+`", (Matcher("path", "!~", r"a\d+"),)),
        (r'x="a\"b,c}"', (Matcher("x", "=", 'a"b,c}'),)),
    ],
)
def test_selectors(text, expected):
    assert parse_selector(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster", "column 8: expected one of = != =~ !~, got the end"),
        ("a=b c=d", "column 4: expected a comma, got ' c=d'"),
        ("1a=b", "column 1: expected a label name"),
        ('a="b', "column 3: expected a value"),
        ('a=~"("', "is no regular expression"),
        (f'a=~"{"(" * 1900}{")" * 1900}"', r"'\(+\.\.\.' is no regular expression"),
        ("a==b", "column 3: expected a value, got '=b'"),
        (r'a="\ud800"', r"\\ud800 is half a character"),
        ("a=\udcff", "bytes that are not UTF-8"),
        (r'a="\q"', r"unknown escape \\q"),
    ],
)
def test_mistakes_are_named_with_their_column(text, said):
    with pytest.raises(UsageError, match=said):
        parse_selector(text)


labels = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
matchers = st.builds(Matcher, labels, st.sampled_from(["=", "!="]), st.text(max_size=20))


@given(st.lists(matchers, max_size=4).map(tuple))
def test_what_is_written_reads_back(found):
    assert parse_selector(format_selector(found)) == found


@given(st.text(alphabet="ab=~!\"\\{},[]().* '`\n", max_size=20))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse_selector(text)
    except UsageError:
        return
    assert parse_selector(format_selector(found)) == found
