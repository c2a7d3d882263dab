"""Unpack gzip and zstd while reading, in bounded memory; bombs are refused."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from engine.errors import InputError

_BLOCK = 262_144
# Text is packed a few times to some tens of times smaller, a log of one repeated line some
# hundreds of times; what grows more than this, beyond the free part, is made to.
MAX_RATIO = 400
FREE = 64 * 1024 * 1024
# Decoding a zstd frame takes its window in memory; zstd's own levels stay at 8 MiB up to 19.
_MAX_WINDOW = 64 * 1024 * 1024
# Four bytes of zstd can mean 128 KiB: so much is decoded at a time, at most 16 MiB.
_SIP = 512

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {
    b"BZh": ("bzip2", "bzcat"),
    b"\xfd7zXZ": ("xz", "xzcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4cat"),
    b"7z\xbc\xaf": ("7z", "7z e -so"),
}


def unpacked(chunks: Iterable[bytes], notes: list[str]) -> Iterator[bytes]:
    """Yield the bytes of a source, unpacked if it is gzip or zstd, else as they are.

    Args:
        chunks: the packed bytes.
        notes: gets what a reader of the answer should know: that the end was missing.

    Raises:
        InputError: the packing is another one, damaged, nested, or a bomb.
    """
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= 8:
            break
    for magic, (name, tool) in _OTHERS.items():
        if head.startswith(magic):
            raise InputError(
                f"the input is {name}-compressed",
                hint=f"unpack it first: {tool} FILE | gpuwhy read -",
            )
    rest = chain((head,), source) if head else source
    if head.startswith(GZIP):
        yield from _checked("gzip", _gzip, rest, notes)
    elif head.startswith(ZSTD):
        yield from _checked("zstd", _zstd, rest, notes)
    else:
        yield from rest


class _Counted:
    """Chunks of a packed source in small pieces, and how many bytes were taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, empty at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = memoryview(chunk)
        piece = bytes(self._rest[: size if size >= 0 else None])
        self._rest = self._rest[len(piece) :]
        self.taken += len(piece)
        return piece


def _checked(
    name: str,
    unpack: Callable[[_Counted], Iterator[bytes]],
    chunks: Iterable[bytes],
    notes: list[str],
) -> Iterator[bytes]:
    counted = _Counted(chunks)
    given = 0
    try:
        for piece in unpack(counted):
            if given == 0 and piece.startswith((GZIP, ZSTD)):
                raise InputError(
                    f"the input is packed twice ({name} outside)", hint="unpack it once before"
                )
            given += len(piece)
            if given > FREE and given > MAX_RATIO * counted.taken:
                raise InputError(
                    f"the {name} input grows more than {MAX_RATIO} times: it looks like a bomb",
                    hint="if it is not, unpack it first and read the file",
                )
            yield piece
    except _Damaged as error:
        if not given:
            raise InputError(
                f"the {name} input is damaged: {error}", hint="check the file, or copy it again"
            ) from error
        notes.append(f"The {name} input breaks off ({error}): what came before was read.")


class _Damaged(Exception):  # noqa: N818 - private: it becomes an InputError or a note
    """The packed bytes cannot be unpacked further."""


def _gzip(source: _Counted) -> Iterator[bytes]:
    decoder = zlib.decompressobj(wbits=31)
    data = source.read(_BLOCK)
    try:
        while data:
            piece = decoder.decompress(data, _BLOCK)
            if piece:
                yield piece
            data = decoder.unconsumed_tail
            if decoder.eof:
                data = decoder.unused_data.lstrip(b"\0") or source.read(_BLOCK).lstrip(b"\0")
                if not data:
                    return
                decoder = zlib.decompressobj(wbits=31)
            elif not data:
                data = source.read(_BLOCK)
    except zlib.error as error:
        raise _Damaged(str(error)) from error
    raise _Damaged("its end is missing")


def _zstd(source: _Counted) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415 - only for packed input

    fresh = False
    context = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    decoder = context.decompressobj()
    try:
        while data := source.read(_SIP):
            while data:
                piece = decoder.decompress(data)
                yield from (piece[i : i + _BLOCK] for i in range(0, len(piece), _BLOCK))
                data = decoder.unused_data if decoder.eof else b""
                if decoder.eof:
                    decoder = context.decompressobj()
                    fresh = not data
                else:
                    fresh = False
    except (zstandard.ZstdError, MemoryError) as error:
        raise _Damaged(f"{error}; windows over {_MAX_WINDOW >> 20} MiB are refused") from error
    if not fresh:
        raise _Damaged("its end is missing")
