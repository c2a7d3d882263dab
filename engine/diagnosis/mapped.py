"""A source whose series also carry the job that the map of the site gives them.

A question about a job of the map is asked by its hosts, by the site's own labels and by the names
of its pods; what comes back gets the label that dcgm-exporter has for a job. All else is handed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import re2

from engine.diagnosis.byhost import host_matchers, portions
from engine.samples import Batch, Matcher, RawSeries, Selection
from engine.signals.labels import JOB_LABELS, POD_LABELS, first, locate
from engine.sitemap import SiteMap
from engine.sources.forwarding import Forwarding
from engine.sources.port import Evaluated, Evaluator, Source

_JOB = JOB_LABELS[0]


def over(source: Source, site: SiteMap) -> Source:
    """Return a source seen through a map; the source itself where the map says nothing of jobs."""
    if not (site.jobs or site.job_labels or site.job_of_pod):
        return source
    if isinstance(source, Evaluator):
        return MappedServer(source, site, source)
    return Mapped(source, site)


class Mapped(Forwarding):
    """A source with the jobs of a map."""

    def __init__(self, source: Source, site: SiteMap) -> None:
        super().__init__(source)
        self._site = site

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Fetch one wave; what asks for a job also asks for it as the map knows it."""
        wanted = [one for selection in selections for one in self._widened(selection)]
        batch = await self._source.select(wanted, at=at)
        batch.series = labelled(batch.series, self._site)
        return batch

    def _widened(self, selection: Selection) -> Iterator[Selection]:
        yield selection
        asked = next((m for m in selection.matchers if m.label == _JOB and m.op == "="), None)
        if asked is None:
            return
        rest = tuple(m for m in selection.matchers if m is not asked)
        for label in self._site.job_labels:
            matchers = (*rest, Matcher(label, "=", asked.value))
            yield replace(selection, matchers=matchers)
        if (pods := _pods_of(self._site.job_of_pod, asked.value)) is not None:
            for label in POD_LABELS:
                yield replace(selection, matchers=(*rest, Matcher(label, "=~", pods)))
        for some in portions(self._site.jobs.get(asked.value, {})):
            for matchers in host_matchers(some):
                yield replace(selection, matchers=(*rest, *matchers))


class MappedServer(Mapped):
    """The same over a source that evaluates PromQL (see `engine.sources.port.Evaluator`)."""

    def __init__(self, source: Source, site: SiteMap, evaluator: Evaluator) -> None:
        super().__init__(source, site)
        self._evaluator = evaluator

    @property
    def longest_query(self) -> int:
        """Characters that a query may have."""
        return self._evaluator.longest_query

    async def evaluate(self, queries: Sequence[str], *, at: float | None) -> Evaluated:
        """Evaluate instant queries."""
        return await self._evaluator.evaluate(queries, at=at)


def labelled(series: Iterable[RawSeries], site: SiteMap) -> list[RawSeries]:
    """Return series with the job that a map gives them, where no label of theirs names one."""
    return [_labelled(one, site) for one in series]


def _labelled(series: RawSeries, site: SiteMap) -> RawSeries:
    labels = series.labels
    if first(labels, JOB_LABELS):
        return series
    job = _job_of(labels, site)
    if job is None:
        return series
    return replace(series, labels={**labels, _JOB: job})


def _job_of(labels: Mapping[str, str], site: SiteMap) -> str | None:
    if told := first(labels, site.job_labels):
        return told
    if site.job_of_pod is not None and (pod := first(labels, POD_LABELS)):
        match = site.job_of_pod.fullmatch(pod)
        if match is not None:
            return str(match["job"])
    if not site.by_host:
        return None
    place = locate(labels)
    return site.job_at(place.host, place.gpu)


def _pods_of(pattern: re2._Regexp[str] | None, job: str) -> str | None:
    """Return the pattern of the pods of one job: the job's name in place of the group."""
    if pattern is None:
        return None
    text = str(pattern.pattern)
    start = text.index("(?P<job>")
    depth, end, escaped, inside = 0, start, False, False
    for end in range(start, len(text)):
        char = text[end]
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                break
    return f"{text[:start]}{re.escape(job)}{text[end + 1 :]}"
