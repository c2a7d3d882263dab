"""The port every log source implements: events of a window, no opinion about what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One Xid in a kernel log.

    Attributes:
        time: Unix seconds.
        xid: the code; 79 for a GPU lost without one.
        host: the machine as the log names it, None if it does not.
        pci: domain:bus:device in lower case, as the driver prints it.
        uuid: the board, where the driver named it beside the address.
        where: what the source is called, and how to see the line again.
    """

    time: float
    xid: int
    host: str | None = None
    pci: str | None = None
    uuid: str | None = None
    where: str = ""

    @property
    def order(self) -> tuple[float, int, str, str, str, str]:
        """Sort key: time first."""
        named = (self.host or "", self.pci or "", self.uuid or "", self.where)
        return (self.time, self.xid, *named)


@dataclass(frozen=True, slots=True)
class Unread:
    """A log, or a part of one, that could not be read: what it holds is not known.

    Attributes:
        what: the source and the place, without secrets.
        why: what happened.
        fix: what to do about it.
    """

    what: str
    why: str
    fix: str = ""

    def one_line(self) -> str:
        """Say it as a warning."""
        return f"logs could not be read: {self.what}: {self.why}"


@runtime_checkable
class LogSource(Protocol):
    """Where events come from.

    Attributes:
        name: what messages call it; holds no secrets.
        timeout_s: after this long the caller goes on without it.
        needs_hosts: True if it can only be asked about hosts by name.
        queries: HTTP requests sent so far.
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long a question waits for it (s)."""
        ...

    @property
    def needs_hosts(self) -> bool:
        """Whether it must be told the hosts."""
        ...

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        ...

    async def events(self, hosts: Sequence[str] | None, start: float, end: float) -> list[LogEvent]:
        """Return the events of the closed window ``[start, end]`` (Unix s), in order of time.

        Args:
            hosts: machines asked about, None for all; what else the source holds may come too.
            start: of the window (Unix s).
            end: of the window (Unix s).

        Raises:
            SourceError: nothing could be fetched. If only some of it failed, that is told by
                `take_unread`.
            InputError: a file cannot be read.
        """
        ...

    def take_unread(self) -> list[Unread]:
        """Return what could not be read and nobody has been told of yet, and forget it."""
        ...

    def take_warnings(self) -> list[str]:
        """Return the warnings that nobody has taken yet, and forget them."""
        ...

    async def aclose(self) -> None:
        """Release what is held. Safe to call twice."""
        ...
