"""A journal in a file, for captures that are run without a server.

The journal lies beside the captured file: the plan on the first line, one entry a line after it.
The process that runs the capture holds a lock on it, so that a journal without one is known to be
of a process that died. A finished journal gets another name.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from engine.capture.errors import CaptureError
from engine.capture.plan import CapturePlan, plan_from_json
from engine.capture.ports import Entry, Phase
from engine.model import to_json

_OPEN = "journal.jsonl"
_FINISHED = "finished.jsonl"


class FileJournal:
    """An open, locked journal; see `begin` and `abandoned`."""

    def __init__(self, stream: TextIO, path: Path) -> None:
        self._stream = stream
        self._path = path

    async def append(self, entry: Entry) -> None:
        """Write an entry and see it on the disk.

        Raises:
            CaptureError: it cannot be written.
        """
        line = {"step": entry.step, "phase": str(entry.phase), "detail": dict(entry.detail)}
        try:
            await asyncio.to_thread(_write, self._stream, line)
        except OSError as error:
            raise _unwritable(self._path, error) from None

    def finish(self) -> None:
        """Say that nothing is left to be done."""
        self._path.replace(self._path.with_name(_FINISHED))


@contextmanager
def begin(plan: CapturePlan) -> Iterator[FileJournal]:
    """Open a new journal beside the plan's file; it is finished if the block ends without error.

    Raises:
        CaptureError: it cannot be written, or there is one already.
    """
    path = Path(plan.file).parent / _OPEN
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stream = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise CaptureError(f"capture {plan.id} was run before", hint="make a new plan") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        _write(stream, to_json(plan))
        journal = FileJournal(stream, path)
        yield journal
        journal.finish()


@contextmanager
def abandoned(folder: Path) -> Iterator[list[tuple[CapturePlan, tuple[Entry, ...], FileJournal]]]:
    """Open the journals of captures whose process died, while the block runs.

    A journal without a readable plan is left alone: nothing can have been begun by it.
    """
    found = []
    streams = []
    try:
        for path in sorted(folder.glob(f"*/{_OPEN}")):
            stream = path.open("r+", encoding="utf-8")
            streams.append(stream)
            if read := _read(stream):
                found.append((*read, FileJournal(stream, path)))
        yield found
    finally:
        for stream in streams:
            stream.close()


def _read(stream: TextIO) -> tuple[CapturePlan, tuple[Entry, ...]] | None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = stream.read()
        if not text.endswith("\n"):
            stream.write("\n")  # what is written next must not join a line that was cut off
        first, *lines = text.splitlines() or [""]
        return plan_from_json(json.loads(first)), tuple(_entries(lines))
    except (BlockingIOError, ValueError, CaptureError):
        return None


def _entries(lines: list[str]) -> Iterator[Entry]:
    for line in lines:
        try:
            data = json.loads(line)
            yield Entry(data["step"], Phase(data["phase"]), data["detail"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off by the crash: the step had not begun when the line was not whole


def _write(stream: TextIO, line: object) -> None:
    stream.write(json.dumps(line) + "\n")
    stream.flush()
    os.fsync(stream.fileno())


def _unwritable(path: Path, error: OSError) -> CaptureError:
    said = f"cannot write {path}: {error.strerror}"
    return CaptureError(said, hint="make room there, or set another folder for captures")
