"""Pasted text and log files as blocks of whole lines, in bounded memory.

Packed input is unpacked (`engine.readers.packed`), UTF-16 is understood, with a byte order mark or
without, NUL bytes that a crash left in a log are dropped, very long lines are cut; what is binary
is refused. `clean` makes one line readable: colours, Windows line ends and marks of quotation go.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from engine.errors import InputError
from engine.readers.packed import unpacked

# A kernel log record is at most 1 KiB and an exposition line with many labels a few KiB.
MAX_LINE = 32_768
BLOCK = 262_144
HEAD = 65_536
# Of a text's first bytes so many may be control characters other than tab, line ends and escape;
# random bytes have a tenth.
_CONTROL_SHARE = 0.05
_CONTROL = bytes(i for i in range(32) if i not in b"\t\n\r\x0c\x1b")

_ANSI = re.compile(
    rb"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[()][0-9A-Za-z])"
)
# A quoted message: "> " before each line; marks of code around it.
_QUOTED = re.compile(rb"(?m)^(?:> ?){1,4}")
_FENCE = re.compile(rb"(?m)^[ \t]{0,8}```(?:[a-z]{1,12}(?=\r?$))?|```[ \t]*(?=\r?$)")
_MARK, _LINE_FEED = b">\n"
_NUL_RUN = re.compile(rb"\0{64,}")
_NO_BREAK = (b"\xc2\xa0", b"\xe2\x80\xaf")
# UTF-16 without a mark: of so many characters such a share have a NUL byte, and none has two.
_FEW_CHARACTERS, _WIDE_SHARE = 4, 0.9
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


OnProgress = Callable[[int, int | None], None]
"""Told how many bytes of how many (None: not known) have been taken."""


class Source:
    """The bytes of an input, unpacked, with their first `HEAD` bytes to look at.

    Raises:
        InputError: it cannot be read or unpacked.
    """

    def __init__(
        self,
        source: Iterable[bytes] | bytes | Path,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.path = source if isinstance(source, Path) else None
        self._on_progress = on_progress
        self._total = _size(source)
        self._packed_head = b""
        self.notes: list[str] = []
        self._chunks = iter(unpacked(self._noted(chunks_of(source)), self.notes))
        head = b""
        for chunk in self._chunks:
            head += chunk
            if len(head) >= HEAD:
                break
        self._first = head
        self.head = head[:HEAD]
        """The first bytes, unpacked."""

    @property
    def packed(self) -> bool:
        """Whether the bytes of the file are not those that are read."""
        return not self._first.startswith(self._packed_head[:4])

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes; can be done once."""
        return chain((self._first,), self._chunks) if self._first else self._chunks

    def left(self) -> None:
        """Say that something else reads the rest of the file: how far it is, is not known."""
        if self._on_progress:
            self._on_progress(0, None)

    def _noted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        done = 0
        for chunk in chunks:
            self._packed_head = self._packed_head or chunk[:4]
            done += len(chunk)
            if self._on_progress:
                self._on_progress(done, self._total)
            yield chunk


