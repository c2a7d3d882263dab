"""The port by which messages leave: what a chat service can do, and how it can fail.

MessengerError
├── LimitedError    told to wait; nothing was sent
├── AwayError       no usable answer; it may have been sent all the same (``uncertain``)
└── RejectedError   refused for good; ``code`` is the service's word for why
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from engine.errors import GpuwhyError

# ``text``, and ``blocks`` if there are any, as the chat service takes them.
Message: TypeAlias = Mapping[str, Any]


class MessengerError(GpuwhyError):
    """A message was not sent, or may not have been."""

    exit_status = 3
    default_code = "slack"


class LimitedError(MessengerError):
    """The service asks to wait ``after_s`` seconds."""

    default_code = "slack_rate_limited"

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        super().__init__(f"Slack asks to wait {after_s:g} s")


class AwayError(MessengerError):
    """The service does not answer, or not sensibly.

    Attributes:
        uncertain: the message may have arrived.
    """

    default_code = "slack_unreachable"

    def __init__(
        self, message: str, *, uncertain: bool, hint: str = "", code: str | None = None
    ) -> None:
        self.uncertain = uncertain
        super().__init__(message, hint=hint, code=code)


class RejectedError(MessengerError):
    """The service refuses the message; trying again changes nothing."""

    default_code = "slack_rejected"

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refuses: {code}", code=code)


class Messenger(Protocol):
    """Sends messages. Every method ends within a time-out and raises `MessengerError`."""

    async def post(self, channel: str, message: Message, *, thread: str | None, mark: str) -> str:
        """Post a message and return its id (Slack ``ts``); ``mark`` is hidden in it for `find`."""
        ...

    async def update(self, channel: str, ts: str, message: Message) -> None:
        """Replace a message's content."""
        ...

    async def ephemeral(
        self, channel: str, user: str, message: Message, *, thread: str | None
    ) -> None:
        """Show a message to one user alone."""
        ...

    async def respond(self, url: str, message: Message, *, replace: bool) -> None:
        """Answer a slash command by its response URL; ``replace``: instead of the one before."""
        ...

    async def find(
        self, channel: str, mark: str, *, thread: str | None, since: float
    ) -> str | None:
        """Return the id of the message posted with a mark after a moment, or None.

        None also if the history may not be read: then nobody can tell.
        """
        ...

    async def attach(
        self, channel: str, thread: str | None, *, name: str, text: str, comment: str
    ) -> None:
        """Attach a text file to a thread, with a line that says what it is.

        Raises `RejectedError` with ``missing_scope`` if the service does not let us.
        """
        ...

    async def ping(self) -> None:
        """Make sure that the service lets us in."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
