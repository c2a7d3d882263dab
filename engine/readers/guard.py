"""A reader that fails on an input does not take the others' answers with it."""

from __future__ import annotations

import logging
from typing import Final, cast

from engine.readers.base import Reader, Result, Skimmer

_LOG: Final = logging.getLogger(__name__)


class Guard:
    """Calls readers, and leaves out one that fails.

    Attributes:
        strict: whether what a reader raises is raised on; tests set it, so that nothing hides.
    """

    strict: bool = False

    def __init__(self) -> None:
        self._failed: dict[int, str] = {}

    def feed(self, reader: Reader, number: int, text: str) -> bool:
        """Give a reader a line; return whether it took it."""
        if id(reader) in self._failed:
            return False
        try:
            return reader.feed(number, text)
        except Exception:  # noqa: BLE001 - one reader's fault is not that of the answer
            self._fail(reader)
            return False

    def skim(self, reader: Skimmer, number: int, block: bytes) -> int:
        """Give a reader a block; return how many lines it knows."""
        if id(reader) in self._failed:
            return 0
        try:
            return reader.skim(number, block)
        except Exception:  # noqa: BLE001 - one reader's fault is not that of the answer
            self._fail(reader)
            return 0

    def finish(self, reader: Reader) -> Result:
        """Return what a reader found, nothing if it failed."""
        if id(reader) in self._failed:
            return Result()
        try:
            return reader.finish()
        except Exception:  # noqa: BLE001 - one reader's fault is not that of the answer
            self._fail(reader)
            return Result()

    @property
    def notes(self) -> list[str]:
        """What the answer lacks."""
        names = sorted(set(self._failed.values()))
        return [
            f"{name} failed on this input and was left out, the rest holds: please report it."
            for name in names
        ]

    def _fail(self, reader: Reader | Skimmer) -> None:
        """Leave a reader out from now on.

        Raises:
            Exception: the one that is being handled, where `strict` is set.
        """
        if self.strict:
            raise  # noqa: PLE0704 - called where an exception is handled
        name = type(reader).__name__
        _LOG.exception("%s failed", name)
        cast("Reader", reader).open = False
        self._failed[id(reader)] = name
