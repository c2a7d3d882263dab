"""Exporters read directly: for one box without a metrics server.

Every exporter is fetched a few times, and the samples are kept in memory as a metrics server would
have stored them: stamped with the time of the scrape, with an ``instance`` label and ``up`` series.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import numpy as np
from yarl import URL

from engine.errors import SourceError, UsageError
from engine.samples import Batch, Matcher, RawSeries, Selection
from engine.sources.httpoptions import HttpOptions, parse_url, shown_url
from engine.sources.matching import Wanted, distinct, pick, series_key
from engine.sources.table import Samples, SeriesIndex
from engine.sources.text import looks_like_html, not_told, show, start_of
from engine.sources.textreader import TextReader
from engine.sources.web import WebClient
from engine.sources.weberrors import bad_status

# Three scrapes give a rate two steps, so that one odd step shows; ten seconds are bearable at a
# prompt. A dcgm-exporter reads its GPUs anew only every 30 s unless told otherwise (-c): where
# nothing new came between scrapes, a warning says so.
TIMES = 3
INTERVAL_S = 5.0
TIMEOUT_S = 5.0

_ACCEPT = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"


class _Exporter:
    """One address and what came from it."""

    def __init__(self, url: URL, samples: Samples) -> None:
        self.url = url
        self.shown = shown_url(url)
        self.instance = f"{url.host}:{url.port}"
        self.reader = TextReader(samples, defaults={"instance": self.instance})
        self.stamps: list[float] = []
        self.up: list[float] = []
        self.error: SourceError | None = None
        self.changed = False
        self._last: bytes | None = None

    def take(self, body: bytes, stamp: float, redact: Callable[[str], str]) -> None:
        """Read one answer.

        Args:
            body: the text.
            stamp: when it came (Unix s).
            redact: takes secrets out of what is repeated of it.

        Raises:
            SourceError: it holds no metrics.
        """
        if looks_like_html(body):
            raise _no_metrics(f"{self.shown} answers with a web page, not metrics")
        before = self.reader.samples
        self.reader.stamp = stamp
        self.reader.read([body])
        if self.reader.samples == before:
            if other := not_told(body):
                raise _no_metrics(f"{self.shown} answers with {other} instead of metrics")
            said = show(redact(start_of(body)), 60) or "-"
            raise _no_metrics(f"{self.shown} does not answer with metrics: {said}")
        self.changed = self.changed or self._last not in {None, body}
        self._last = body

    def mark(self, stamp: float, error: SourceError | None) -> None:
        """Note how a scrape went."""
        self.stamps.append(stamp)
        self.up.append(0.0 if error else 1.0)
        self.error = error or self.error

    def warnings(self) -> list[str]:
        """Return what the person asking should know about this exporter."""
        told = []
        failed = self.up.count(0.0)
        if self.error is not None:
            told.append(f"{failed} of {len(self.up)} scrapes failed: {self.error.one_line()}")
        bad = self.reader.skipped
        if bad.count:
            lines = "1 line" if bad.count == 1 else f"{bad.count} lines"
            told.append(f"{self.shown}:{bad.line}: {bad.reason}; {lines} skipped, the rest is used")
        if len(self.up) - failed > 1 and not self.changed:
            told.append(
                f"{self.shown} gave the same readings every time: it refreshes more slowly than it "
                "was scraped, so rates over this time say nothing"
            )
        return told


class ScrapeSource:
    """Readings fetched from exporters, then answered from memory."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        options: HttpOptions | None = None,
        times: int = TIMES,
        interval_s: float = INTERVAL_S,
        on_progress: Callable[[int, int], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Name the exporters; the first question fetches them.

        Args:
            urls: addresses; ``/metrics`` is added where there is no path.
            options: credentials, TLS and time-out, the same for all (time-out 5 s by default).
            times: how often each is fetched.
            interval_s: time from the start of one round to the start of the next (s).
            on_progress: called with rounds done and rounds in all.
            clock: Unix seconds; stamps the samples.

        Raises:
            UsageError: an address is malformed or holds a user name, or there is none.
        """
        if not urls:
            raise UsageError("no exporter address is given")
        if times < 1 or not interval_s >= 0:
            raise UsageError("scrape at least once, with an interval of 0 s or more")
        self._times = times
        self._interval_s = interval_s
        self._on_progress = on_progress
        self._clock = clock
        everything = Wanted([Selection((), (), float("inf"))])
        self._samples = Samples(SeriesIndex(everything), None)
        self._web = WebClient(options or HttpOptions(timeout_s=TIMEOUT_S))
        self._exporters = [_Exporter(url, self._samples) for url in _addresses(urls)]
        self._stop = asyncio.Event()
        self._lock = asyncio.Lock()
        self._series: list[RawSeries] | None = None
        self._at = 0.0
        self._pending: list[str] = []

    @property
    def name(self) -> str:
        """The exporters' addresses."""
        more = len(self._exporters) - 1
        first = self._exporters[0].shown
        return f"{first} and {more} more" if more else first

    @property
    def rereads(self) -> bool:
        """A call costs what it asks for."""
        return False

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        return self._web.sent

    def stop(self) -> None:
        """Be content with the rounds done so far, and at least one."""
        self._stop.set()

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Answer from the samples fetched; see `engine.sources.port.Source`."""
        before = self._web.sent
        series = await self._collect()
        moment = self._at if at is None else at
        warnings = self.take_warnings()
        picked = pick(series, selections, moment)
        return Batch(picked, moment, self._web.sent - before, warnings)

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """Answer from the samples fetched; see `engine.sources.port.Source`."""
        series = await self._collect()
        selection = Selection(tuple(names), tuple(matchers), window_s)
        found = pick(series, [selection], self._at if at is None else at)
        return distinct(((one.name, one.labels) for one in found), labels)

    def take_warnings(self) -> list[str]:
        """Return the warnings that no answer has carried yet, and forget them."""
        taken, self._pending = self._pending, []
        return taken

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()

    async def _collect(self) -> list[RawSeries]:
        """Fetch all exporters, once for all questions."""
        async with self._lock:
            if self._series is None:
                await self._scrape()
                self._series = self._finish()
            return self._series

    async def _scrape(self) -> None:
        loop = asyncio.get_running_loop()
        for done in range(1, self._times + 1):
            due = loop.time() + self._interval_s
            stamp = round(self._clock(), 3)
            await asyncio.gather(*(self._fetch(one, stamp) for one in self._exporters))
            if not any(any(one.up) for one in self._exporters):
                self._give_up()
            self._at = stamp
            if self._on_progress is not None:
                self._on_progress(done, self._times)
            if done == self._times or self._stop.is_set():
                return
            try:
                async with asyncio.timeout_at(due):
                    await self._stop.wait()
            except TimeoutError:
                continue
            return

    async def _fetch(self, one: _Exporter, stamp: float) -> None:
        error = None
        try:
            reply = await self._web.request("GET", one.url, accept=_ACCEPT)
            if not 200 <= reply.status < 300:
                said = show(self._web.redact(start_of(reply.body)))
                hint = "exporters usually serve /metrics"
                raise bad_status(one.shown, reply.status, said, not_found_hint=hint)
            one.take(reply.body, stamp, self._web.redact)
        except SourceError as e:
            error = e
        one.mark(stamp, error)

    def _give_up(self) -> None:
        error = self._exporters[0].error
        assert error is not None  # no scrape succeeded
        more = len(self._exporters) - 1
        message = f"{error.message} (and {more} more fail)" if more else error.message
        raise SourceError(message, hint=error.hint, code=error.code)

    def _finish(self) -> list[RawSeries]:
        series, left = self._samples.series()
        if left.repeated:
            self._pending.append(
                f"{self.name}: {left.repeated} series came twice in one scrape (first: "
                f"{left.examples['repeated']}); the last one counts"
            )
        for one in self._exporters:
            self._pending += one.warnings()
            labels = {"instance": one.instance}
            series.append(RawSeries("up", labels, np.array(one.stamps), np.array(one.up)))
        return sorted(series, key=lambda s: series_key(s.name, s.labels))


def _addresses(urls: Sequence[str]) -> list[URL]:
    addresses = []
    for text in urls:
        url, user, _ = parse_url(text, "/metrics")
        if user is not None:
            raise UsageError(
                f"the address {shown_url(url)} holds a user name",
                hint="give user name and password as options",
            )
        addresses.append(url)
    return list(dict.fromkeys(addresses))


def _no_metrics(message: str) -> SourceError:
    return SourceError(
        message, hint="check the address; the path is usually /metrics", code="source_bad_answer"
    )
