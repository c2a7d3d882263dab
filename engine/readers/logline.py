"""Records of a log: a message, the machine that wrote it and when, whatever it is wrapped in.

Wrappers: JSON records of journald (``journalctl -o json``), Docker, Fluent Bit, Vector, Elastic,
Google Cloud, CloudWatch and ``logcli -o jsonl``, answers of Loki's API, and the journal's export
format, where a record is several lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.readers.stamp import Stamp, from_value, head_of

_MESSAGE_KEYS = (
    "MESSAGE", "message", "msg", "log", "line", "text", "textPayload", "@message", "body", "Line"
)  # fmt: skip
_HOST_KEYS = (
    "_HOSTNAME", "hostname", "host", "node", "nodename", "node_name", "HOSTNAME", "instance"
)  # fmt: skip
_TIME_KEYS = (
    "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "@timestamp", "timestamp", "time", "ts",
    "Time", "eventTime", "date",
)  # fmt: skip
# Where shippers put what they know of a record's origin.
_NESTED = ("labels", "stream", "kubernetes", "host", "resource", "jsonPayload", "fields", "_source")
# Records taken from one line: an answer of Loki holds many.
_MOST = 4_096
_MAX_MESSAGE = 8_192


@dataclass(slots=True)
class LogLine:
    """One record.

    Attributes:
        number: the line of the input, from 1.
        text: the message, with what stands before it in plain text logs.
        host: the machine, where the record names it.
        stamp: when it was written, where the record says it.
    """

    number: int
    text: str
    host: str | None = None
    stamp: Stamp | None = None


class Records:
    """Takes lines and gives records; those of the journal's export format when they end."""

    def __init__(self) -> None:
        self._host: str | None = None
        self._stamp: Stamp | None = None
        self._message: tuple[int, str] | None = None

    def feed(self, number: int, text: str) -> tuple[list[LogLine], bool]:
        """Take a line; return the records that are complete, and whether it is a journal field."""
        bare = text.lstrip(" \t")
        if bare.startswith("__REALTIME_TIMESTAMP="):
            done = self.flush()
            self._stamp = from_value(bare[21:])
            return done, True
        if bare.startswith("_HOSTNAME="):
            self._host = bare[10:].strip()[:253] or None
            return [], True
        if bare.startswith("MESSAGE=") and (self._stamp or self._host):
            done = self.flush(end=False)
            self._message = (number, bare[8:])
            return done, True
        return self.flush(end=False) + list(records(number, text)), False

    def flush(self, *, end: bool = True) -> list[LogLine]:
        """Return the record that waits for its host; with ``end``, forget its time as well."""
        done = []
        if self._message is not None:
            number, text = self._message
            head = head_of(text)
            done = [LogLine(number, text, self._host or head.host, self._stamp or head.stamp)]
            self._message = None
        if end:
            self._stamp = None
        return done


def records(number: int, text: str) -> Iterator[LogLine]:
    """Yield the records of one line: as a rule one, several of an answer of Loki's API."""
    if "{" in text[:64] and (found := _wrapped(number, text)):
        yield from found
        return
    head = head_of(text)
    yield LogLine(number, text, head.host, head.stamp)


def documents(number: int, value: Any) -> Iterator[LogLine]:
    """Yield the records of a parsed JSON value; nothing if it is no log."""
    if isinstance(value, list):
        for one in value[:_MOST]:
            yield from documents(number, one)
        return
    if not isinstance(value, Mapping):
        return
    streams = _streams(value)
    if streams is not None:
        yield from _loki(number, streams)
        return
    message = _message(value)
    if message is None:
        return
    message = message[:_MAX_MESSAGE].rstrip("\n").replace("\n", " ")
    head = head_of(message)
    host, stamp = _host(value), _time(value)
    yield LogLine(number, message, host or head.host, stamp or head.stamp)


def _wrapped(number: int, text: str) -> list[LogLine]:
    start = text.index("{")
    # `docker compose logs` and `kubectl logs --prefix` put a name before the record.
    for at in {0, start}:
        try:
            value = json.loads(text[at:])
        except (ValueError, RecursionError):
            continue
        return list(documents(number, value))
    return []


def _streams(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the streams of an answer of Loki's ``query_range``, ``tail`` or push."""
    data = value.get("data")
    for holder, key in ((data, "result"), (value, "streams"), (value, "result")):
        if isinstance(holder, Mapping) and isinstance(holder.get(key), list):
            return list(holder[key])
    return None


def _loki(number: int, streams: list[Any]) -> Iterator[LogLine]:
    left = _MOST
    for stream in streams:
        if not isinstance(stream, Mapping) or not isinstance(stream.get("values"), list):
            continue
        labels = stream.get("stream") or stream.get("labels") or {}
        host = _host(labels) if isinstance(labels, Mapping) else None
        for pair in stream["values"]:
            if left <= 0:
                return
            if isinstance(pair, list) and len(pair) >= 2 and isinstance(pair[1], str):
                left -= 1
                yield loki_line(number, pair[0], pair[1], host)


def loki_line(number: int, nanoseconds: Any, text: str, host: str | None) -> LogLine:
    """Return the record of one pair of Loki's ``values``; what the line itself says wins."""
    inner = next(records(number, text), None)
    line = inner or LogLine(number, text)
    line.host = line.host or host
    # The line's own time is the kernel's, unless it lacks the zone or the year.
    if line.stamp is None or line.stamp.unix is None:
        stamp = from_value(nanoseconds)
        if stamp is not None and line.stamp is not None:
            stamp = Stamp(stamp.text, stamp.order, stamp.form, line.stamp.boot_s)
        line.stamp = stamp or line.stamp
    return line


def _message(record: Mapping[str, Any]) -> str | None:
    found = _first_text(record, _MESSAGE_KEYS)
    if found is not None:
        return found
    raw = record.get("MESSAGE")
    if isinstance(raw, list) and all(
        isinstance(b, int) and 0 <= b < 256 for b in raw[:_MAX_MESSAGE]
    ):
        # journald gives a message that is no UTF-8 as its bytes.
        return bytes(raw[:_MAX_MESSAGE]).decode("utf-8", "replace")
    for key in _NESTED:
        inner = record.get(key)
        if isinstance(inner, Mapping):
            found = _first_text(inner, _MESSAGE_KEYS)
            if found is not None:
                return found
    return None


def _host(record: Mapping[str, Any]) -> str | None:
    found = _first_text(record, _HOST_KEYS)
    if found is None:
        for key in _NESTED:
            inner = record.get(key)
            if isinstance(inner, Mapping):
                found = _first_text(inner, (*_HOST_KEYS, "name"))
                if found is not None:
                    break
    return found[:253] if found and not any(c.isspace() for c in found) else None


def _time(record: Mapping[str, Any]) -> Stamp | None:
    for key in _TIME_KEYS:
        stamp = from_value(record[key]) if key in record else None
        if stamp is not None:
            return stamp
    return None


def _first_text(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((v for v in map(record.get, keys) if isinstance(v, str) and v), None)
