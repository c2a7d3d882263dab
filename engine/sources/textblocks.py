"""The text of a metrics file, unpacked and cut into blocks of whole lines."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from engine.errors import InputError
from engine.sources.text import looks_like_html

CHUNK = 1 << 18
# No sample line comes near; a file without line ends must not end up in memory whole.
MAX_LINE = 1 << 20
# What one compressed file may expand to, and what standard input may bring (bytes).
MAX_BYTES = 16 << 30

_PACKED = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dc"),
    b"BZh": ("bzip2", "bzip2 -dc"),
    b"\xfd7zXZ\x00": ("xz", "xz -dc"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}


def refuse_binary(start: bytes, label: str) -> None:
    """Raise InputError if the first bytes of a file show that it is not exposition text."""
    if start.startswith(b"\x1f\x8b"):
        return
    for magic, (what, command) in _PACKED.items():
        if start.startswith(magic):
            raise InputError(
                f"{label} is compressed with {what}, which is not read",
                hint=f"unpack it: {command} FILE | gpuwhy … --metrics -",
            )
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            f"{label} is UTF-16 text",
            hint="convert it: iconv -f UTF-16 -t UTF-8 FILE | gpuwhy … --metrics -",
        )
    if b"\0" in start[:8192]:
        raise InputError(
            f"{label} is a binary file", hint="metrics come as Prometheus or OpenMetrics text"
        )
    if looks_like_html(start):
        raise InputError(
            f"{label} holds a web page, not metrics",
            hint="fetch the exporter's /metrics, or its address has a sign-in in front",
        )


def blocks(
    stream: BinaryIO,
    label: str,
    *,
    on_read: Callable[[int], None],
    on_damage: Callable[[str], None],
) -> Iterator[bytes]:
    """Yield the text of a file in blocks of about 256 KiB; all but the last end with a line end.

    Args:
        stream: the file, at its start.
        label: what messages call it.
        on_read: called with the bytes read from the file so far; may raise to stop.
        on_damage: called with a reason when the end of a compressed file is missing.

    Raises:
        InputError: not text, a line longer than 1 MiB, or expanding without end.
    """
    rest = b""
    total = 0
    for piece in _text(stream, label, on_read, on_damage):
        if not total:
            refuse_binary(piece, label)
            piece = piece.removeprefix(b"\xef\xbb\xbf")  # noqa: PLW2901 - byte order mark
        total += len(piece)
        if total > MAX_BYTES:
            raise InputError(f"{label} expands to more than {MAX_BYTES >> 30} GiB")
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest += piece
        if len(rest) > MAX_LINE:
            raise InputError(f"{label} has a line longer than 1 MiB: these are not metrics")
    if rest:
        yield rest


def _text(
    stream: BinaryIO,
    label: str,
    on_read: Callable[[int], None],
    on_damage: Callable[[str], None],
) -> Iterator[bytes]:
    first = stream.read(CHUNK)
    on_read(len(first))
    if first.startswith(b"\x1f\x8b"):
        yield from _gunzip(stream, first, label, on_read, on_damage)
        return
    done = len(first)
    piece = first
    while piece:
        yield piece
        piece = stream.read(CHUNK)
        done += len(piece)
        on_read(done)


def _gunzip(
    stream: BinaryIO,
    first: bytes,
    label: str,
    on_read: Callable[[int], None],
    on_damage: Callable[[str], None],
) -> Iterator[bytes]:
    done = len(first)
    pending = first
    unpack = zlib.decompressobj(wbits=31)
    try:
        while pending:
            text = unpack.decompress(pending, CHUNK)
            on_read(done)  # little may unpack to much: whoever wants to stop must not wait for it
            if text:
                yield text
            pending = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if not pending:
                pending = stream.read(CHUNK)
                done += len(pending)
                on_read(done)
            if unpack.eof and pending.startswith(b"\x1f\x8b"):
                unpack = zlib.decompressobj(wbits=31)  # gzip files may be joined end to end
            elif unpack.eof:
                return  # padding after the last member
    except zlib.error as e:
        # What was unpacked so far is not used: a wrong checksum means that any of it may be wrong.
        raise InputError(f"{label} is a damaged gzip file: {e}", hint="fetch it again") from e
    if not unpack.eof:
        on_damage("the compressed data is cut off; what comes after is lost")
