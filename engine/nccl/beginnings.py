"""What is odd about a file to follow, told when it is given: it may stay silent for ever."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from engine.nccl.files import Format, format_of
from engine.nccl.follow import SUFFIXES

_HEAD: Final = 65_536
# So many files of a folder are looked at.
_MOST: Final = 64


def doubts(path: Path) -> Iterator[str]:
    """Yield what is odd about a path to follow: absent, or nothing in it that is counted.

    A file that was only begun is not: without a whole line it may still become anything.
    """
    try:
        if not path.is_dir():
            said = _of_file(path)
        else:
            inside = (p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
            found = [_of_file(one) for one in islice(inside, _MOST)]
            said = found[0] if found and all(found) else None
    except OSError as error:
        said = f"{path}: {error.strerror or error}"
    if said is not None:
        yield said


def _of_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return f"{path} is not there yet"
    kind = format_of(head)
    if kind is Format.PROMETHEUS:
        return f"{path} is text for node_exporter already, and is not followed"
    if kind is None and b"\n" in head.lstrip() and head.strip() != b"[":
        return (
            f"{path} holds no record of NCCL Inspector or of a profiler plugin so far; "
            "what a log shows: gpuwhy read FILE"
        )
    return None
