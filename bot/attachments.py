"""Files that people attach to a message: which of them can be read, checked before any is fetched.

A reference holds no address: the bytes are asked for by the file's id, with the bot's own token.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.request import Json
from engine.errors import InputError, UsageError

MAX_FILE = 32 << 20
"""Largest file that is read from a message (bytes); larger ones are read where they lie."""
MAX_FILES = 5

_ID = re.compile(r"F[A-Z0-9]{2,30}", re.ASCII)
_NAME = 120
# What Slack calls images, films and office documents; text has many names, so these are told apart.
_NO_TEXT = re.compile(
    r"(?:image|video|audio|font)/"
    r"|application/(?:pdf|msword|vnd\.(?:openxmlformats|ms-|oasis|slack)|epub|x-iwork|zip|x-7z|x-rar)"
)


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of a message.

    Attributes:
        id: of the file at Slack.
        name: as its owner called it; shown, never used as a path.
        size: in bytes; 0 if it is not known.
        type: MIME type, as Slack sees it.
    """

    id: str
    name: str
    size: int
    type: str

    def to_json(self) -> dict[str, Json]:
        """Return the reference as JSON-able values."""
        return {"id": self.id, "name": self.name, "size": self.size, "type": self.type}

    @classmethod
    def from_json(cls, data: Any) -> FileRef:
        """Return the reference that `to_json` wrote, or one of Slack's own file objects.

        Raises:
            UsageError: it is neither.
        """
        if not isinstance(data, Mapping) or not _ID.fullmatch(str(data.get("id") or "")):
            raise UsageError("a file must have the 'id' that Slack gave it")
        size = data.get("size")
        return cls(
            id=str(data["id"]),
            name=str(data.get("name") or data.get("title") or "file")[:_NAME],
            size=size if isinstance(size, int) and size > 0 else 0,
            type=str(data.get("type") or data.get("mimetype") or "")[:_NAME],
        )

    def check(self) -> None:
        """Make sure that the file may be fetched.

        Raises:
            InputError: it is too large, or no text.
        """
        if self.size > MAX_FILE:
            raise InputError(
                f"{self.name} has {self.size / 1e6:.0f} MB, and {MAX_FILE >> 20} MiB are read here",
                hint=f"read it where it lies: gpuwhy read {_quoted(self.name)}",
            )
        if _NO_TEXT.match(self.type):
            raise InputError(
                f"{self.name} is {self.type}, which cannot be read",
                hint="paste the text, or attach it as a text file, a log or a trace",
            )


Fetch = Callable[[FileRef], Awaitable[bytes]]
"""Brings the bytes of a file; raises `GpuwhyError`."""


def refs_of(message: Mapping[str, Any]) -> tuple[FileRef, ...]:
    """Return the files of a Slack message or event, but not those that Slack hides from us."""
    files = message.get("files")
    if not isinstance(files, Sequence) or isinstance(files, str):
        return ()
    found = [
        FileRef.from_json(one)
        for one in files
        if isinstance(one, Mapping) and _ID.fullmatch(str(one.get("id") or ""))
    ]
    return tuple(found[:MAX_FILES])


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.+-]+", name, re.ASCII) else "FILE"
