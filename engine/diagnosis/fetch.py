"""Fetch: from a target to the readings of its GPUs, in at most three waves of requests.

Wave 1 asks for the target under the labels that dcgm-exporter gives it; the other GPUs of the node
come along with the few signals that are compared between siblings, the node with its own readings.
Wave 2 runs only when it must: the rarer labels of a host, siblings of a UUID or pod, the last day
of a GPU that fell silent, a look at what the source holds. Wave 3 asks about what wave 2 brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.collector import held_off
from engine.diagnosis.finding import Finding
from engine.diagnosis.logged import add_logged
from engine.samples import Batch, RawSeries, Selection
from engine.signals.labels import Place
from engine.signals.normalise import Readings, build_frame
from engine.sources.logs.port import LogEvent, Unread
from engine.sources.port import Source
from engine.topology import Target


@dataclass(slots=True)
class Fetched:
    """What came back so far: series, events of logs, counts for the answer, the moment judged.

    ``unread`` are the logs that could not be read.
    """

    batch: Batch
    at: float | None
    window_s: float
    waves: int = 0
    warnings: list[str] = field(default_factory=list)
    events: list[LogEvent] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    @property
    def log_end(self) -> float | None:
        """Where the window of a kernel log ends (Unix s): at the moment judged.

        Readings without times have none: then it ends when the source was written to.
        """
        return self.batch.written if self.at is None else self.at


class Fetcher(Finding):
    """Sends the selections of a question, and keeps what comes."""

    async def ask(self, source: Source, got: Fetched, selections: Sequence[Selection]) -> Batch:
        """Send one wave and add what came to what is there."""
        batch = await source.select(selections, at=got.at)
        got.waves += 1
        got.batch.queries += batch.queries
        if got.batch.series:
            got.batch.series = _longest(got.batch.series, batch.series)
        else:
            got.batch.series = batch.series
        got.warnings += [w for w in batch.warnings if w not in got.warnings]
        got.batch.written = got.batch.written or batch.written
        if got.at is None:
            got.at = got.batch.at = batch.at
        return batch

    async def ask_own(
        self,
        source: Source,
        got: Fetched,
        hosts: Sequence[str],
        names: tuple[str, ...],
        window_s: float,
        also: Sequence[Selection] = (),
    ) -> None:
        """Ask for some metrics that hosts say of themselves, wherever they are scraped.

        Args:
            source: where readings come from.
            got: what is there; what comes is added.
            hosts: as the series of GPUs name them.
            names: the metrics.
            window_s: how far back (s).
            also: what is asked for in the same wave.
        """
        first = [*self.hosts_own(hosts, window_s, names), *self.who_is(hosts, window_s), *also]
        batch = await self.ask(source, got, first)
        if far := self.addressed(batch.series, hosts, names):
            await self.ask(source, got, far)

    def start(self, at: float | None, window_s: float) -> Fetched:
        """Begin a question; the window is at least what the rules look back."""
        return Fetched(Batch([], at, 0), at, max(window_s, self.window_s))

    def frame(self, got: Fetched) -> Readings:
        """Normalise everything that came so far."""
        readings = build_frame(got.batch, self.catalogue, at=got.at, window_s=got.window_s)
        if got.events:
            add_logged(readings.frame, got.events, got.log_end)
        return readings


@held_off()
def _longest(before: Sequence[RawSeries], new: Sequence[RawSeries]) -> list[RawSeries]:
    """Return every series once, as the wave brought it that looked back furthest."""
    # Waves mostly ask for different metrics; only what both brought has to be compared.
    shared = {one.name for one in before} & {one.name for one in new}
    out: list[RawSeries] = []
    places: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    for one in (*before, *new):
        place = len(out)
        if one.name in shared:
            place = places.setdefault((one.name, frozenset(one.labels.items())), place)
        if place == len(out):
            out.append(one)
        elif one.ts.size > out[place].ts.size:
            out[place] = one
    return out


def matches(target: Target, places: Place) -> bool:
    """Return whether a series' place is the target, as far as the target says."""
    return (
        (target.host is None or target.host == places.host)
        and (not target.hosts or places.host in target.hosts)
        and (target.gpu is None or target.gpu == places.gpu)
        and (target.uuid is None or (places.uuid or "").lower().startswith(target.uuid.lower()))
        and (target.cluster is None or target.cluster == places.cluster)
        and (target.job is None or target.job == places.job)
        and (
            target.pod is None
            or (places.workload is not None and places.workload == (target.namespace, target.pod))
        )
    )
