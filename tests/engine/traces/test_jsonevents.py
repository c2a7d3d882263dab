"""Chrome traces are read as a stream: cut anywhere, cut short, or not quite JSON."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import InputError
from engine.traces.jsonevents import EventFile
from tests.support.captures import chunks

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
events = st.lists(st.dictionaries(texts, values, max_size=4), max_size=30)


def read(data: bytes, size: int, wanted: tuple[str, ...] = ()) -> tuple[list[Any], EventFile]:
    source = EventFile(chunks(data, size), frozenset(wanted))
    return [event for some in source.events() for event in some], source


@settings(max_examples=150)
@given(events, st.integers(1, 300), st.booleans(), st.sampled_from([None, 1, 4]))
def test_every_event_comes_once(
    made: list[dict[str, Any]], size: int, bare: bool, indent: int | None
) -> None:
    whole: Any = made if bare else {"a": [1, {"b": "]}"}], "traceEvents": made, "z": {"y": "{"}}
    data = json.dumps(whole, indent=indent).encode()
    found, source = read(data, size, ("z",))
    assert found == made
    assert not source.cut
    assert source.bad == 0
    if not bare:
        assert source.header == {"z": {"y": "{"}}


def test_a_large_one_is_cut_at_borders() -> None:
    made = [{"name": 'a}, {"b', "n": k, "args": {"x": [{}, {"y": "\\"}]}} for k in range(20_000)]
    found, source = read(orjson.dumps({"traceEvents": made}), 1 << 16)
    assert found == made
    assert source.bad == 0


@given(st.integers(1, 400))
def test_cut_short(size: int) -> None:
    made = [{"ph": "X", "name": f"kernel {k}", "ts": k} for k in range(10)]
    data = orjson.dumps({"schemaVersion": 1, "traceEvents": made})[:-size]
    if not data.lstrip().startswith(b"{"):
        return
    found, source = read(data, 64)
    assert found == made[: len(found)]
    assert len(found) >= data.count(b'"ts"') - 1
    assert source.cut or len(found) == 10


def test_numbers_and_escapes_that_are_no_json() -> None:
    data = (
        b'{"traceEvents": [{"name": "NaN in a text", "ts": NaN, "dur": -Infinity},'
        b'{"name": "C:\\temp\\x", "ts": 2}, {"name": "tab\there", "ts": 3}]}'
    )
    found, source = read(data, 7)
    assert [event["ts"] for event in found] == [None, 2, 3]
    assert found[0]["name"] == "NaN in a text"
    assert source.bad == 0


@pytest.mark.parametrize(
    "data",
    [
        b'{"traceEvents": [' + b'{"a":' * 200_000,
        b'{"traceEvents": [{"a": ' + b"[" * 500_000 + b"]" * 500_000 + b'}, {"b": 1}]}',
        b'{"x": ' + b"[" * 500_000,
        b'{"traceEvents": [{"name": "' + b"x" * 30_000_000,
        b'{"traceEvents": ["' + b"\\" * 1_000_001,
        b'{"traceEvents": [' + b"}" * 100_000 + b"]}",
        b'{"traceEvents": [' + b'{},"' * 100_000 + b"]}",
        b'{"traceEvents": 7, "traceEvents": {"a": 1}}',
        b'{"' + b"a" * 1_000_000,
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"traceEvents": [\xff\xfe\x00{]}',
        b"",
    ],
)
def test_hostile(data: bytes) -> None:
    try:
        found, _ = read(data, 1 << 16)
    except InputError:
        return
    assert len(found) < 200_000


def test_what_is_no_trace() -> None:
    with pytest.raises(InputError, match="neither"):
        read(b"hello", 3)
