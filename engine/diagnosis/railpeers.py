"""The same ports of other hosts, for who fetches one host, or hosts in groups.

A port is compared with its like on hosts with the same GPUs, of which a group holds a few at most.
So some more are asked for the few readings that are compared, the same for every group.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.catalogue.types import Catalogue
from engine.diagnosis.byhost import host_matchers, portions
from engine.diagnosis.fetch import Fetched, Fetcher
from engine.diagnosis.observe import Observer
from engine.errors import SourceError
from engine.samples import Matcher, Selection
from engine.signals.labels import CLUSTER_LABELS, HOST_LABELS, MODEL_LABELS, gpu_entity, locate
from engine.signals.normalise import Readings
from engine.signals.rails import kinds, rails
from engine.sources.port import Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# Eight times the hosts of a group: these are suspects, and must not outvote the rest. Of a kind
# with fewer hosts all come along, so that the rail is the same as where everything is read at once.
MOST_HOSTS = 128


def rail_names(catalogue: Catalogue, observer: Observer) -> tuple[str, ...]:
    """Return the metric names that are compared along a rail; ``observer`` is that of ports."""
    found = (
        sp.name for s in sorted(observer.rail_signals) for sp in catalogue.signals[s].spellings
    )
    return tuple(dict.fromkeys(found))


class RailPeers:
    """Brings the ports of other hosts to those of a group, and says which are alike."""

    def __init__(self, engine: Engine, where: Sequence[Matcher]) -> None:
        observer = engine.judges.of("port").observer
        self._fetcher: Fetcher = engine.fetcher
        self._names = rail_names(engine.catalogue, observer)
        self._window_s = max(observer.window_s, 300.0)
        self._where = tuple(where)
        self._kinds: Mapping[tuple[str | None, str | None], Hashable] | None = None

    async def bring(
        self, source: Source, got: Fetched, here: Collection[str | None], *, gpus: bool = False
    ) -> bool:
        """Ask for the peers of what was fetched, if there is any port among it.

        Without them the ports are judged all the same.

        Args:
            source: where the readings come from.
            got: what was fetched of the hosts ``here``; what comes is added.
            here: names of hosts.
            gpus: bring a reading of the GPUs of the peers, too, which says of what kind they are.

        Returns:
            Whether anything was asked for.
        """
        wanted = set(self._names)
        if not any(one.name in wanted for one in got.batch.series):
            return False
        try:
            return await self._bring(source, got, here, gpus)
        except SourceError as error:
            got.warnings.append(error.one_line())
            return False

    async def _bring(
        self, source: Source, got: Fetched, here: Collection[str | None], gpus: bool
    ) -> bool:
        if self._kinds is None:
            self._kinds = await self._ask_kinds(source, got)
        by_kind: dict[Hashable, list[str]] = {}
        for (cluster, host), kind in self._kinds.items():
            if host:
                by_kind.setdefault((cluster, kind), []).append(host)
        mine = {(at, kind) for (at, host), kind in self._kinds.items() if host in here}
        peers = {host for kind in mine for host in spread(sorted(by_kind[kind]), MOST_HOSTS)}
        others = sorted(peers - set(here))
        of_kind = [
            Selection(self._fetcher.sign_of_life(), matchers, self._window_s)
            for some in (portions(others) if gpus else ())
            for matchers in host_matchers(some)
        ]
        if others:
            await self._fetcher.ask_own(source, got, others, self._names, self._window_s, of_kind)
        return bool(others)

    async def _ask_kinds(
        self, source: Source, got: Fetched
    ) -> Mapping[tuple[str | None, str | None], Hashable]:
        labels = (*HOST_LABELS, "instance", *CLUSTER_LABELS, *MODEL_LABELS)
        found = await source.label_sets(
            self._fetcher.sign_of_life(),
            labels,
            at=got.at,
            window_s=got.window_s,
            matchers=self._where,
        )
        got.batch.queries += 0 if source.rereads else 1
        return kinds(gpu_entity([locate(row)]) for row in found)

    def sort(self, readings: Readings) -> None:
        """Number the rails of a group's ports by what is known of all hosts."""
        if self._kinds is not None and (ports := readings.others.get("port")) is not None:
            ports.rail = rails(ports.entities, self._kinds)


def spread(hosts: Sequence[str], most: int) -> list[str]:
    """Return at most so many hosts, evenly out of all of them."""
    if len(hosts) <= most:
        return list(hosts)
    return [hosts[k * len(hosts) // most] for k in range(most)]
