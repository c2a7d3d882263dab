"""What a source that stands before another one hands on unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from engine.samples import Batch, Matcher, Selection
from engine.sources.port import Source


class Forwarding:
    """A source that hands everything on to another (see `engine.sources.port.Source`).

    Those built on it change `select`. Closing it closes what it stands before.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self._source.name

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        return self._source.queries

    @property
    def rereads(self) -> bool:
        """Whether a call costs the same whatever it asks for."""
        return self._source.rereads

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Fetch one wave."""
        return await self._source.select(selections, at=at)

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """List combinations of labels."""
        return await self._source.label_sets(
            names, labels, at=at, window_s=window_s, matchers=matchers
        )

    def take_warnings(self) -> list[str]:
        """Return the warnings that no answer has carried yet, and forget them."""
        return self._source.take_warnings()

    async def aclose(self) -> None:
        """Release what the source holds."""
        await self._source.aclose()
