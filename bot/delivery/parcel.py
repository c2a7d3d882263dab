"""What a delivery's payload holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.delivery.messenger import Message


@dataclass(frozen=True, slots=True)
class Attached:
    """A text file that goes into the thread.

    Attributes:
        name: of the file.
        text: what it holds.
        after: how many of the parcel's further messages come before it; the others are in it.
        otherwise: the message that is posted if files cannot be.
    """

    name: str
    text: str
    after: int
    otherwise: Message

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON-able values."""
        return {
            "name": self.name,
            "text": self.text,
            "after": self.after,
            "otherwise": dict(self.otherwise),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attached:
        """Return the file that `to_json` wrote."""
        return cls(data["name"], data["text"], data["after"], data["otherwise"])


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message and how to bring it.

    Attributes:
        message: what is sent.
        more: messages that go under it, in its thread, once it is there.
        file: goes there too, instead of some of them.
        placeholder: what is posted first if this has to be posted rather than edited in: a post
            whose outcome is lost can come twice, an edit cannot.
        user: who alone sees it, for an ephemeral one.
        response_url: where it goes if the bot is not in the channel; never shown.
    """

    message: Message
    more: Sequence[Message] = ()
    file: Attached | None = None
    placeholder: Message | None = None
    user: str = ""
    response_url: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the parcel as JSON-able values."""
        return {
            "message": dict(self.message),
            "more": [dict(message) for message in self.more],
            "file": None if self.file is None else self.file.to_json(),
            "placeholder": None if self.placeholder is None else dict(self.placeholder),
            "user": self.user,
            "response_url": self.response_url,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Parcel:
        """Return the parcel that `to_json` wrote."""
        return cls(
            message=data["message"],
            more=tuple(data.get("more") or ()),
            file=Attached.from_json(data["file"]) if data.get("file") else None,
            placeholder=data.get("placeholder"),
            user=data.get("user") or "",
            response_url=data.get("response_url"),
        )
