"""Which metric names a question asks for: all spellings of the signals that rules read.

Exporters whose series carry other labels than dcgm-exporter's (AMD's, nvidia_gpu_exporter) have
their own lists, so that they are asked for by what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.catalogue.types import Catalogue, Signal
from engine.diagnosis.core import ACTIVITY, CORE
from engine.diagnosis.observe import Observer
from engine.signals.derived import PARTS
from engine.signals.entities import SCOPES
from engine.signals.hosts import UNAME
from engine.signals.smi import NAMES as SMI_NAMES

# Read even if no rule of a site asks for them: core readings, and the Xids, which the counts by
# code tell better than the gauge of the last one (`engine.signals.events`).
ALWAYS = (*ACTIVITY, *CORE, "xid", "xid_count")


@dataclass(frozen=True, slots=True)
class Names:
    """The metric names to ask for: of the target, of its siblings, of its node.

    ``job`` are those compared within a job, ``amd`` and ``smi`` those of AMD's exporter and of
    nvidia_gpu_exporter, ``others`` those of what is no GPU, by scope; ``host`` are those of a node
    and of what it has: ports, mounts, pods.
    """

    gpu: tuple[str, ...]
    siblings: tuple[str, ...]
    node: tuple[str, ...]
    job: tuple[str, ...]
    amd: tuple[str, ...]
    smi: tuple[str, ...]
    others: Mapping[str, tuple[str, ...]]

    @property
    def host(self) -> tuple[str, ...]:
        """Names of a node and of its ports and mounts."""
        found = (*self.node, *self.others["port"], *self.others["filesystem"])
        return tuple(dict.fromkeys(found))

    @property
    def all(self) -> tuple[str, ...]:
        """Every name that is asked for anywhere."""
        others = (name for scope in sorted(self.others) for name in self.others[scope])
        return tuple(dict.fromkeys((*self.gpu, *self.node, *others, UNAME)))


def names_of(catalogue: Catalogue, observer: Observer) -> Names:
    """Return the names of all signals that rules read, and of those that answers always need."""
    wanted = (
        _with_parts(observer.signals)
        | set(ALWAYS)
        | {s.id for s in catalogue.signals.values() if s.core}
    )
    signals = [s for name, s in sorted(catalogue.signals.items()) if name in wanted]
    siblings = _with_parts(observer.sibling_signals)

    def spelled(scope: str, only: set[str] | None = None) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                sp.name
                for s in signals
                if s.scope == scope and (only is None or s.id in only)
                for sp in s.spellings
            )
        )

    every = catalogue.signals.values()
    others = {
        scope: tuple(
            dict.fromkeys(
                sp.name
                for s in sorted(every, key=lambda s: s.id)
                if s.scope == scope
                for sp in s.spellings
            )
        )
        for scope in SCOPES
    }
    job = spelled("gpu", _with_parts(observer.job_signals))
    amd = _of_exporter(signals, "device-metrics-exporter")
    smi = (*_of_exporter(signals, "nvidia_gpu_exporter"), *SMI_NAMES)
    gpu = (*spelled("gpu"), *SMI_NAMES)
    return Names(gpu, spelled("gpu", siblings), spelled("node"), job, amd, smi, others)


def _with_parts(signals: Iterable[str]) -> set[str]:
    """Return signals and those that the derived ones among them are made of."""
    found = set(signals)
    return found | {part for name in found for part in PARTS.get(name, ())}


def _of_exporter(signals: Iterable[Signal], exporter: str) -> tuple[str, ...]:
    """Return the names that one exporter gives the signals of GPUs."""
    found = (
        sp.name
        for s in signals
        if s.scope == "gpu"
        for sp in s.spellings
        if sp.exporter == exporter
    )
    return tuple(dict.fromkeys(found))
