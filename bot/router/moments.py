"""Times in plain words: when ("at 03:12", "2 hours ago"), how far back, and for how long.

Marks are AT (a moment), WINDOW (how far back), SPAN (a length of time), SINCE (a start, which does
not move the moment asked about) and THEN (a time that cannot be told exactly: "yesterday"). Values
are written as `bot.times` reads them; what it would refuse is a THEN.
"""

from __future__ import annotations

import re

from bot.router.spans import Marked, pattern
from bot.times import parse_moment, parse_span
from engine.errors import UsageError

# Only to see whether a text is a moment; what it means is reckoned when the answer is.
_SOME_NOW = 1_750_000_000.0

_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "ten": 10,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "couple of": 2,
    "a couple of": 2,
}
_HALVES = {"m": "30s", "h": "30m", "d": "12h", "w": "84h"}
_WORDS = "|".join(sorted(_NUMBERS, reverse=True))
_COUNT = rf"(?P<count>\d{{1,6}}(?:\.\d{{1,3}})?|(?:half an?|{_WORDS})(?=[\s-]))"
_UNITS = r"secs?|seconds?|s|mins?|minutes?|m|hrs?|hours?|h"
_LENGTH = rf"{_COUNT}[\s-]*(?P<unit>{_UNITS}|days?|d|weeks?|w)(?P<more>\d{{1,3}}m)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_OFFSET = r"Z|[+-]\d{2}:?\d{2}|UTC|GMT"
_ZONE = rf"{_OFFSET}|BST|CES?T|E[SD]T|C[SD]T|M[SD]T|P[SD]T|JST|IST"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_START = r"(?<![\w:./-])"
_END = r"(?![\w:/'-]|\.\d)"
_AT = r"(?:(?:at|around|about|on|@|~)\s*)?"

_DATED = pattern(
    rf"{_START}{_AT}(?P<day>{_DAY})(?:T|\s+(?:at\s+)?)(?P<clock>{_CLOCK}(?:\.\d{{1,6}})?)",
    rf"\s*(?P<zone>{_OFFSET})?{_END}",
)
_EPOCH = pattern(rf"{_START}(?:at|@|around)\s*(?P<epoch>1\d{{9}}(?:\.\d{{1,6}})?){_END}")
_BETWEEN = pattern(
    rf"{_START}(?:between|from)?\s*(?P<first>{_CLOCK})\s*(?:and|to|till|until|-)\s*",
    rf"(?P<last>{_CLOCK}){_END}",
)
_AGO = pattern(rf"{_START}(?:(?:about|around|some|like)\s+)?{_LENGTH}\s+(?:ago|back|earlier){_END}")
_BACK = pattern(
    rf"{_START}(?:(?:in|over|during|for|within|of)\s+)?(?:the\s+|these\s+)?",
    rf"(?:last|past|previous)\s+(?:{_LENGTH}|(?P<only>min|minute|hour|day|week)){_END}",
)
_SINCE = pattern(
    rf"{_START}since\s+(?:(?:about|around|at)\s+)?(?:{_CLOCK}(?:\s*[ap]m)?|{_DAY}(?:T\S+)?",
    rf"|{_LENGTH}(?:\s+ago)?|(?:this|last|today)?\s*(?:morning|night|evening|noon|week)",
    rf"|{_WEEKDAY}|yesterday|today|the (?:reboot|upgrade|update|restart)){_END}",
)
_TWELVE = pattern(
    rf"{_START}{_AT}(?P<hour>\d{{1,2}})(?::(?P<minute>\d{{2}}))?\s*(?P<half>[ap])\.?m\.?{_END}"
)
_TIME = pattern(rf"{_START}{_AT}(?P<clock>{_CLOCK})\s*(?P<zone>{_ZONE})?{_END}")
_VAGUE = pattern(
    rf"{_START}(?:yesterday|tomorrow|last (?:night|week|month|time|{_WEEKDAY})|tonight|overnight",
    rf"|this (?:morning|afternoon|evening)|on {_WEEKDAY}|the other day|earlier today|next \w+",
    r"|(?:over|during|at) (?:the )?(?:night|weekend|lunch|midnight|noon)|a while ago",
    rf"|(?:days|weeks|hours|long) ago|later|afterwards|{_DAY}){_END}",
)
_FOR = pattern(
    rf"{_START}(?:(?:for|over|during)\s+)?{_COUNT}[\s-]*(?P<unit>{_UNITS})(?P<more>\d{{1,3}}s)?{_END}",
)


def mark_times(marked: Marked) -> None:
    """Mark every time that a text tells, most explicit forms first."""
    marked.find("SINCE", _SINCE, lambda found: found[0])
    marked.find("AT", _DATED, _dated)
    marked.find("AT", _EPOCH, lambda found: _moment(found["epoch"]))
    marked.find("BETWEEN", _BETWEEN, _between)
    marked.find("AT", _AGO, _ago)
    marked.find("WINDOW", _BACK, _length)
    marked.find("AT", _TWELVE, _twelve)
    marked.find("AT", _TIME, _clock)
    marked.find("THEN", _TIME, lambda found: found[0])
    marked.find("THEN", _VAGUE, lambda found: found[0])


def mark_spans(marked: Marked) -> None:
    """Mark lengths of time that are left (s); one letter alone ("5 m") is no such thing."""
    marked.find("SPAN", _FOR, _seconds)


def period(value: str) -> tuple[str, str]:
    """Return the moment and the window of a BETWEEN mark: its end, and how far back it starts."""
    at, _, window = value.partition(" ")
    return at, window


def _seconds(found: re.Match[str]) -> float | None:
    text = _length(found)
    return None if text is None else parse_span(text)


def _length(found: re.Match[str]) -> str | None:
    """Return a length as `bot.times` reads it, or None if it is none."""
    groups = found.groupdict()
    if groups.get("only"):
        return f"1{groups['only'][0].lower()}"
    words = " ".join(groups["count"].lower().split())
    unit = groups["unit"][0].lower()
    if words.startswith("half"):
        return _HALVES.get(unit)
    text = f"{_NUMBERS.get(words, words)}{unit}{groups.get('more') or ''}"
    try:
        parse_span(text)
    except UsageError:
        return None
    return text


def _ago(found: re.Match[str]) -> str | None:
    length = _length(found)
    return _moment(f"{length} ago") if length else None


def _dated(found: re.Match[str]) -> str | None:
    clock, zone = found["clock"], found["zone"] or ""
    zone = "Z" if zone.upper() in {"Z", "UTC", "GMT"} else zone
    return _moment(f"{found['day']}T{clock}{zone}")


def _clock(found: re.Match[str]) -> str | None:
    """Return a time of day; with a zone only if `bot.times` reads such a thing."""
    zone = found["zone"] or ""
    return _moment(f"{found['clock']} {zone}".strip())


def _twelve(found: re.Match[str]) -> str | None:
    hour = int(found["hour"])
    if not 1 <= hour <= 12:
        return None
    hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    return _moment(f"{hour:02}:{found['minute'] or '00'}")


def _between(found: re.Match[str]) -> str | None:
    first, last = (_minutes(found[name]) for name in ("first", "last"))
    if first is None or last is None or first == last:
        return None
    return f"{found['last']} {(last - first) % 1440}m"


def _minutes(clock: str) -> int | None:
    hour, minute = (int(part) for part in clock.split(":")[:2])
    return hour * 60 + minute if hour < 24 and minute < 60 else None


def _moment(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parse_moment(text, now=_SOME_NOW)
    except UsageError:
        return None
    return text
