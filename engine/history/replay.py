"""Going over a span moment by moment: reading it, judging it, keeping what could not be read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

from engine.catalogue.types import Catalogue
from engine.diagnosis.engine import DEFAULT_WINDOW_S
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.errors import SourceError, UsageError
from engine.history.episodes import Episodes
from engine.history.panel import Panel, Tally, readings_at
from engine.history.replaymodel import Gap, Load, RuleHistory, Version
from engine.history.tape import Piece, Tape, pieces
from engine.history.versions import same_readings
from engine.samples import Matcher, RawSeries, Selection
from engine.sources.port import Source
from engine.sources.selector import POST_LIMIT, selectors
from engine.units import duration

Progress = Callable[[int, int], None]

# Six million samples of 15 minutes at 15 s: some 200 MB with what is made of them.
MOST_SERIES = 100_000
_A_DAY = 1440


class Run:
    """One version while it is replayed."""

    def __init__(self, catalogue: Catalogue, names: Sequence[str], step_s: float) -> None:
        self.panel = Panel(catalogue, names)
        self.episodes = Episodes(step_s)
        self.samples = 0
        self.series = 0

    def version(self, moments: int, requests: int) -> Version:
        """Return what came out."""
        catalogue, episodes = self.panel.catalogue, self.episodes
        episodes.finish()
        rules = []
        for name, tally in sorted(self.panel.tallies.items()):
            kind = "cause" if name in catalogue.causes else "symptom"
            rules.append(self._history(name, kind, tally))
        a_sweep = self.samples / moments if moments else 0.0
        load = Load(requests, requests * _A_DAY, self.series, round(a_sweep * _A_DAY))
        firings = tuple(episodes.firings)
        return Version(catalogue.hash, tuple(rules), firings, episodes.left_out, load)

    def _history(self, name: str, kind: str, tally: Tally) -> RuleHistory:
        catalogue, total = self.panel.catalogue, self.episodes.totals.get(name)
        rule = catalogue.causes[name] if kind == "cause" else catalogue.symptoms[name]
        return RuleHistory(
            rule=f"{name}@{rule.version}",
            kind=kind,
            title=rule.title,
            firings=total.firings if total else 0,
            entities=len(self.episodes.entities.get(name, ())),
            lasted_s=total.lasted_s if total else 0.0,
            longest_s=total.longest_s if total else 0.0,
            looks=tally.looks,
            unknown=tally.unknown,
        )


def spellings(catalogue: Catalogue, signals: Sequence[str]) -> tuple[str, ...]:
    """Return all metric names of some signals."""
    known = [catalogue.signals[s] for s in sorted(signals) if s in catalogue.signals]
    return tuple(dict.fromkeys(sp.name for signal in known for sp in signal.spellings))


class Replay:
    """Reads the span and judges its moments."""

    def __init__(
        self,
        source: Source,
        runs: Sequence[Run],
        where: tuple[Matcher, ...],
        start: float,
        end: float,
        step_s: float,
    ) -> None:
        self._source = source
        self._runs = runs
        self._where = where
        self.start = start
        self._end = end
        self._step_s = step_s
        catalogues = [run.panel.catalogue for run in runs]
        self._alone = all(same_readings(catalogues[0], c) for c in catalogues[1:])
        life = [spellings(c, ("gpu_temp",)) for c in catalogues]
        self._life = tuple(dict.fromkeys(name for names in life for name in names))
        read = [spellings(run.panel.catalogue, tuple(run.panel.signals)) for run in runs]
        wanted = dict.fromkeys(name for names in read for name in names)
        self._up = "up" in wanted
        self._metrics = tuple(name for name in wanted if name != "up")
        window_s = max(DEFAULT_WINDOW_S, *(run.panel.window_s for run in runs))
        self._tape = Tape(window_s, self._life, LOOKBACK_LOST_S)
        self._total = round((end - start) / step_s)
        self._next = 0
        self.judged = 0
        self.read = 0
        self.gaps: list[Gap] = []
        self.warnings: list[str] = []
        self.queries = 0

    @property
    def readings(self) -> tuple[float | None, float | None]:
        """The oldest and the newest reading that the span had (Unix s)."""
        return self._tape.first, self._tape.last

    @property
    def requests(self) -> int:
        """How many requests one look at all of it takes."""
        parts = len(list(selectors(self._metrics, self._where, POST_LIMIT)))
        return parts + int(self._up)

    async def run(self, on_progress: Progress | None) -> None:
        """Read the span and judge every moment of it."""
        before = self._source.queries
        await self._what_was_there()
        begin = self.start - self._tape.window_s
        async for piece in pieces(
            self._source, self._selections, begin, self._end, least_s=max(self._step_s, 60.0)
        ):
            if piece.batch is None:
                self._skip(piece)
            else:
                self._note(piece)
                self._tape.add(piece.batch.series)
                self._bounded()
                await asyncio.to_thread(self._judge, piece.end, on_progress)
                self._tape.forget(self._moment(self._next))
        self.queries = self._source.queries - before
        self.warnings += self._source.take_warnings()
        first = self._tape.first
        if first is None:
            self.warnings.append(f"{self._source.name} has no readings of these rules in the span")
        elif first > self.start + self._step_s:
            late = duration(first - self.start)
            self.warnings.append(f"readings begin {late} after the start of the span")

    def _moment(self, k: int) -> float:
        return self.start + (k + 1) * self._step_s

    def _selections(self, span_s: float) -> list[Selection]:
        out = [Selection(self._metrics, self._where, span_s)]
        addresses = self._tape.instances
        if self._up and addresses:  # not all that a server scrapes is an exporter of GPUs
            pattern = "|".join(re.escape(a) for a in addresses)
            if len(pattern) < POST_LIMIT // 2:
                return [*out, Selection(("up",), (Matcher("instance", "=~", pattern),), span_s)]
        return [*out, Selection(("up",), (), span_s)] if self._up and self._where == () else out

    async def _what_was_there(self) -> None:
        """Learn which GPUs reported in the day before, as a sweep does."""
        selection = Selection(self._life, self._where, LOOKBACK_LOST_S)
        try:
            batch = await self._source.select([selection], at=self.start)
        except SourceError as error:
            gap = Gap(self.start - LOOKBACK_LOST_S, self.start, "GPUs gone by then", error.message)
            self.gaps.append(gap)
            return
        self._tape.add(batch.series)
        self._bounded()
        self._tape.forget(self.start)
        self._tape.first = self._tape.last = None
        self.warnings += batch.warnings

    def _bounded(self) -> None:
        if len(self._tape) > MOST_SERIES:
            raise UsageError(
                f"{len(self._tape)} series are more than fit at once ({MOST_SERIES})",
                hint='name fewer rules, or some hosts: --where Hostname=~"node-1.*"',
            )

    def _note(self, piece: Piece) -> None:
        """Keep what the source said of a piece, and which metrics of it failed."""
        assert piece.batch is not None
        self.warnings += [w for w in piece.batch.warnings if w not in self.warnings]
        failed = sorted(piece.batch.failed)
        if failed and piece.error is not None:
            more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
            what = ", ".join(failed[:3]) + more
            self._gap(Gap(piece.start, piece.end, what, piece.error.message))

    def _gap(self, gap: Gap) -> None:
        last = self.gaps[-1] if self.gaps else None
        if last and (last.end, last.what, last.why) == (gap.start, gap.what, gap.why):
            self.gaps[-1] = Gap(last.start, gap.end, gap.what, gap.why)
        else:
            self.gaps.append(gap)

    def _skip(self, piece: Piece) -> None:
        """Pass over the moments of a piece that could not be read."""
        assert piece.error is not None
        self._gap(Gap(piece.start, piece.end, "all readings", piece.error.message))
        while self._next < self._total and self._moment(self._next) <= piece.end:
            self._next += 1
        for run in self._runs:
            run.episodes.unread()

    def _judge(self, until: float, on_progress: Progress | None) -> None:
        """Judge the moments up to one (Unix s)."""
        while self._next < self._total and self._moment(self._next) <= until + 1e-6:
            at = self._moment(self._next)
            series = self._tape.at(at)
            readings = None
            for run in self._runs:
                if readings is None or not self._alone:
                    catalogue = run.panel.catalogue
                    readings = readings_at(series, catalogue, at, self._tape.window_s)
                look = run.panel.look(readings)
                run.episodes.look(at, look.fired, look.why_not)
                run.samples += sum(one.ts.size for one in series)
                run.series = max(run.series, len(series))
            self._next += 1
            self.judged += 1
            self.read += self._any(series, at)
            if on_progress is not None:
                on_progress(self._next, self._total)

    def _any(self, series: Sequence[RawSeries], at: float) -> bool:
        """Return whether something was read in the window of a moment, not only heard of before."""
        begin = at - self._tape.window_s
        return any(one.name != "up" and one.ts[-1] >= begin for one in series)
