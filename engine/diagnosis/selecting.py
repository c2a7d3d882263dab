"""What is asked for beside a target, as selections: its hosts, siblings, pods, jobs, its past.

Nothing here sends anything (`engine.diagnosis.fetch`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from engine.catalogue.types import Catalogue
from engine.diagnosis.byhost import address, host_matchers, named, pattern, portions
from engine.diagnosis.core import ACTIVITY, CORE
from engine.diagnosis.names import names_of
from engine.diagnosis.observe import Observer
from engine.model import Entity, Kind
from engine.samples import Matcher, RawSeries, Selection
from engine.signals.entities import RUN_LABELS, lustre_name
from engine.signals.hosts import UNAME, as_known, short, stated_by
from engine.signals.labels import JOB_LABELS, UUID_LABELS, Place
from engine.signals.normalise import Readings
from engine.topology import Target

# How far back it is looked for readings of a GPU that has none in the window (s).
LOOKBACK_LOST_S = 86400.0
# A host may call itself by its whole name in the DNS.
_DOMAIN = r"(\..+)?"
# Of so many pods and jobs the own readings are asked for, of all others only those of their GPUs.
_MOST_WORKLOADS = 16


class Selecting:
    """Makes the selections of a question, in the metric names that the rules need."""

    def __init__(self, catalogue: Catalogue, observer: Observer) -> None:
        self.catalogue = catalogue
        self.sibling_window_s = observer.sibling_window_s
        self.window_s = observer.window_s
        self.names = names_of(catalogue, observer)

    def hosts_own(
        self, hosts: Iterable[str], window_s: float, names: tuple[str, ...] | None = None
    ) -> list[Selection]:
        """Return the selections of what hosts say of themselves: node_exporter and its like.

        Their host is in the scrape address, or in the label ``node`` that Kubernetes gives.
        ``names`` are the metrics asked for, by default all of hosts, ports and mounts.
        """
        names = self.names.host if names is None else names
        out: list[Selection] = []
        for some in portions(hosts) if names else ():
            at = address(some)
            elsewhere = (named("node", some), Matcher("instance", "!~", at.value))
            out += [Selection(names, (at,), window_s), Selection(names, elsewhere, window_s)]
        return out

    def elsewhere(self, readings: Readings, chosen: Iterable[int]) -> list[Selection]:
        """Return the selections of hosts whose series name them by their scrape address alone."""
        hosts = {readings.frame.entities[i].host for i in chosen}
        found = [
            known
            for known, host in readings.addresses.items()
            if host in hosts and known in readings.stated
        ]
        return [
            Selection(self.names.host, (address(some),), self.window_s)
            for some in portions(found)
            if self.names.host
        ]

    def beneath(self, entities: Sequence[Entity], devices: Iterable[str] = ()) -> list[Selection]:
        """Return the selections that bring what a service or file system runs on.

        That is: its hosts, the GPUs of its pods or else of its hosts, and the series of the whole
        instance, which do not name the model; of a file system's ``devices`` what its servers and
        its other clients say.
        """
        services = [e for e in entities if e.kind is Kind.SERVICE]
        out = []
        for device in sorted(set(devices)):
            names, lustre = self.names.others["filesystem"], lustre_name(device)
            served = Matcher("export", "=", device)
            if lustre:
                served = Matcher("target", "=~", re.escape(lustre) + "-(OST|MDT)[0-9a-fA-F]+")
            out.append(Selection(names, (served,), self.window_s))
        pods = {(e.namespace, e.pod) for e in services if e.pod}
        for namespace, pod in sorted(pods, key=str):
            out += self._by_pod(namespace or "", pod or "", self.names.gpu, self.window_s)
            of_pod = (*self.names.others["pod"], *self.names.others["service"])
            out += self._by_pod(namespace or "", pod or "", of_pod, self.window_s)
        instances = sorted({e.instance for e in services if e.instance and not e.pod})
        if instances:
            pattern = "|".join(re.escape(name) for name in instances)
            names = self.names.others["service"]
            out.append(Selection(names, (Matcher("instance", "=~", pattern),), self.window_s))
        if any(not (e.instance or e.pod) for e in services):  # text of one server, no scrape of it
            names = self.names.others["service"]
            out.append(Selection(names, (Matcher("instance", "=", ""),), self.window_s))
        out += self.hosts_own(sorted({e.host for e in entities if e.host}), self.window_s)
        bare = sorted({e.host for e in services if e.host and not e.pod})
        for hosts in portions(bare):
            for matchers in host_matchers(hosts):
                out.append(Selection(self.names.gpu, matchers, self.window_s))
        return out

    def workloads_of(self, entities: Sequence[Entity], target: Target) -> list[Selection]:
        """Return the selections of the pods and the jobs that some GPUs work for."""
        out = []
        names = self.names.others["pod"]
        pods = sorted({(e.namespace or "", e.pod) for e in entities if e.pod})
        for namespace, pod in pods[:_MOST_WORKLOADS] if names else ():
            out += self._by_pod(namespace, pod, names, self.window_s)
        jobs = sorted({e.job for e in entities if e.job})
        for job in jobs[:_MOST_WORKLOADS] if target.kind is not Kind.JOB else ():
            out += self._ranks(job, self.window_s)
            if self.names.job:
                out += [
                    Selection(self.names.job, (Matcher(label, "=", job),), self.window_s)
                    for label in JOB_LABELS
                ]
        return out

    def siblings_of(self, places: Iterable[Place], job: str | None = None) -> list[Selection]:
        """Return the selections that bring the other GPUs of the hosts of some GPUs.

        Series of ``job`` are left out: they are there, and further back, where it was asked for.
        """
        near = max(self.sibling_window_s, 300.0)
        others = tuple(Matcher(label, "!=", job) for label in JOB_LABELS if job)
        hosts = sorted({p.host for p in places if p.host})
        out = []
        for some in portions(hosts):
            for matchers in host_matchers(some):
                if self.names.siblings:
                    out.append(Selection(self.names.siblings, (*matchers, *others), near))
                # What is at their scrape address comes with all that the hosts say of themselves.
                if self.names.node and matchers[0].label != "instance":
                    out.append(Selection(self.names.node, matchers, self.window_s))
            out += self.who_is(some, self.window_s)
        return out + self.hosts_own(hosts, self.window_s)

    def in_full(self, places: Sequence[Place]) -> list[Selection]:
        """Return the selections that bring all readings of some GPUs, and those of their hosts."""
        asked = self.history_of(places, self.names.gpu, self.window_s)
        return asked + self.siblings_of(places)

    def exporters_of(self, readings: Readings, chosen: Iterable[int]) -> list[Selection]:
        """Return the selections that tell whether the exporters of some GPUs answer scrapes."""
        addresses = sorted({a for i in chosen for a in readings.instances[i]})
        if not addresses:
            return []
        pattern = "|".join(re.escape(a) for a in addresses)
        return [Selection(("up",), (Matcher("instance", "=~", pattern),), self.window_s)]

    def history_of(
        self,
        places: Sequence[Place],
        names: tuple[str, ...],
        window_s: float = LOOKBACK_LOST_S,
    ) -> list[Selection]:
        """Return the selections that bring some metrics of some GPUs, usually of the last day."""
        by_uuid = sorted({p.uuid for p in places if p.uuid})
        out = []
        if by_uuid:
            bare = "|".join(re.escape(u.removeprefix("GPU-")) for u in by_uuid)
            pattern = f"(GPU-)?({bare})"
            out += [
                Selection(names, (Matcher(label, "=~", pattern),), window_s)
                for label in UUID_LABELS
            ]
        by_index = sorted({(p.host, str(p.gpu)) for p in places if not p.uuid and p.host})
        out += [
            Selection(names, (*matchers, Matcher("gpu", "=", gpu)), window_s)
            for host, gpu in by_index
            for matchers in host_matchers([host])
        ]
        return out

    def spelled(self, signals: Iterable[str]) -> tuple[str, ...]:
        """Return the metric names of some signals."""
        found = (s.name for name in signals for s in self.catalogue.signals[name].spellings)
        return tuple(dict.fromkeys(found))

    def sign_of_life(self) -> tuple[str, ...]:
        """Return the names of the one reading that every GPU exporter has: the die temperature."""
        return tuple(s.name for s in self.catalogue.signals["gpu_temp"].spellings)

    def core_names(self) -> tuple[str, ...]:
        """Return the metric names that every GPU exporter has some of."""
        return tuple(
            s.name for name in (*ACTIVITY, *CORE) for s in self.catalogue.signals[name].spellings
        )

    def _labelled(
        self, scope: str, labels: Iterable[str], value: str | None, window_s: float
    ) -> list[Selection]:
        """Return the selections of a scope's series that have a value under one of some labels."""
        names = self.names.others[scope]
        if not names or not value:
            return []
        return [Selection(names, (Matcher(label, "=", value),), window_s) for label in labels]

    def _ranks(self, job: str, window_s: float) -> list[Selection]:
        return self._labelled("rank", RUN_LABELS, job, window_s)

    @staticmethod
    def _by_pod(
        namespace: str, pod: str, names: tuple[str, ...], window_s: float
    ) -> list[Selection]:
        pairs = (("exported_pod", "exported_namespace"), ("pod", "namespace"))
        return [
            Selection(names, (Matcher(of, "=", pod), Matcher(space, "=", namespace)), window_s)
            for of, space in pairs
            if names
        ]

    @staticmethod
    def who_is(hosts: Sequence[str], window_s: float) -> list[Selection]:
        """Return the selections that tell at which address a host's node_exporter is scraped.

        The kernel may know its host with or without the domain.
        """
        names = dict.fromkeys(name for host in hosts for name in (host, short(host)))
        return [
            Selection((UNAME,), (Matcher("nodename", "=~", pattern(some, _DOMAIN)),), window_s)
            for some in portions(names)
        ]

    def addressed(
        self, series: Iterable[RawSeries], hosts: Collection[str], names: tuple[str, ...]
    ) -> list[Selection]:
        """Return the selections of hosts at the addresses that `who_is` brought among ``series``.

        ``names`` are the metrics asked for; what is scraped at the host's own name is left out, as
        `hosts_own` asks for that.
        """
        known = set(hosts)
        stated = stated_by(one.labels for one in series if one.name == UNAME)
        found = [
            at
            for at, called in sorted(stated.items())
            if at not in known and not known.isdisjoint(as_known(name, known) for name in called)
        ]
        return [Selection(names, (address(some),), self.window_s) for some in portions(found)]

    def _whole_host(self, matchers: tuple[Matcher, ...], window_s: float) -> list[Selection]:
        """Return everything of a host; a GPU of it may have gone before the window began."""
        return [
            Selection(self.names.gpu + self.names.node, matchers, window_s),
            Selection(self.sign_of_life(), matchers, LOOKBACK_LOST_S),
        ]
