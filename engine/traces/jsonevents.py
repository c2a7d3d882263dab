"""Chrome trace JSON as a stream: lists of events, in memory that does not grow with the file.

The array of events is cut at a place that looks like the border of two events, and the piece goes
to orjson. As the piece begins at a true border, it parses only if it ends at one too, so that the
cut needs no proof; where no cut parses, a tokeniser finds the borders. What stands before and after
the array is kept if it is small and wanted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from engine.errors import InputError

Event = dict[str, Any]

# A piece becomes some ten times its size in Python objects; larger ones leave the CPU's caches.
_PIECE = 1 << 17
# No profiler writes an event of that size.
_MAX_EVENT = 16 << 20
_MAX_VALUE = 1 << 20
_TRIES = 6

_SPACE = b" \t\r\n"
_BORDER = re.compile(rb"\}[ \t\r\n]*+,[ \t\r\n]*+\{")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_STRING_REST = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_KEY = re.compile(rb'[ \t\r\n,]*+"((?:[^"\\]|\\.){0,256}+)"[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]{0,64}+")
# Words that are no JSON but that profilers write for numbers, outside strings.
_NO_NUMBER = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"|[+-]?\b(?:nan|inf|infinity)\b', re.DOTALL | re.IGNORECASE
)
_BAD_ESCAPE = re.compile(rb'\\(?:(?=["\\/bfnrtu])(.)|)', re.DOTALL)


class EventFile:
    """Reads a Chrome trace: an object with ``traceEvents``, or the bare array of events.

    Attributes:
        header: the wanted values beside the events.
        cut: the file ended before its list of events did.
        bad: pieces that looked like events and were none.
        offset: bytes consumed.
    """

    def __init__(self, chunks: Iterable[bytes], wanted: frozenset[str]) -> None:
        self._chunks = iter(chunks)
        self._wanted = wanted
        self._rest = b""
        self._ended = False
        self.header: dict[str, Any] = {}
        self.cut = False
        self.bad = 0
        self.offset = 0

    def events(self) -> Iterator[list[Any]]:
        """Yield the events in lists of some thousands.

        Raises:
            InputError: this is no Chrome trace.
        """
        first = self._peek()
        if first == b"\xef":  # a byte order mark
            self._take(3)
            first = self._peek()
        if first == b"[":
            self._take(1)
            yield from self._array()
        elif first == b"{":
            self._take(1)
            yield from self._object()
        else:
            raise InputError(
                "no trace: it starts with neither { nor [", hint="give the JSON that was exported"
            )

    # --- the object around the events

    def _object(self) -> Iterator[list[Any]]:
        while True:
            self._fill(1024)
            key = _KEY.match(self._rest)
            if key is None:
                self.cut = self.cut or not self._rest.lstrip(_SPACE + b",").startswith(b"}")
                return
            name = key[1].decode("utf-8", "replace")
            self._take(key.end())
            if name == "traceEvents" and self._peek() == b"[":
                self._take(1)
                yield from self._array()
                if self.cut:
                    return
            else:
                value = self._value(keep=name in self._wanted)
                if name in self._wanted:
                    self.header[name] = value

    def _value(self, *, keep: bool) -> Any:
        """Consume one value of any kind and size; return it if it is wanted and small."""
        if self._peek() not in {b"{", b"[", b'"'}:
            self._fill(80)
            scalar = _SCALAR.match(self._rest)
            text = scalar[0] if scalar else b""
            self._take(len(text))
            return _loads_or_none(text) if keep else None
        skimmer = _Skimmer()
        kept: list[bytes] = []
        size = 0
        while True:
            data = self._rest
            end = skimmer.feed(data)
            part = data if end < 0 else data[:end]
            size += len(part)
            if keep and size <= _MAX_VALUE:
                kept.append(part)
            self._take(len(part))
            if end >= 0:
                break
            if not self._more():
                self.cut = True
                return None
        return _loads_or_none(b"".join(kept)) if keep and size <= _MAX_VALUE else None

    # --- the events

    def _array(self) -> Iterator[list[Any]]:
        wanted = _PIECE
        while True:
            self._fill(wanted)
            if self._peek() == b"]":
                self._take(1)
                return
            found = self._piece()
            if found is None:
                found, closed = self._scanned()
                if found is None and not self._ended and len(self._rest) <= _MAX_EVENT:
                    wanted = 2 * max(wanted, len(self._rest))
                    continue
                if found is None:
                    self.cut = not closed
                    return
                if found:
                    yield found
                if closed:
                    return
            else:
                yield found
            wanted = _PIECE

    def _piece(self) -> list[Any] | None:
        """Cut at one of the last places that look like a border; None if none of them is one."""
        rest = self._rest
        if self._ended:
            return None
        span = 4096
        while True:
            window = rest[-span:]
            borders = [(m.start() + 1, m.end() - 1) for m in _BORDER.finditer(window)]
            if borders or span >= len(rest):
                break
            span *= 16
        base = max(0, len(rest) - span)
        for end, start in borders[: -_TRIES - 1 : -1]:
            try:
                events: list[Any] = orjson.loads(b"[%b]" % rest[: base + end])
            except orjson.JSONDecodeError:
                continue
            self._take(base + start)
            return events
        return None

    def _scanned(self) -> tuple[list[Any] | None, bool]:
        """Find the borders with a tokeniser: what parses, and whether the array ends here.

        None for the events if there is not a single whole one.
        """
        rest = self._rest
        ends, closed = _borders(rest)
        if not ends and closed < 0:
            return None, False
        events = _parse_all(rest, ends)
        self.bad += len(ends) - len(events)
        self._take(closed + 1 if closed >= 0 else ends[-1])
        if closed < 0:
            rest = self._rest.lstrip(_SPACE)
            self._take(len(self._rest) - len(rest) + rest.startswith(b","))
        return events, closed >= 0

    # --- bytes

    def _peek(self) -> bytes:
        """Return the next byte that is not white space, without consuming it."""
        while True:
            self._rest, dropped = self._rest.lstrip(_SPACE), len(self._rest)
            self.offset += dropped - len(self._rest)
            if self._rest or not self._more():
                return self._rest[:1]

    def _take(self, count: int) -> None:
        self._rest = self._rest[count:]
        self.offset += count

    def _fill(self, size: int) -> None:
        if len(self._rest) >= size or self._ended:
            return
        parts, have = [self._rest], len(self._rest)
        for chunk in self._chunks:
            parts.append(chunk)
            have += len(chunk)
            if have >= size:
                break
        else:
            self._ended = True
        self._rest = b"".join(parts)

    def _more(self) -> bool:
        before = len(self._rest)
        self._fill(before + 1)
        return len(self._rest) > before


class _Skimmer:
    """Finds the end of a JSON value in pieces cut anywhere."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, data: bytes) -> int:
        """Return where the value ends in this piece, or -1 if it goes on."""
        at = 0
        while at < len(data):
            if self._in_string:
                if self._escaped:
                    at, self._escaped = at + 1, False
                rest = _STRING_REST.match(data, at)
                at = rest.end() if rest else at
                if rest and rest[1]:
                    self._in_string = False
                    if not self._depth:
                        return at
                else:
                    self._escaped = data[at : at + 1] == b"\\"
                    return -1
                continue
            token = _TOKEN.search(data, at)
            if token is None:
                return -1
            at = token.end()
            if token[1] is None:
                self._depth += 1 if token[0] in b"[{" else -1
                if self._depth <= 0:
                    return at
            elif not token[1]:
                self._in_string = True
                self._escaped = data[at : at + 1] == b"\\"
                return -1
            elif not self._depth:
                return at
        return -1


