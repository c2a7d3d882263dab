"""A source in memory: series given as numbers, selected and clipped as a server would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.samples import Batch, Matcher, RawSeries, Selection
from engine.sources.matching import distinct, pick, series_key


class MemorySource:
    """Answers from a list of series, as a server: ``asked`` records every wave of selections."""

    name = "memory"
    rereads = False

    def __init__(self, series: Iterable[RawSeries], *, now: float | None = None) -> None:
        """Hold series; ``now`` (Unix s) is what ``at=None`` means, else the newest sample."""
        self._series = list(series)
        newest = max((float(s.ts[-1]) for s in self._series if s.ts.size), default=0.0)
        self._now = newest if now is None else now
        self.queries = 0
        self.asked: list[tuple[Selection, ...]] = []

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Answer one wave (see `engine.sources.port.Source`)."""
        self.asked.append(tuple(selections))
        self.queries += len(selections)
        moment = self._now if at is None else at
        found = pick(self._series, selections, moment)
        found.sort(key=lambda s: series_key(s.name, s.labels))
        return Batch(found, moment, len(selections))

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """List label combinations (see `engine.sources.port.Source`)."""
        self.queries += 1
        moment = self._now if at is None else at
        found = pick(self._series, [Selection(tuple(names), tuple(matchers), window_s)], moment)
        return distinct(((s.name, s.labels) for s in found), labels)

    def take_warnings(self) -> list[str]:
        """Nothing is held back."""
        return []

    async def aclose(self) -> None:
        """Nothing to release."""
