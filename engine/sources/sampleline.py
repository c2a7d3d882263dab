"""One line of the text exposition format or of OpenMetrics, read strictly.

This is the slow, careful reader: `engine.sources.textreader` asks it once per series and for lines
that are out of the ordinary.
"""

from __future__ import annotations

import math
import re

from engine.sources.text import show

# Seconds since 1970 stay under 1e11 until the year 5138, and milliseconds passed it in March 1973,
# so the magnitude tells OpenMetrics' seconds from the text format's milliseconds. Format markers
# are not asked: they get lost when files are cut, filtered or joined.
MS_FROM = 1e11
# Larger than any millisecond: micro- or nanoseconds, which neither format has.
STAMP_LIMIT = 1e14

_NAME = re.compile(rb"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)?[ \t]*")
_QUOTED = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
_TERM = re.compile(
    rb"[ \t]*(?:([a-zA-Z_][a-zA-Z0-9_]*)|" + _QUOTED + rb")"
    rb"[ \t]*(=[ \t]*" + _QUOTED + rb")?[ \t]*([,}])",
    re.DOTALL,
)
_END = re.compile(rb"[ \t]*\}")
_ESCAPE = re.compile(rb'\\([\\n"])')
_ESCAPED = {b"\\": b"\\", b"n": b"\n", b'"': b'"'}


class LineError(ValueError):
    """A line that holds no sample; the text says why, fit to be shown."""


def _unescape(raw: bytes) -> str:
    if b"\\" in raw:
        raw = _ESCAPE.sub(lambda m: _ESCAPED[m.group(1)], raw)
    return raw.decode("utf-8", "replace")


def parse_head(line: bytes) -> tuple[str, dict[str, str], int]:
    """Read metric name and labels.

    Returns:
        The name, the labels without ``__name__``, and the index just after them.

    Raises:
        LineError: the line is no sample.
    """
    start = _NAME.match(line)
    assert start is not None  # every part of the pattern is optional
    name = (start.group(1) or b"").decode()
    pos = start.end()
    labels: dict[str, str] = {}
    if line[pos : pos + 1] != b"{":
        if not name or (start.end(1) == pos and pos < len(line)):
            raise LineError(f"not a metric: {show(line, 40)}")
        return name, labels, start.end(1)
    pos += 1
    more = True
    while more:
        end = _END.match(line, pos)
        if end:
            pos = end.end()
            break
        term = _TERM.match(line, pos)
        if term is None:
            raise LineError(f"labels of {show(name or line, 60)} are cut off or malformed")
        bare, quoted, equals, value, mark = term.groups()
        key = bare.decode() if bare is not None else _unescape(quoted)
        if equals is None and bare is None and not name:
            name = key  # {"metric name", label="…"}: a name outside the classic alphabet
        elif equals is None:
            raise LineError(f"label {show(key, 40)} of {show(name, 60)} has no value")
        elif key in labels:
            raise LineError(f"label {show(key, 40)} of {show(name, 60)} is given twice")
        else:
            labels[key] = _unescape(value)
        pos = term.end()
        more = mark == b","
    inner = labels.pop("__name__", "")
    if bool(inner) == bool(name):
        raise LineError(f"not exactly one metric name: {show(line, 40)}")
    return name or inner, labels, pos


def parse_tail(tail: bytes) -> tuple[float, float]:
    """Read what follows the labels: value, time if given, and an exemplar, which is dropped.

    Returns:
        The value and the time in Unix seconds, NaN if the line has none.

    Raises:
        LineError: no value, or something that is no number.
    """
    words = tail.partition(b"#")[0].split()
    if not words:
        raise LineError("no value")
    if len(words) > 2:
        raise LineError(f"text after the time: {show(words[2], 40)}")
    value = _number(words[0], "value")
    if len(words) == 1:
        return value, math.nan
    stamp = _number(words[1], "time")
    if not abs(stamp) < STAMP_LIMIT:
        raise LineError(f"time {show(words[1], 40)} is neither seconds nor milliseconds")
    return value, stamp / 1000 if stamp > MS_FROM else stamp


def _number(word: bytes, what: str) -> float:
    try:
        if b"_" not in word:
            return float(word)
    except ValueError:
        pass
    raise LineError(f"{what} {show(word, 40)} is not a number")
