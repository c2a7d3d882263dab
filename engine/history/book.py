"""The port by which a watch keeps its state, and the one that keeps it in memory.

Several processes may share a book: a claim lets one of them look at a time, and only once an
interval. What a look leads to is recorded as one step, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.history.tracked import Event, Failure, Tracked


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to look now.

    Attributes:
        watch: what is watched.
        holder: who may look; no other claim has or had this name.
        due_at: when the look was due (Unix s).
        known: the incidents as the look before left them.
        failure: set while looks fail.
    """

    watch: str
    holder: str
    due_at: float
    known: tuple[Tracked, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What a look leads to.

    Attributes:
        known: the incidents from now on.
        events: what is to be told.
        due_at: when the next look is due (Unix s).
        failure: set if the look failed.
    """

    known: tuple[Tracked, ...]
    events: tuple[Event, ...]
    due_at: float
    failure: Failure | None = None


class Book(Protocol):
    """Keeps the state of watches. Every method ends within a time-out."""

    async def claim(
        self, watch: str, holder: str, *, every_s: float, lease_s: float, now: float
    ) -> Claim | None:
        """Take the right to look, unless nothing is due or somebody else has it.

        Args:
            watch: what is watched.
            holder: a name that no other claim has or had.
            every_s: the interval (s): a look that is due later than that was due by another one.
            lease_s: for how long others stay away (s); see `renew`.
            now: Unix s.
        """
        ...

    async def renew(self, claim: Claim, *, lease_s: float, now: float) -> bool:
        """Keep the right for longer; False: somebody else has it, stop."""
        ...

    async def record(self, claim: Claim, record: Record, *, now: float) -> bool:
        """Keep what a look leads to and give the right back; False: somebody else has it."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the right back without a look."""
        ...

    async def known(self, watch: str) -> tuple[Tracked, ...]:
        """Return the incidents as they are now."""
        ...


class MemoryBook:
    """A book for one process that needs no state after its end."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Tracked, ...]] = {}
        self._due: dict[str, float] = {}
        self._failures: dict[str, Failure | None] = {}

    async def claim(
        self, watch: str, holder: str, *, every_s: float, lease_s: float, now: float
    ) -> Claim | None:
        """See `Book.claim`; there is nobody else."""
        del lease_s
        due = self._due.get(watch, now)
        if now < due <= now + every_s:
            return None
        return Claim(watch, holder, due, self._known.get(watch, ()), self._failures.get(watch))

    async def renew(self, claim: Claim, *, lease_s: float, now: float) -> bool:
        """See `Book.renew`."""
        del claim, lease_s, now
        return True

    async def record(self, claim: Claim, record: Record, *, now: float) -> bool:
        """See `Book.record`."""
        del now
        self._known[claim.watch] = record.known
        self._due[claim.watch] = record.due_at
        self._failures[claim.watch] = record.failure
        return True

    async def release(self, claim: Claim) -> None:
        """See `Book.release`."""

    async def known(self, watch: str) -> tuple[Tracked, ...]:
        """See `Book.known`."""
        return self._known.get(watch, ())
