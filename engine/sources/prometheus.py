"""Prometheus and every server with its HTTP API: Thanos, Mimir, VictoriaMetrics.

One instant query of a raw range selector brings all samples of many metrics in one round trip.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from yarl import URL

from engine.collector import held_off
from engine.errors import SourceError, UsageError
from engine.samples import Batch, Matcher, RawSeries, Selection
from engine.sources.httpoptions import HttpOptions, parse_url, shown_url
from engine.sources.matching import clip, distinct, series_key
from engine.sources.port import Element, Evaluated
from engine.sources.promjson import (
    Answer,
    error_text,
    parse_answer,
    to_label_sets,
    to_series,
    to_vector,
)
from engine.sources.selector import GET_LIMIT, POST_LIMIT, selectors, window_ms
from engine.sources.text import some
from engine.sources.web import WebClient
from engine.sources.weberrors import bad_status

# The Date header has whole seconds, and an answer may take a while: below this, clocks agree (s).
_SKEW_S = 30.0
# Heavy queries sent at the same time: a server evaluates each on one core, and has others to serve.
_AT_ONCE = 2

T = TypeVar("T")


@dataclass(frozen=True)
class PrometheusConfig(HttpOptions):
    """Where a server is and how to reach it; see `HttpOptions` for the rest.

    Attributes:
        url: base address, with the path prefix if there is one: ``https://mimir/prometheus``. User
            information in it becomes user name and password; ``/api/v1`` at its end is dropped.
    """

    url: str

    def __post_init__(self) -> None:
        """Take the address apart."""
        url, user, password = parse_url(self.url)
        path = url.path.partition("/api/v1")[0].removesuffix("/graph")
        object.__setattr__(self, "url", shown_url(url.with_path(path)))
        if user is not None and self.username is None:
            object.__setattr__(self, "username", user)
            object.__setattr__(self, "password", password)
        super().__post_init__()


# What a server, or this client, refuses for its size: the same asked in two parts may go.
_TOO_LARGE = frozenset({"source_limit", "source_too_large"})


@dataclass(frozen=True, slots=True)
class _Query:
    """One request: the metric names it stands for, and its part of the wave."""

    names: tuple[str, ...]
    selector: str
    window_s: float
    matchers: tuple[Matcher, ...] = ()


class PrometheusSource:
    """Readings from a metrics server."""

    def __init__(self, config: PrometheusConfig, *, clock: Callable[[], float] = time.time) -> None:
        """Nothing is connected yet.

        Args:
            config: where and how.
            clock: Unix seconds; what "now" means until the server's clock is known to differ.
        """
        self._config = config
        self._clock = clock
        self._web = WebClient(config)
        self._endpoint = URL(config.url) / "api/v1/query"
        self._method = "POST"
        self._skew = 0.0
        self._told: set[str] = set()
        self._pending: list[str] = []

    @property
    def name(self) -> str:
        """The server's address, without credentials."""
        return self._config.url

    @property
    def rereads(self) -> bool:
        """A call costs what it asks for."""
        return False

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        return self._web.sent

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Send all selections at once; see `engine.sources.port.Source`."""
        before = self._web.sent

        async def fetch(query: _Query, moment: float) -> list[RawSeries]:
            end, span = window_ms(moment, query.window_s)
            body = await self._ask(f"{query.selector}[{span}ms]", end)
            return self._series(body, moment - query.window_s, moment)

        moment, parts, failed = await self._wave(selections, at, fetch)
        series = _merge(parts)
        warnings = self.take_warnings()
        return Batch(series, moment, self._web.sent - before, warnings, failed=failed)

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """Let the server group, so that the answer is small; see `engine.sources.port.Source`."""

        async def fetch(query: _Query, moment: float) -> list[Mapping[str, str]]:
            end, span = window_ms(moment, query.window_s)
            text = f"group by ({','.join(labels)}) (last_over_time({query.selector}[{span}ms]))"
            return to_label_sets(self._read(await self._ask(text, end), "vector"), self.name)

        wave = [Selection(tuple(names), tuple(matchers), window_s)]
        _, parts, _ = await self._wave(wave, at, fetch)
        found = [dict(labels_) for part in parts for labels_ in part]
        return distinct(((one.pop("__name__", ""), one) for one in found), labels)

    @property
    def longest_query(self) -> int:
        """Characters that a query may have."""
        return POST_LIMIT if self._method == "POST" else GET_LIMIT

    async def evaluate(self, queries: Sequence[str], *, at: float | None) -> Evaluated:
        """Evaluate instant queries, a few at a time; see `engine.sources.port.Evaluator`."""
        before = self._web.sent
        moment = self._now() if at is None else at
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(query: str) -> list[Element] | SourceError:
            async with turns:
                try:
                    body = await self._ask(query, window_ms(moment, 0.0)[0])
                    return to_vector(self._read(body, "vector"), self.name)
                except SourceError as e:
                    return e

        answers = await asyncio.gather(*(one(query) for query in queries))
        return Evaluated(moment, tuple(answers), self._web.sent - before)

    def take_warnings(self) -> list[str]:
        """Return the warnings that no answer has carried yet, and forget them."""
        taken, self._pending = self._pending, []
        return taken

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()

    async def _wave(
        self,
        selections: Sequence[Selection],
        at: float | None,
        fetch: Callable[[_Query, float], Coroutine[Any, Any, T]],
    ) -> tuple[float, list[T], dict[str, SourceError]]:
        """Run one wave, again if the first answers show another clock or that POST is refused.

        Returns:
            The moment asked about, what came, and the metric names whose query failed.
        """
        skew, method = self._skew, self._method
        moment = self._now() if at is None else at
        parts = await self._gather(self._plan(selections), moment, fetch)
        if method != self._method or (at is None and skew != self._skew):
            moment = self._now() if at is None else at
            parts = await self._gather(self._plan(selections), moment, fetch)
        failed = [(q, p) for q, p in parts if isinstance(p, SourceError)]
        if failed and len(failed) == len(parts):
            raise failed[0][1]
        for query, error in failed:
            what = some(query.names) if query.names else query.selector
            self._tell(f"no readings of {what}: {error.message}")
        lost = {name: error for query, error in failed for name in query.names or ("",)}
        return moment, [part for _, part in parts if not isinstance(part, SourceError)], lost

    def _plan(self, selections: Sequence[Selection]) -> list[_Query]:
        limit = self.longest_query
        plan = []
        for one in selections:
            if not one.names and not one.matchers:
                raise UsageError("a selection needs a metric name or a matcher")
            for names, selector in selectors(one.names, one.matchers, limit):
                plan.append(_Query(names, selector, one.window_s, one.matchers))
        return plan

    def _halves(self, query: _Query) -> list[_Query]:
        """Return a query as two of half its names: for a server that caps samples or series."""
        half = len(query.names) // 2
        limit = self.longest_query
        return [
            _Query(names, selector, query.window_s, query.matchers)
            for part in (query.names[:half], query.names[half:])
            for names, selector in selectors(part, query.matchers, limit)
        ]

    async def _gather(
        self,
        plan: Sequence[_Query],
        moment: float,
        fetch: Callable[[_Query, float], Coroutine[Any, Any, T]],
    ) -> list[tuple[_Query, T | SourceError]]:
        async def guarded(query: _Query) -> list[tuple[_Query, T | SourceError]]:
            try:
                return [(query, await fetch(query, moment))]
            except SourceError as e:
                if e.code not in _TOO_LARGE or len(query.names) < 2:
                    return [(query, e)]
            # One after the other: the server is at its limit.
            return [part for half in self._halves(query) for part in await guarded(half)]

        answers = await asyncio.gather(*(guarded(query) for query in plan))
        return [part for parts in answers for part in parts]

    async def _ask(self, query: str, end_ms: int) -> bytes:
        """Send an instant query and return the text of a good answer."""
        form = {
            "query": query,
            "time": f"{end_ms / 1000:.3f}",
            "timeout": f"{max(1, round(self._config.timeout_s))}s",
            # VictoriaMetrics otherwise moves a moment of the last 30 s into the past.
            "nocache": "1",
        }
        sent_at = self._clock()
        reply = await self._web.request(self._method, self._endpoint, form=form, where=self.name)
        if reply.date is not None:
            self._compare_clocks(reply.date, sent_at)
        if reply.status == 405 and self._method == "POST":
            self._method = "GET"
        if not 200 <= reply.status < 300:
            raise bad_status(
                self.name,
                reply.status,
                error_text(reply.body, self._web.redact),
                not_found_hint="the API may have a path prefix; give it in the URL: "
                f"{self.name}/prometheus",
            )
        return reply.body

    @held_off()
    def _series(self, body: bytes, lo: float, hi: float) -> list[RawSeries]:
        """Return what a matrix has in the closed window [lo, hi] (Unix s)."""
        answer = self._read(body, "matrix")
        found = to_series(answer, self.name)
        if len(found) < len(answer.result):
            self._tell("native histograms are not read")
        for one in found:
            one.ts, one.values = clip(one.ts, one.values, lo, hi)
        return [one for one in found if len(one.ts)]

    def _read(self, body: bytes, result_type: str) -> Answer:
        answer = parse_answer(body, self.name, result_type, self._web.redact)
        for remark in answer.remarks:
            self._tell(remark)
        return answer

    def _now(self) -> float:
        return round(self._clock() + self._skew, 3)

    def _compare_clocks(self, date: float, sent_at: float) -> None:
        """Go by the server's clock if it is far from ours: its samples carry its time."""
        now = self._clock()
        if not self._skew and not sent_at - _SKEW_S <= date <= now + _SKEW_S:
            self._skew = date - now
            side = "ahead of" if self._skew > 0 else "behind"
            self._tell(
                f"its clock is {abs(self._skew):.0f} s {side} this machine's; now is taken from it"
            )

    def _tell(self, warning: str) -> None:
        text = f"{self.name}: {warning}"
        if text not in self._told:
            self._told.add(text)
            self._pending.append(text)


@held_off()
def _merge(parts: Sequence[Sequence[RawSeries]]) -> list[RawSeries]:
    """Sort the series of a wave; one that came twice is kept with the longer window."""
    merged: dict[tuple[str, tuple[tuple[str, str], ...]], RawSeries] = {}
    for part in parts:
        for one in part:
            key = series_key(one.name, one.labels)
            other = merged.get(key)
            if other is None or len(one.ts) > len(other.ts):
                merged[key] = one
    return [merged[key] for key in sorted(merged)]
