"""In what groups the hosts of a sweep are fetched: bounded, and each series once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.diagnosis.byhost import named
from engine.diagnosis.core import core_of
from engine.diagnosis.fetch import Fetcher
from engine.diagnosis.present import gone
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.diagnosis.sweephosts import WHERE, Row, Where, rows_of
from engine.samples import Matcher, Selection
from engine.signals.entities import RUN_LABELS, run_of
from engine.signals.labels import IDENTITY_LABELS, Place
from engine.sources.port import Source

# Hosts per request: 16 hosts of 8 GPUs are about 5,000 series, 8 MB of a 15-minute window.
HOSTS_PER_REQUEST = 16


@dataclass(frozen=True, slots=True)
class Listing:
    """Which GPUs, services and jobs there are.

    Attributes:
        now: GPUs that report.
        day: those seen during the last day, and not now.
        engines: scrape addresses of engines that serve models.
        runs: jobs whose ranks report, as a label and its value.
    """

    now: list[Row]
    day: list[Row]
    engines: tuple[str, ...] = ()
    runs: tuple[tuple[str, str], ...] = ()

    @property
    def hosts_now(self) -> set[str | None]:
        """Names of the hosts that report."""
        return {row.place.host for row in self.now}

    @property
    def lost(self) -> list[Place]:
        """GPUs that reported during the last day and do not now."""
        return gone([row.place for row in self.day], [row.place for row in self.now])

    def twice(self) -> frozenset[str]:
        """Return the UUIDs that more than one host reports."""
        found: dict[str, set[str | None]] = {}
        for row in self.now:
            if row.place.uuid:
                found.setdefault(row.place.uuid, set()).add(row.place.host)
        return frozenset(uuid for uuid, hosts in found.items() if len(hosts) > 1)

    def restless(self) -> set[str | None]:
        """Return the names of hosts that have lost a GPU, or that are gone themselves."""
        there = self.hosts_now
        away = {row.place.host for row in self.day if row.place.host not in there}
        return away | {place.host for place in self.lost}


async def listing(
    fetcher: Fetcher, source: Source, at: float | None, window_s: float, where: tuple[Matcher, ...]
) -> Listing:
    """Ask which GPUs, services and jobs report, and which GPUs did during the last day.

    Raises:
        SourceError: the source does not answer.
    """
    ask = partial(source.label_sets, labels=IDENTITY_LABELS, at=at, matchers=where)
    asked = partial(source.label_sets, at=at, window_s=window_s, matchers=where)
    now, day, engines, runs = await asyncio.gather(
        ask(fetcher.core_names(), window_s=window_s),
        ask(fetcher.sign_of_life(), window_s=LOOKBACK_LOST_S),
        asked(_engine_names(fetcher), labels=("instance",)),
        asked(fetcher.names.others["rank"], labels=RUN_LABELS),
    )
    rows = rows_of(now)
    known = {tuple(row.items()) for row in now}
    return Listing(
        rows,
        rows_of(row for row in day if tuple(row.items()) not in known),
        tuple(dict.fromkeys(row.get("instance", "") for row in engines)),
        tuple(dict.fromkeys(run for row in runs if (run := run_of(row)))),
    )


def _engine_names(fetcher: Fetcher) -> tuple[str, ...]:
    """Return the metric names that every engine of a service has some of."""
    return fetcher.spelled(s for group in core_of(fetcher.catalogue, "service") for s in group)


@dataclass(frozen=True, slots=True)
class Group:
    """Some hosts that are asked about together, or all of them.

    ``live`` are those that report, ``exporters`` their scrape addresses, ``gone`` their GPUs that
    stopped before the window.
    """

    hosts: tuple[str, ...] = ()
    matchers: tuple[Matcher, ...] = ()
    live: tuple[str, ...] = ()
    exporters: tuple[str, ...] = ()
    gone: tuple[Place, ...] = ()

    def selections(
        self, fetcher: Fetcher, window_s: float, where: tuple[Matcher, ...]
    ) -> list[Selection]:
        """Return what is asked about the group, in one wave."""
        matchers = (*self.matchers, *where)
        names = fetcher.names.gpu + fetcher.names.node
        out = [Selection(names if self.matchers else fetcher.names.all, matchers, window_s)]
        if not self.matchers:
            out.append(Selection(fetcher.sign_of_life(), matchers, LOOKBACK_LOST_S))
        if self.exporters:  # what speaks of a node names it by another label, or not at all
            out.append(
                Selection(fetcher.names.node, (named("instance", self.exporters),), window_s)
            )
        out += fetcher.hosts_own(self.live, window_s)
        out += fetcher.who_is(self.live, window_s)
        return out + fetcher.history_of(self.gone, fetcher.sign_of_life())


def groups(found: Listing, only: Collection[Where] | None = None) -> list[Group]:
    """Return the groups that together cover every GPU once.

    Args:
        found: which GPUs there are.
        only: the hosts that are fetched, None for all; hosts that are gone are fetched always.
    """
    hosts_now, lost = found.hosts_now, found.lost
    away = [row for row in found.day if row.place.host not in hosts_now]
    here = [row for row in found.now if only is None or row.where in only]
    of_label: dict[str, dict[str, list[Place]]] = {}
    for row in here + away:
        if row.where:
            label, host = row.where
            of_label.setdefault(label, {}).setdefault(host, []).append(row.place)
    out = []
    for k, label in enumerate(WHERE):
        of_host = of_label.get(label, {})
        hosts = sorted(of_host)
        for first in range(0, len(hosts), HOSTS_PER_REQUEST):
            some = hosts[first : first + HOSTS_PER_REQUEST]
            places = {h: of_host[h] for h in some}
            out.append(_group(label, WHERE[:k], places, hosts_now, lost))
    return out


def _group(
    label: str,
    absent: Iterable[str],
    of_host: Mapping[str, Sequence[Place]],
    hosts_now: Container[str | None],
    lost: Iterable[Place],
) -> Group:
    pattern = "|".join(re.escape(host) for host in of_host)
    places = [place for found in of_host.values() for place in found]
    names = {place.host for place in places}
    return Group(
        hosts=tuple(of_host),
        matchers=(Matcher(label, "=~", pattern), *(Matcher(name, "=", "") for name in absent)),
        live=tuple(sorted({p.host for p in places if p.host and p.host in hosts_now})),
        exporters=tuple(sorted({p.instance for p in places if p.instance})),
        gone=tuple(p for p in lost if p.host in names),
    )
