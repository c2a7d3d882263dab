"""What a sweep found, put together: one incident a root cause, and what was not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.diagnosis.combine import merge_unknown
from engine.diagnosis.compose import hang
from engine.diagnosis.gathered import gathered
from engine.diagnosis.judge import Judgement
from engine.diagnosis.logged import unknown_logs
from engine.diagnosis.sweepgroups import Group
from engine.model import Entity, Kind, Sweep, Unknown, Verdict
from engine.samples import Selection
from engine.signals.overlap import AT_ONCE_S, twice
from engine.sources.logs.port import Unread

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

_SHOWN_UNSEEN = 200
_NOT_EXPORTED = "not exported"
_HOSTS_NAMED = 3


@dataclass(slots=True)
class Plan:
    """What is fetched and judged, and what the server settled before.

    ``at`` is the moment judged, None if the first answer tells it; ``settled`` are the hosts of
    the ``healthy`` and ``idle`` GPUs of which nothing has to be fetched; ``pods`` are those
    (namespace, name) that are looked at wherever they run, ``away`` brings them and file systems;
    ``twice`` are the UUIDs that several hosts report.
    """

    groups: list[Group]
    at: float | None
    settled: set[str | None] = field(default_factory=set)
    healthy: int = 0
    idle: int = 0
    queries: int = 0
    waves: int = 0
    warnings: list[str] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    workloads: list[list[Selection]] = field(default_factory=list)
    away: list[list[Selection]] = field(default_factory=list)
    pods: list[tuple[str, str]] = field(default_factory=list)
    twice: frozenset[str] = frozenset()


@dataclass(slots=True)
class Found:
    """What was found so far: of GPUs, and of what stands ``beside`` them.

    ``known`` are the hosts that there are, ``unreached`` those that could not be asked about.
    ``twins`` are the GPUs of a UUID that several hosts report, with when each was last seen.
    """

    at: float | None
    unread: list[Unread]
    known: set[str | None]
    queries: int
    waves: int
    warnings: list[str]
    answers: list[Judgement] = field(default_factory=list)
    beside: list[Judgement] = field(default_factory=list)
    unreached: list[Entity] = field(default_factory=list)
    twins: dict[str, dict[str, float]] = field(default_factory=dict)

    def warn(self, warnings: Iterable[str]) -> None:
        """Add warnings, each once."""
        self.warnings = list(dict.fromkeys([*self.warnings, *warnings]))

    def twice(self) -> Iterator[str]:
        """Yield what to say of a UUID under which GPUs of several hosts report now."""
        for uuid, seen in sorted(self.twins.items()):
            names = sorted(n for n, ts in seen.items() if max(seen.values()) - ts <= AT_ONCE_S)
            if len(names) > 1:
                yield twice(uuid, names)


def result(engine: Engine, found: Found, plan: Plan, window_s: float) -> Sweep:
    """Return the answer of a sweep."""
    verdicts = {v.value: 0 for v in Verdict}
    for answer in found.answers:
        verdicts[answer.verdict.value] += 1
    verdicts[Verdict.HEALTHY.value] += plan.healthy
    verdicts[Verdict.IDLE.value] += plan.idle
    judged = {a.entity.host for a in found.answers}
    judged_beside = Counter(a.entity.kind.value for a in found.beside)
    del judged_beside["gpu"], judged_beside["node"]
    unseen = [
        *found.unreached,
        *(a.entity for a in found.answers if a.verdict is Verdict.UNKNOWN),
        *(
            a.entity
            for a in found.beside
            if a.entity.kind is Kind.SERVICE and a.verdict is Verdict.UNKNOWN
        ),
    ]
    answers = [*found.answers, *found.beside]
    pairs = ((a.entity, d) for a in answers for d in a.diagnoses)
    roots = hang(pairs, engine.catalogue.causes, [a.entity for a in answers])
    return Sweep(
        at=found.at,
        window_s=window_s,
        incidents=tuple(gathered(roots, answers, engine.site.racks)),
        checked={
            "gpu": len(found.answers) + plan.healthy + plan.idle,
            "node": len(judged | plan.settled),
            **dict(sorted(judged_beside.items())),
        },
        verdicts=verdicts,
        unknown=(
            *unknown_logs(found.unread, engine.told_by_logs),
            *merge_unknown(_unknown(found.answers)),
        ),
        engine=engine.info,
        queries=found.queries,
        waves=found.waves,
        warnings=tuple(found.warnings),
        unseen=tuple(unseen[:_SHOWN_UNSEEN]),
    )


def _unknown(answers: Sequence[Judgement]) -> Iterator[Unknown]:
    """Yield what was not seen; where only some hosts lack it, with the names of a few."""
    told = [a for a in answers if a.unknown]
    everywhere = {a.entity.host for a in told}
    lacking: dict[tuple[str, str, str], set[str]] = {}
    for answer in told:
        for one in answer.unknown:
            lacking.setdefault((one.cause, one.needs, one.why), set()).add(answer.entity.name)
    hosts: dict[str, str] = {a.entity.name: a.entity.host or a.entity.name for a in told}
    for answer in told:
        for one in answer.unknown:
            names = {hosts[name] for name in lacking[one.cause, one.needs, one.why]}
            if one.why == _NOT_EXPORTED and len(names) < len(everywhere):
                some = ", ".join(sorted(names)[:_HOSTS_NAMED])
                yield replace(one, why=f"{one.why} on some hosts, such as {some}")
            else:
                yield one