def _borders(data: bytes) -> tuple[list[int], int]:
    """Return where objects of the array end, and where the array itself does (-1: not here)."""
    depth = 0
    ends: list[int] = []
    for token in _TOKEN.finditer(data):
        if token[1] is not None:
            if not token[1]:
                break
            continue
        if token[0] in b"[{":
            depth += 1
            continue
        depth -= 1
        if depth < 0:
            return ends, token.start()
        if depth == 0:
            ends.append(token.end())
    return ends, -1


def _parse_all(data: bytes, ends: list[int]) -> list[Any]:
    """Parse the objects that end there; all at once if possible, else each for itself."""
    if not ends:
        return []
    whole = _repaired(b"[%b]" % data[: ends[-1]])
    if whole is not None:
        return list(whole)
    out = []
    start = 0
    for end in ends:
        one = _repaired(data[start:end].lstrip(b" \t\r\n,"))
        start = end
        if one is not None:
            out.append(one)
    return out


def _repaired(text: bytes) -> Any:
    """Parse JSON as profilers write it, with NaN, lone backslashes, raw controls; else None."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    text = _NO_NUMBER.sub(lambda m: m[0] if m[0].startswith(b'"') else b"null", text)
    text = _BAD_ESCAPE.sub(lambda m: m[0] if m[1] else rb"\\", text)
    try:
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _loads_or_none(text: bytes) -> Any:
    return _repaired(text) if text else None