@dataclass(slots=True)
class Blocks:
    """Whole lines in blocks of at most about `BLOCK` bytes; ``cut`` counts shortened lines.

    Every block ends in a line feed. Nothing of the text is left out, except what makes a line
    longer than a block.

    Raises:
        InputError: the input is binary.
    """

    chunks: Iterable[bytes]
    cut: int = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blocks."""
        rest = held = b""  # a last line without its end belongs to the block before it
        cutting = False
        for chunk in _slices(_as_utf8(self.chunks)):
            data = rest + (chunk.translate(None, b"\0") if b"\0" in chunk else chunk)
            end = data.rfind(b"\n") + 1
            if cutting:
                # The rest of a line of which a whole block has been given already.
                start = data.find(b"\n") + 1
                if not start:
                    rest = b""
                    continue
                cutting, data, end = False, data[start:], end - start
            rest = data[end:]
            if end:
                if held:
                    yield held
                held = data[:end]
            if len(rest) > BLOCK:
                self.cut += 1
                if held:
                    yield held
                held = b""
                yield rest[:MAX_LINE] + b"\n"
                rest, cutting = b"", True
        if rest and len(held) + len(rest) > BLOCK:
            yield held
            held = b""
        if held or rest:
            yield held + (rest + b"\n" if rest else b"")


def bare(block: bytes) -> bytes:
    """Return whole lines without colour codes, marks of quotation and of code.

    Done before anything is looked for: `grep --color` puts its codes inside words.
    """
    if b"\x1b" in block:
        block = _ANSI.sub(b"", block)
    if block.startswith(b">") or _begins_with_mark(block):
        block = _QUOTED.sub(b"", block)
    if b"`" in block and b"```" in block:
        block = _FENCE.sub(b"", block)
    if not block.isascii():
        for space in _NO_BREAK:
            block = block.replace(space, b" ")
    return block


def _begins_with_mark(block: bytes) -> bool:
    """Return whether a line after the first begins with ">", faster than a search does."""
    characters = np.frombuffer(block, dtype=np.uint8)
    return bool(((characters[1:] == _MARK) & (characters[:-1] == _LINE_FEED)).any())


def clean(raw: bytes) -> str:
    """Return one raw line as text, without carriage return, colour codes and marks of quotation."""
    return bare(raw.rstrip(b"\r")).decode("utf-8", "replace")


def chunks_of(source: Iterable[bytes] | bytes | Path) -> Iterator[bytes]:
    """Yield the bytes of a file or of an iterable of chunks (one ``bytes`` object is one chunk).

    Raises:
        InputError: the file does not exist or cannot be read.
    """
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                while chunk := file.read(BLOCK):
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


def _size(source: Iterable[bytes] | bytes | Path) -> int | None:
    if isinstance(source, bytes):
        return len(source)
    try:
        return source.stat().st_size or None if isinstance(source, Path) else None
    except OSError:
        return None


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if len(chunk) <= BLOCK:
            yield chunk
        else:
            for start in range(0, len(chunk), BLOCK):
                yield chunk[start : start + BLOCK]


def _as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Look at the first bytes: refuse what is binary, recode UTF-16, drop a UTF-8 mark."""
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= 8:
            break
    if not head.startswith(_UTF16) and (wide := _wide(head[:HEAD])):
        decoder = codecs.getincrementaldecoder(wide)("replace")
    elif not head.startswith(_UTF16):
        _refuse_binary(head[:HEAD])
        yield head.removeprefix(codecs.BOM_UTF8)
        yield from source
        return
    else:
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(head).encode("utf-8", "replace")
    for chunk in source:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _wide(head: bytes) -> str | None:
    """Return the encoding of UTF-16 without a mark: every other byte of plain text is NUL then."""
    half = len(head) // 2
    if half < _FEW_CHARACTERS:
        return None
    for encoding, high, low in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        nul, not_nul = head[high::2].count(0), head[low::2].count(0)
        if nul >= _WIDE_SHARE * half and not not_nul:
            return encoding
    return None


def _refuse_binary(head: bytes) -> None:
    if head[257:262] == b"ustar":
        raise InputError(
            "the input is a tar archive",
            hint="unpack it, and give the files: tar xf ARCHIVE -C FOLDER; gpuwhy read FOLDER/*",
        )
    # A crash leaves a run of NUL bytes in a log, as long as the block that was not written.
    text = _NUL_RUN.sub(b"", head)
    controls = len(text) - len(text.translate(None, _CONTROL))
    nul = text.find(b"\0")
    if nul >= 0 and controls > _CONTROL_SHARE * len(text):
        line = text.count(b"\n", 0, nul) + 1
        raise InputError(
            f"the input is binary: NUL byte in line {line}",
            hint="give text: a log, tool output or metrics; or a trace as docs/formats lists them",
        )
