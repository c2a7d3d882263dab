"""The file that a capture brings: written under another name first, and only then complete."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from engine.capture.errors import CaptureError, UnreachableError
from engine.capture.ports import Completed

_PART = ".part"
_WATCH_S = 0.05
_FULL_BYTES = 1 << 20

Run = Callable[[int], Coroutine[Any, Any, Completed]]


def remove_partial(folder: Path) -> None:
    """Remove what came over incompletely into the folder of a capture."""
    for part in folder.glob(f"*{_PART}"):
        part.unlink(missing_ok=True)


async def receive(run: Run, destination: Path, *, host: str, max_bytes: int) -> int:
    """Let a command write into the file, and return the file's size (bytes).

    Args:
        run: runs the command with this file descriptor as its standard output.
        destination: the file; until it is complete it is called ``NAME.part``.
        host: where the command runs, for messages.
        max_bytes: more than this is refused, whatever was said before about the size (bytes).

    Raises:
        CaptureError: the file cannot be written or is too large, or the command failed.
        UnreachableError: the command's machine cannot be reached.
    """
    part = destination.with_name(destination.name + _PART)
    try:
        descriptor = await _created(part)
    except OSError as error:
        raise _unwritable(part, error) from None
    try:
        ended = await _watched(run(descriptor), descriptor, max_bytes)
        if ended is None:
            raise too_large(host, max_bytes)
        if ended.status != 0:
            raise CaptureError(f"the file on {host} did not come over: {ended.said}")
        size = await asyncio.to_thread(_written, descriptor)
        await asyncio.to_thread(part.replace, destination)
    except UnreachableError:
        # ssh gives no reason when it cannot write its output.
        free = await asyncio.to_thread(free_bytes, destination.parent)
        if free < _FULL_BYTES:
            raise no_room("here", destination.parent, free, max_bytes) from None
        raise
    except OSError as error:
        raise _unwritable(part, error) from None
    finally:
        _discard(descriptor, part)
    return size


async def _created(part: Path) -> int:
    """Create the file and return its descriptor; nothing stays behind if the task is cancelled."""
    creating = asyncio.ensure_future(asyncio.to_thread(_create, part))
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        # The thread cannot be stopped: what it makes is removed when it is done.
        await asyncio.wait({creating})
        if creating.exception() is None:
            _discard(creating.result(), part)
        raise


def _discard(descriptor: int, part: Path) -> None:
    os.close(descriptor)
    part.unlink(missing_ok=True)  # still there only if something went wrong


def too_large(host: str, max_bytes: int) -> CaptureError:
    """Return the error for a trace that is larger than allowed."""
    said = f"the trace on {host} is larger than {max_bytes / 1e6:.4g} MB and was thrown away"
    return CaptureError(said, hint="record for a shorter time, or allow larger files")


def no_room(where: str, folder: object, free: int, wanted: int) -> CaptureError:
    """Return the error for a folder without room for the trace (bytes)."""
    said = f"only {free / 1e6:.0f} MB are free {where} in {folder}; a trace may take"
    hint = "make room, or allow only smaller files"
    return CaptureError(f"{said} {wanted / 1e6:.0f} MB", hint=hint, code="no_room")


async def _watched(
    work: Coroutine[Any, Any, Completed], descriptor: int, max_bytes: int
) -> Completed | None:
    """Return how the command ended; None if it was ended for writing too much."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_WATCH_S)
            if os.fstat(descriptor).st_size > max_bytes:
                return None
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def free_bytes(folder: Path) -> int:
    """Return the space left (bytes) where the folder is, or will be."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def _create(part: Path) -> int:
    part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _written(descriptor: int) -> int:
    os.fsync(descriptor)
    return os.fstat(descriptor).st_size


def _unwritable(part: Path, error: OSError) -> CaptureError:
    said = f"cannot write {part}: {error.strerror}"
    return CaptureError(said, hint="make room there, or set another folder for captures")
