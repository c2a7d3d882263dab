"""The part of a sweep that is no GPU: what hosts and pods say of themselves, services, jobs.

Nodes, ports, mounts and pods are judged with the GPUs that they belong to. Engines of services and
ranks of jobs may run anywhere: a server is asked which there are, and for their readings in
portions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.diagnosis.byhost import host_matchers, named, portions
from engine.diagnosis.core import ACTIVITY
from engine.diagnosis.fetch import Fetched, Fetcher
from engine.diagnosis.judge import Judgement
from engine.diagnosis.related import beside
from engine.diagnosis.sweepgroups import Listing
from engine.model import Kind
from engine.samples import Matcher, RawSeries, Selection
from engine.signals.labels import POD_LABELS
from engine.signals.normalise import Readings
from engine.topology import Target

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_OF_HOSTS = ("node", "port", "filesystem", "pod")
_OF_WORKLOADS = ("rank", "service")


def of_hosts(engine: Engine, readings: Readings, chosen: Sequence[int]) -> list[Judgement]:
    """Judge the nodes, ports, mounts and pods of some GPUs; of all there are without any GPU."""
    found = beside(Target(Kind.NODE if chosen else Kind.FLEET, ""), readings, chosen)
    return _judged(engine, readings, {scope: found.get(scope, []) for scope in _OF_HOSTS})


def of_workloads(engine: Engine, readings: Readings) -> list[Judgement]:
    """Judge all engines of services and all ranks of jobs."""
    found = beside(Target(Kind.FLEET, ""), readings, ())
    return _judged(engine, readings, {scope: found.get(scope, []) for scope in _OF_WORKLOADS})


def _judged(
    engine: Engine, readings: Readings, found: Mapping[str, Sequence[int]]
) -> list[Judgement]:
    return [
        answer
        for scope, some in found.items()
        for answer in engine.judge_other(readings, scope, some, unknowns=False)
    ]


def pods(
    fetcher: Fetcher, series: Iterable[RawSeries], window_s: float, also: tuple[str, ...] = ()
) -> list[Selection]:
    """Return the selections that bring what is known of the pods that series name.

    ``also`` are metric names that are asked for beside those of pods.
    """
    names = (*fetcher.names.others["pod"], *also)
    running = {pod for one in series for label in POD_LABELS if (pod := one.labels.get(label))}
    return [
        Selection(names, (named(label, some),), window_s)
        for some in portions(sorted(running))
        for label in POD_LABELS
        if names
    ]


def beneath(fetcher: Fetcher, got: Fetched, readings: Readings) -> list[Selection]:
    """Return the selections of what engines run on: their pods and hosts, how busy the GPUs are."""
    activity = fetcher.spelled(ACTIVITY)
    served = readings.others.get("service")
    hosts = sorted({e.host for e in served.entities if e.host}) if served else []
    busy = [
        Selection(activity, matchers, got.window_s)
        for some in portions(hosts)
        for matchers in host_matchers(some)
    ]
    own = fetcher.hosts_own(hosts, got.window_s)
    return [*busy, *own, *pods(fetcher, got.batch.series, got.window_s, activity)]


def workloads(
    fetcher: Fetcher, found: Listing, window_s: float, where: tuple[Matcher, ...]
) -> Iterator[list[Selection]]:
    """Yield the selections of services and jobs, those of one request together."""
    names = fetcher.names.others
    for some in portions(found.engines):
        yield [Selection(names["service"], (named("instance", some), *where), window_s)]
    for label, job in found.runs:
        yield [Selection(names["rank"], (Matcher(label, "=", job), *where), window_s)]
