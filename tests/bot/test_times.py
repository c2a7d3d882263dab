from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.times import parse_moment, parse_span, utc
from engine.errors import UsageError

NOW = 1764432000.0  # 2025-11-29T16:00:00Z
BERLIN = ZoneInfo("Europe/Berlin")


def stamp(*when: int, zone=UTC) -> float:
    return datetime(*when, tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("2025-11-29T03:12:00Z", stamp(2025, 11, 29, 3, 12)),
        ("2025-11-29t03:12:00.5+01:00", stamp(2025, 11, 29, 2, 12) + 0.5),
        ("2025-11-29 03:12", stamp(2025, 11, 29, 2, 12)),
        ("1764432000", NOW),
        ("1764432000.25", NOW + 0.25),
        ("2h ago", NOW - 7200),
        ("1h30m ago", NOW - 5400),
        ("90 minutes  ago", NOW - 5400),
        ("03:12", stamp(2025, 11, 29, 3, 12, zone=BERLIN)),
        ("23:12", stamp(2025, 11, 28, 23, 12, zone=BERLIN)),
        ("17:00", NOW),
        ("17:00:01", NOW + 1 - 86400),
    ],
)
def test_moments(text, expected):
    assert parse_moment(text, now=NOW, zone=BERLIN) == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "25:00", "12:60", "2025-13-01", "20251129", "-5", "1e9", "ago", "99999w ago",
     "9" * 30, "2h ago later", "03:12pm", "5000-01-01T00:00:00Z", "1764432000123", "\x1b[2J"],
)  # fmt: skip
def test_what_is_no_moment_is_refused_in_one_line(text):
    with pytest.raises(UsageError) as caught:
        parse_moment(text, now=NOW, zone=UTC)
    assert caught.value.hint
    assert "\n" not in caught.value.one_line()


def test_milliseconds_are_told_from_seconds():
    with pytest.raises(UsageError, match=r"looks like milliseconds; use 1764432000\.123"):
        parse_moment("1764432000123", now=NOW)


def test_time_of_day_in_the_hour_that_is_skipped_is_still_in_the_past():
    spring = stamp(2026, 3, 29, 12, 0)
    moment = parse_moment("02:30", now=spring, zone=BERLIN)
    assert spring - 86400 < moment <= spring


@given(st.integers(0, 23), st.integers(0, 59), st.floats(1e9, 4e9))
def test_time_of_day_is_the_most_recent_past_one(hour, minute, now):
    moment = parse_moment(f"{hour}:{minute:02}", now=now, zone=BERLIN)
    # A day may have 25 hours, and the skipped hour does not exist.
    assert now - 25 * 3600 - 3600 <= moment <= now
    there = datetime.fromtimestamp(moment, BERLIN)
    assert there.minute == minute


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("1h30m", 5400), ("90s", 90), ("1.5h", 5400), ("2 hours", 7200), ("1d 2h", 93600),
     ("500ms", 0.5), (" 1W ", 604800)],
)  # fmt: skip
def test_spans(text, seconds):
    assert parse_span(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "m", "-5m", "0s", "1y", "15m!", "1h -5m", "9999999999w"]
)
def test_what_is_no_span_is_refused(text):
    with pytest.raises(UsageError):
        parse_span(text)


@given(st.integers(1, 10**6))
def test_spans_add_up(seconds):
    hours, rest = divmod(seconds, 3600)
    assert parse_span(f"{hours}h{rest}s") == seconds


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    for parse in (parse_span, lambda t: parse_moment(t, now=NOW, zone=UTC)):
        try:
            assert parse(text) == parse(text)
        except UsageError:
            continue


@given(st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_utc_reads_back(when):
    moment = when.replace(tzinfo=UTC, microsecond=0).timestamp()
    assert parse_moment(utc(moment), now=NOW) == moment


def test_utc_of_absurd_numbers_does_not_fail():
    assert utc(1e30).endswith("s since 1970")
    assert utc(NOW + timedelta(seconds=0.9).total_seconds()) == "2025-11-29T16:00:00Z"
