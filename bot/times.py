"""Moments and lengths of time as people type them, and moments as answers show them.

Moments are Unix seconds, lengths are seconds. Answers show UTC only; what a user types without an
offset is local time. The caller gives ``now``, so that nothing here reads a clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from engine.errors import UsageError

_UNITS = {
    "ms": 0.001,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]+)\s*", re.ASCII)
_NONE = re.compile(r"0+\s*[a-z]*", re.ASCII)
_EPOCH = re.compile(r"\d{1,20}(?:\.\d{1,9})?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)

# Between these an epoch is taken for seconds: 2000-01-01 and 2100-01-01.
_OLDEST_S = 946684800.0
_NEWEST_S = 4102444800.0
_MAX_SPAN_S = 10 * 365 * 86400.0

_MOMENT_FORMS = 'use 2026-01-31T03:12:00Z, seconds since 1970, "03:12", "2h ago" or "now"'
_SPAN_FORMS = "use a number with a unit, such as 90s, 15m or 1h30m"


def parse_span(text: str) -> float:
    """Return the seconds that ``15m``, ``1h30m``, ``90s`` or ``2 hours`` mean.

    Raises:
        UsageError: it is not such a text, is zero, or is longer than ten years.
    """
    rest = text.strip().lower()
    shown = _shown(text)
    seconds = 0.0
    if not rest:
        raise UsageError("no length of time given", hint=_SPAN_FORMS)
    while rest:
        part = _PART.match(rest)
        if not part or part[2] not in _UNITS:
            raise UsageError(f"cannot read {shown} as a length of time", hint=_SPAN_FORMS)
        seconds += float(part[1]) * _UNITS[part[2]]
        rest = rest[part.end() :]
    if not 0 < seconds <= _MAX_SPAN_S:
        raise UsageError(f"{shown} is out of range", hint="give more than 0 and at most 10 years")
    return seconds


def parse_hold(text: str) -> float:
    """Return the seconds that a length of time means; ``0`` and ``0s`` are none.

    Raises:
        UsageError: as in `parse_span`.
    """
    return 0.0 if _NONE.fullmatch(text.strip().lower()) else parse_span(text)


def parse_moment(text: str, *, now: float, zone: tzinfo | None = None) -> float:
    """Return the moment (Unix seconds) that a user means.

    Args:
        text: RFC 3339, an epoch in seconds, ``03:12`` (the most recent past one), ``2h ago`` or
            ``now``.
        now: the current time (Unix seconds).
        zone: for text without an offset; the machine's own zone if None.

    Raises:
        UsageError: it is none of these, or lies outside the years 2000 to 2100.
    """
    word = " ".join(text.split())
    if word.lower() == "now":
        return now
    if _EPOCH.fullmatch(word):
        return _epoch(word)
    if clock := _CLOCK.fullmatch(word):
        return _last_clock(clock, word, now, zone)
    if word.lower().endswith("ago"):
        return _in_range(now - parse_span(word[:-3]), word)
    return _in_range(_calendar(word, zone), word)


def utc(moment: float) -> str:
    """Return a moment as ``2026-01-31T03:12:00Z``, seconds rounded down."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{moment:.0f} s since 1970"


def _epoch(word: str) -> float:
    number = float(word)
    if _OLDEST_S <= number / 1000 <= _NEWEST_S:
        raise UsageError(f"{word} looks like milliseconds", hint=f"use {number / 1000:.3f}")
    return _in_range(number, word)


def _last_clock(clock: re.Match[str], word: str, now: float, zone: tzinfo | None) -> float:
    try:
        at = time(int(clock[1]), int(clock[2]), int(clock[3] or 0))
    except ValueError:
        raise UsageError(f"{word!r} is no time of day", hint=_MOMENT_FORMS) from None
    today = datetime.fromtimestamp(now, zone).date()
    days = (today - timedelta(days=back) for back in range(-1, 3))
    moments = (datetime.combine(day, at, tzinfo=zone).timestamp() for day in days)
    return max(moment for moment in moments if moment <= now)


def _calendar(word: str, zone: tzinfo | None) -> float:
    try:
        moment = datetime.fromisoformat(word.upper())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"cannot read {_shown(word)} as a time", hint=_MOMENT_FORMS) from None


def _in_range(moment: float, word: str) -> float:
    if not _OLDEST_S <= moment <= _NEWEST_S:
        raise UsageError(f"{_shown(word)} is not between 2000 and 2100", hint=_MOMENT_FORMS)
    return moment


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
