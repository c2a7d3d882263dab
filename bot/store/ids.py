"""Ids that sort by the time they were made: UUID version 7 (RFC 9562, section 5.7)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from uuid import UUID

_COUNTER_BITS = 12
_RANDOM_BITS = 62


class IdMaker:
    """Makes ids of which each sorts after the one before, even when the clock steps back.

    48 bits of Unix milliseconds, a 12-bit counter within the millisecond (method 1 of RFC 9562,
    section 6.2), and 62 random bits, so that an id cannot be guessed from its neighbours.

    Args:
        random_bits: returns that many random bits; replaced in tests.
    """

    def __init__(self, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._random_bits = random_bits
        self._last = 0

    def __call__(self, now: float) -> str:
        """Return a new id for a moment (Unix seconds)."""
        ticks = int(now * 1000) << _COUNTER_BITS
        self._last = max(ticks, self._last + 1)
        milliseconds, counter = divmod(self._last, 1 << _COUNTER_BITS)
        high = (milliseconds << 16) | (0x7 << 12) | counter
        low = (0b10 << _RANDOM_BITS) | self._random_bits(_RANDOM_BITS)
        return str(UUID(int=(high << 64) | low))
