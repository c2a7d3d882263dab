"""Time and machine of a log line, in every form that logs are printed or shipped in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.readers.logline import Records, documents, records
from engine.readers.period import Boots, Period, apart
from engine.readers.stamp import from_unix, from_value, head_of

TAIL = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("prefix", "text", "form", "host"),
    [
        ("[ 1201.331874] ", None, "boot", None),
        ("[ 1201.331874] [   T1946] ", None, "boot", None),
        ("<6>[   12.345678] ", None, "boot", None),
        ("kern  :warn  : [171167.621162] ", None, "boot", None),
        ("kern.warn: [171167.621162] ", None, "boot", None),
        ("[ 1843.308145] host1 kernel: ", None, "boot", "host1"),
        ("[Thu Sep 19 02:29:46 2024] ", "2024-09-19T02:29:46", "local", None),
        ("kern  :err   : [Thu Sep 19 02:29:46 2024] ", "2024-09-19T02:29:46", "local", None),
        ("May 29 01:37:38 n3 kernel: [257087.812628] ", "May 29 01:37:38", "yearless", "n3"),
        ("<4>May  9 01:37:38 n3 kernel: ", "May  9 01:37:38", "yearless", "n3"),
        ("May 29 01:37:38 n3 nvidia-smi[12]: ", "May 29 01:37:38", "yearless", "n3"),
        (
            "2025-01-21T04:41:44.283575+00:00 n3 kernel: ",
            "2025-01-21T04:41:44.283575+00:00",
            "zoned",
            "n3",
        ),
        ("2025-01-21T04:41:44+0100 n3 kernel: ", "2025-01-21T04:41:44+01:00", "zoned", "n3"),
        (
            "kern  :warn  : 2025-01-21T04:41:44,283575+00:00 ",
            "2025-01-21T04:41:44.283575+00:00",
            "zoned",
            None,
        ),
        (
            "10.20.11.119: kern: warning: [2026-04-22T21:26:20.599488292Z]: ",
            "2026-04-22T21:26:20.599488+00:00",
            "zoned",
            "10.20.11.119",
        ),
        ("Thu 2024-09-19 02:29:46 UTC h1 kernel: ", "2024-09-19T02:29:46+00:00", "zoned", "h1"),
        (
            "1738465445.678901 h1 kernel: ",
            "2025-02-02T03:04:05.678901+00:00",
            "zoned",
            "h1",
        ),
        (
            "<4>1 2025-02-02T03:04:05.678Z n3 kernel - - - ",
            "2025-02-02T03:04:05.678000+00:00",
            "zoned",
            "n3",
        ),
        (
            "2025-02-02T03:04:05.678901234Z stderr F [12.34567] ",
            "2025-02-02T03:04:05.678901+00:00",
            "zoned",
            None,
        ),
        (
            "[pod/ns/x] 2025-02-02T03:04:05.678Z ",
            "2025-02-02T03:04:05.678000+00:00",
            "zoned",
            None,
        ),
        ("[Feb 27 2025 15:10:02] [ERROR] [tid 12727] ", "2025-02-27T15:10:02", "local", None),
        ("2020/08/10 19:09:42 ", "2020-08-10T19:09:42", "local", None),
        ('time="2025-02-02T03:04:05Z" host=n4 msg="', "2025-02-02T03:04:05+00:00", "zoned", "n4"),
        (
            "E0529 01:37:38.123456       1 health.go:12] ",
            "May 29 01:37:38.123456",
            "yearless",
            None,
        ),
        ("2025-02-02 03:04:05,123 WARNING x: ", "2025-02-02T03:04:05.123000", "local", None),
    ],
)
def test_every_prefix(prefix: str, text: str | None, form: str, host: str | None) -> None:
    head = head_of(prefix + TAIL)
    assert head.stamp is not None
    assert (head.stamp.text, head.stamp.form, head.host) == (text, form, host)


@pytest.mark.parametrize("prefix", ["", "[Sep19 02:29] ", "[  +0.000012] ", "-- ", "[gpu-health] "])
def test_no_time_is_guessed(prefix: str) -> None:
    assert head_of(prefix + TAIL).stamp is None


@pytest.mark.parametrize(
    ("record", "host", "unix"),
    [
        ({"MESSAGE": TAIL, "_HOSTNAME": "n1", "__REALTIME_TIMESTAMP": "1738465445678901"}, "n1",
         1738465445.678901),
        ({"MESSAGE": list(TAIL.encode()), "_HOSTNAME": "n1"}, "n1", None),
        ({"log": TAIL + "\n", "stream": "stderr", "time": "2025-02-02T03:04:05Z"}, None,
         1738465445.0),
        ({"labels": {"host": "n1"}, "line": TAIL, "timestamp": "2025-02-02T03:04:05Z"}, "n1",
         1738465445.0),
        ({"@timestamp": "2025-02-02T03:04:05.5Z", "host": {"name": "e1"}, "message": TAIL}, "e1",
         1738465445.5),
        ({"timestamp": 1738465445678, "message": TAIL}, None, 1738465445.678),
        ({"textPayload": TAIL, "resource": {"labels": {}}, "timestamp": "2025-02-02T03:04:05Z"},
         None, 1738465445.0),
    ],
)  # fmt: skip
def test_json_records(record: dict[str, object], host: str | None, unix: float | None) -> None:
    (line,) = records(1, json.dumps(record))
    assert line.text == TAIL
    assert line.host == host
    assert (line.stamp.unix if line.stamp else None) == unix


def test_what_is_no_record_stays_as_it_is() -> None:
    for text in ('{"MESSAGE": 1, "host": "n1"}', "{not json", "{" * 5_000, "[1, 2]"):
        (line,) = records(1, text)
        assert line.text == text


def test_export_records_get_the_host_that_follows() -> None:
    reader = Records()
    out = []
    for text in ("__REALTIME_TIMESTAMP=1738465445678901", f"MESSAGE={TAIL}", "_HOSTNAME=n5"):
        done, field = reader.feed(1, text)
        assert field
        out += done
    assert out == []
    (line,) = reader.flush()
    assert (line.text, line.host) == (TAIL, "n5")
    assert line.stamp == from_unix(1738465445.678901)


def test_loki_answers_hold_many_records() -> None:
    pairs = [[str(1_700_000_000_000_000_000 + i), f"x {i}"] for i in range(3)]
    answer = {
        "data": {"resultType": "streams", "result": [{"stream": {"node": "a"}, "values": pairs}]}
    }
    assert [line.text for line in documents(1, answer)] == ["x 0", "x 1", "x 2"]
    assert {line.host for line in documents(1, answer)} == {"a"}


@given(text=st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    head_of(text)
    from_value(text)
    list(records(1, text))


@given(value=st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=8),
                          lambda x: st.lists(x, max_size=3) | st.dictionaries(
                              st.sampled_from(["data", "result", "stream", "values", "line", "log",
                                               "MESSAGE", "host", "timestamp", "labels"]), x)))  # fmt: skip
def test_any_json_is_read(value: object) -> None:
    list(documents(1, value))


def test_boots_and_days() -> None:
    boots, period = Boots(), Period()
    for seconds in (80_000.5, 81_000.5, 12.5, 40.5):
        stamp = head_of(f"[{seconds}] x").stamp
        period.add(stamp, boots.of("n1", stamp))
    assert period.data() == {
        "first_boot_s": 80_000.5,
        "last_boot_s": 40.5,
        "occasions": 3,
        "boots": 2,
    }
    assert period.spread


def test_midnight_is_no_second_day() -> None:
    period = Period()
    for text in ("2025-02-02T23:59:59+00:00 x", "2025-02-03T00:00:01+00:00 x"):
        period.add(head_of(text).stamp)
    assert not period.spread
    assert period.occasions == 1


def test_what_cannot_be_compared_is_not_apart() -> None:
    one, other = Period(), Period()
    one.add(head_of("[1.5] x").stamp)
    other.add(head_of("2025-02-02T23:59:59+00:00 x").stamp)
    assert not apart(one, other, 1.0)
    later = Period()
    later.add(head_of("[9999.5] x").stamp)
    assert apart(one, later, 60.0)
