"""What the rules over a capture's figures share: the devices to judge, and how findings look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.model import Entity, Finding, Kind, Severity
from engine.traces.model import Device, Figures
from engine.traces.timeline import Timeline
from engine.traces.wording import gpu, percent

KIND = "trace"
# Less work than this shows start-up and chance, not how a program runs.
_LEAST_WORK = 50
_LEAST_SPAN_MS = 5.0
# Shares of the time from first to last work from which a loss is medium and high.
_MEDIUM_PERCENT, _HIGH_PERCENT = 10.0, 30.0
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Loss:
    """A finding, the time it costs the worst device (ms), and the causes it stands for."""

    ms: float
    finding: Finding
    causes: tuple[str, ...]


Affected = list[tuple[Device, float]]
"""Devices with the share (percent) that makes the rule hold, the worst first."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The figures of a capture, and the knowledge to judge them by."""

    figures: Figures
    timeline: Timeline

    @property
    def judged(self) -> tuple[Device, ...]:
        """The devices with enough work for a judgement."""
        return tuple(d for d in self.figures.devices if enough(d))

    def over(self, share: Callable[[Device], float | None], limit: float) -> Affected:
        """Return the devices whose share is at least the limit, the worst first."""
        found = [(d, value) for d in self.judged if (value := share(d)) is not None]
        hit = [(d, value) for d, value in found if value >= limit]
        return sorted(hit, key=lambda one: (-one[1], one[0].index))

    def name(self, device: Device) -> str:
        """Return what people call a device: its number, and its rank in a trace of one."""
        rank = self.figures.rank
        own = gpu(device.index)
        return own if rank is None else f"rank {rank} ({own})"

    def entity(self, device: Device) -> Entity:
        """Return the device as what findings are about."""
        figures = self.figures
        index = device.index if device.index >= 0 else None
        own = gpu(device.index)
        return Entity(
            Kind.GPU,
            own if index is None or not figures.host else f"{figures.host}:{index}",
            host=figures.host,
            gpu=index,
            model=device.name,
            rank=figures.rank,
        )

    def others(self, affected: Sequence[tuple[Device, float]]) -> str:
        """Return the rest of the affected devices as half a sentence; empty if there is none."""
        rest = affected[1:]
        if not rest:
            return ""
        named = ", ".join(f"{gpu(d.index)} {percent(v)}" for d, v in rest[:_NAMED])
        more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
        return f" Likewise: {named}{more}."

    def loss(
        self,
        affected: Affected,
        ms: float,
        *,
        id_: str,
        entry: str,
        says: str,
        action: str,
        cause: str | None,
        data: dict[str, Any],
        causes: tuple[str, ...] | None = None,
    ) -> Loss:
        """Return the finding about the worst of some devices."""
        device, share = affected[0]
        finding = Finding(
            kind=KIND,
            id=id_,
            severity=severity(share),
            says=says + self.others(affected),
            action=action,
            entity=self.entity(device),
            line=None,
            cause=cause,
            data={
                "share_percent": round(share, 3),
                **data,
                "gpus": [d.index for d, _ in affected if d.index >= 0],
            },
            errata=self.timeline.errata(entry),
            sources=self.timeline.sources(entry),
        )
        own = (cause,) if cause else ()
        return Loss(ms, finding, own if causes is None else causes)

    def note(self, id_: str, says: str, action: str, entry: str = "", **data: Any) -> Finding:
        """Return a finding about the capture itself, which costs nothing."""
        return Finding(
            kind=KIND,
            id=id_,
            severity=Severity.INFO,
            says=says,
            action=action,
            entity=None,
            line=None,
            cause=None,
            data=data,
            errata=(),
            sources=self.timeline.sources(entry) if entry else (),
        )


Rule = Callable[[Capture], Iterator[Loss]]


def enough(device: Device) -> bool:
    """Return whether a device did enough for a judgement."""
    return (
        device.kernels + device.graph_launches >= _LEAST_WORK and device.span_ms >= _LEAST_SPAN_MS
    )


def severity(share: float) -> Severity:
    """Return how bad a loss of so many percent of the time is."""
    if share >= _HIGH_PERCENT:
        return Severity.HIGH
    return Severity.MEDIUM if share >= _MEDIUM_PERCENT else Severity.LOW


def part(value: float, whole: float) -> float:
    """Return a part in percent; 0 of nothing."""
    return 100.0 * value / whole if whole > 0 else 0.0
