"""Pasted text and log files as numbered, cleaned lines, in bounded memory.

Terminal colours and Windows line ends are taken off, UTF-16 with a byte order mark is understood,
bytes that are no UTF-8 become replacement characters, and very long lines are cut. Text with NUL
bytes is refused as binary.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError

# A kernel log record is at most 1 KiB and an exposition line with many labels a few KiB.
MAX_LINE = 32_768
_BLOCK = 262_144

_ANSI = re.compile(
    rb"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[()][0-9A-Za-z])"
)
# A quoted message: "> " before each line.
_QUOTED = re.compile(rb"^(?:> ?){1,4}(?=\S)")
_PACKED = {
    b"\x1f\x8b": ("gzip", "zcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"BZh": ("bzip2", "bzcat"),
    b"\xfd7zXZ": ("xz", "xzcat"),
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(slots=True)
class Blocks:
    """Whole lines of a source in blocks of raw bytes; ``cut`` counts lines that were shortened.

    Raises:
        InputError: the source is packed or binary (a NUL byte), with the line where it shows.
    """

    chunks: Iterable[bytes]
    cut: int = 0

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield lists of lines without their line feed; nothing of the source is left out."""
        rest = b""
        number = 1
        for chunk in _slices(_as_utf8(self.chunks)):
            if b"\0" in chunk:
                line = number + chunk.count(b"\n", 0, chunk.index(b"\0"))
                raise InputError(
                    f"the input is binary: NUL byte in line {line}",
                    hint="give text: a log, tool output or metrics",
                )
            number += chunk.count(b"\n")
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE + 1:
                rest = rest[: MAX_LINE + 1]  # one byte over: it will be counted as cut
            if lines:
                yield self._capped(lines)
        if rest:
            yield self._capped([rest])

    def _capped(self, lines: list[bytes]) -> list[bytes]:
        if max(map(len, lines)) <= MAX_LINE:
            return lines
        self.cut += sum(len(line) > MAX_LINE for line in lines)
        return [line[:MAX_LINE] for line in lines]


def clean(raw: bytes) -> str:
    """Return one raw line as text, without carriage return, colour codes and marks of quotation."""
    raw = _QUOTED.sub(b"", raw.rstrip(b"\r"))
    if b"\x1b" in raw:
        raw = _ANSI.sub(b"", raw)
    return raw.decode("utf-8", "replace")


def chunks_of(source: Iterable[bytes] | bytes | Path) -> Iterator[bytes]:
    """Yield the bytes of a file or of an iterable of chunks (one ``bytes`` object is one chunk).

    Raises:
        InputError: the file does not exist or cannot be read.
    """
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                while chunk := file.read(_BLOCK):
                    yield chunk
        except OSError as error:
            raise InputError(
                f"cannot read {source}: {error.strerror or error}",
                hint="check the path and its permissions",
            ) from error
    elif isinstance(source, bytes):
        yield source
    else:
        yield from source


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if len(chunk) <= _BLOCK:
            yield chunk
        else:
            for start in range(0, len(chunk), _BLOCK):
                yield chunk[start : start + _BLOCK]


def _as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Look at the first bytes: refuse packed input, recode UTF-16, drop a UTF-8 mark."""
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= 8:
            break
    for magic, (name, tool) in _PACKED.items():
        if head.startswith(magic):
            raise InputError(
                f"the input is {name}-compressed",
                hint=f"unpack it first: {tool} FILE | gpuwhy read -",
            )
    if not head.startswith(_UTF16):
        yield head.removeprefix(codecs.BOM_UTF8)
        yield from source
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(head).encode("utf-8", "replace")
    for chunk in source:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
