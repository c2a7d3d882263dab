"""Metrics files on disk, pipes and standard input, made readable more than once."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from engine.errors import InputError
from engine.sources.text import show
from engine.sources.textblocks import CHUNK, MAX_BYTES, refuse_binary

STDIN = "-"


class Cancelled(Exception):  # noqa: N818 - no error: the caller has gone
    """The question was withdrawn while a file was being read."""


class MetricsFile:
    """One file to read, perhaps several times; pipes and standard input are copied once.

    Attributes:
        label: what messages call the file.
        size: bytes on disk (compressed, if it is), known after `prepare`.
        written: when a regular file was last written to (Unix s), known after `prepare`.
    """

    def __init__(self, path: str | os.PathLike[str], stdin: BinaryIO | None = None) -> None:
        self.path = os.fspath(path)
        self.label = "stdin" if self.path == STDIN else show(self.path, 200)
        self.size = 0
        self.written: float | None = None
        self._stdin = stdin
        self._copy: BinaryIO | None = None

    def prepare(self, stop: threading.Event) -> None:
        """Check that the file can be read, and copy it if it can be read only once.

        Raises:
            InputError: missing, a directory, not permitted, broken off, or larger than a pipe may
                be.
            Cancelled: ``stop`` was set.
        """
        if self._copy is not None:
            return
        if not self.path:
            raise InputError("a metrics file has an empty name", hint="check the path")
        try:
            if self.path == STDIN:
                self._copy = self._spool(self._stdin or sys.stdin.buffer, stop)
                return
            info = Path(self.path).stat()
            if stat.S_ISDIR(info.st_mode):
                raise InputError(
                    f"{self.label} is a directory", hint="name the metrics files in it"
                )
            if stat.S_ISREG(info.st_mode):
                self.size, self.written = info.st_size, info.st_mtime
                return
            # Opening a named pipe waits for its writer, deaf to `stop`, unless told not to.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as stream:
                self._copy = self._spool(stream, stop)
        except (OSError, ValueError) as e:
            raise self.unreadable(e) from e

    def open(self) -> BinaryIO:
        """Open the file at its start; the caller closes it.

        Raises:
            InputError: it cannot be opened.
        """
        try:
            if self._copy is None:
                return Path(self.path).open("rb")
            # A second descriptor of the copy, so that closing it leaves the copy alone.
            stream = os.fdopen(os.dup(self._copy.fileno()), "rb")
            stream.seek(0)
        except OSError as e:
            raise self.unreadable(e) from e
        return stream

    def close(self) -> None:
        """Throw the copy away, if one was made."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def unreadable(self, e: OSError | ValueError) -> InputError:
        """Return the error for a file that the system does not give, or stops giving."""
        if isinstance(e, FileNotFoundError):
            return InputError(
                f"{self.label}: no such file", hint="check the path, or use - for standard input"
            )
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        return InputError(f"{self.label} cannot be read: {why}")

    def _spool(self, stream: BinaryIO, stop: threading.Event) -> BinaryIO:
        with contextlib.ExitStack() as on_error:
            with self._room():
                copy = on_error.enter_context(tempfile.TemporaryFile())
            for piece in _pieces(stream, stop):
                if not self.size:
                    refuse_binary(piece, self.label)
                self.size += len(piece)
                if self.size > MAX_BYTES:
                    raise InputError(f"{self.label} brings more than {MAX_BYTES >> 30} GiB")
                with self._room():
                    copy.write(piece)
            with self._room():
                copy.flush()
            on_error.pop_all()  # from here on `close` sees to it
        return copy

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise InputError(
                f"{self.label} must be copied to be read, which fails: {e.strerror or e}",
                hint="point TMPDIR at a folder with room",
            ) from e


def _pieces(stream: BinaryIO, stop: threading.Event) -> Iterator[bytes]:
    """Yield what a pipe brings, looking out for ``stop`` while it brings nothing."""
    try:
        descriptor: int | None = stream.fileno()
    except (OSError, ValueError, AttributeError):
        descriptor = None
    while True:
        if stop.is_set():
            raise Cancelled
        if descriptor is None:
            piece = stream.read(CHUNK)
        elif select.select([descriptor], [], [], 0.1)[0]:
            try:
                piece = os.read(descriptor, CHUNK)
            except BlockingIOError:  # another reader of the pipe was faster
                continue
        else:
            continue
        if not piece:
            return
        yield piece
