"""Findings of the ranks' Flight Records: who is missing, who called something else, what hangs."""

from __future__ import annotations

from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.traces.flightrecorder.judge import Blocked, Judged
from engine.traces.flightrecorder.shown import called_in, operation, ranks, sentence
from engine.traces.flightrecorder.verdict import verdict

SOURCES: Final = (
    "pytorch/pytorch torch/csrc/distributed/c10d/FlightRecorder.hpp (fields and states)",
    "pytorch/pytorch torch/distributed/flight_recorder (matching by sequence number)",
)
_MAX_BLOCKED = 5


def findings(judged: Judged, kind: str) -> list[Finding]:
    """Return the findings, root first; one that says so where nothing is pending."""
    found = [_of(one, judged, kind) for one in judged.blocked[:_MAX_BLOCKED]]
    found += _p2p(judged, kind)
    if not found:
        found.append(_clear(judged, kind))
    return found


def _of(one: Blocked, judged: Judged, kind: str) -> Finding:
    what = f"{operation(one.op)} number {one.seq} of group {one.label} ({one.size} ranks)"
    data: dict[str, Any] = {
        "op": one.op.name.split(":")[-1],
        "seq": one.seq,
        "group": one.label,
        "group_ranks": one.size,
        "waiting_ranks": one.waiting,
        "missing_ranks": one.missing,
        "ranks_without_dump": one.unseen,
        "mismatched_ranks": sorted(one.others),
        "input_sizes": one.op.sizes,
        "timeout_ms": one.op.timeout_ms,
    }
    said = verdict(one, judged, what)
    severity = Severity.MEDIUM if one.follows and not judged.crossed else Severity.HIGH
    culprits = sorted(one.others) or one.missing or one.unseen
    return Finding(
        kind=kind,
        id=said.id,
        severity=severity,
        says=sentence(said.says),
        action=said.action,
        entity=_rank(culprits[0]) if len(culprits) == 1 else None,
        line=None,
        cause=said.cause,
        data=data,
        sources=SOURCES,
    )


def _p2p(judged: Judged, kind: str) -> list[Finding]:
    pending = {rank: ops for rank, ops in judged.pending.items() if ops}
    if not pending:
        return []
    rank, ops = min(pending.items())
    says = (
        f"{sum(map(len, pending.values()))} point-to-point operation(s) have not completed, on "
        f"{ranks(sorted(pending))}; the first on rank {rank} is {operation(ops[0])}"
        f"{called_in(ops[0])}."
    )
    return [
        Finding(
            kind=kind,
            id="p2p_pending",
            severity=Severity.HIGH if not judged.blocked else Severity.MEDIUM,
            says=says,
            action="Check that the peer posts the matching send or receive, in the same order "
            "(pipeline schedules deadlock if two neighbours both send first).",
            entity=_rank(rank) if len(pending) == 1 else None,
            line=None,
            cause="collective_hang",
            data={"waiting_ranks": sorted(pending), "op": ops[0].name.split(":")[-1]},
            sources=SOURCES,
        )
    ]


def _clear(judged: Judged, kind: str) -> Finding:
    says = (
        f"{judged.recorded} operation(s) of {ranks(judged.ranks)} are recorded, and all have "
        "completed: no collective was pending when the dump was taken."
    )
    action = "If the job hangs, it does so elsewhere: `py-spy dump --pid PID` on every rank."
    if judged.absent:
        says += f" {sentence(ranks(judged.absent))} left no dump."
        action = "Look at the ranks without a dump first. " + action
    return Finding(
        kind=kind,
        id="nothing_pending",
        severity=Severity.INFO,
        says=says,
        action=action,
        entity=None,
        line=None,
        cause=None,
        data={
            "operations": judged.recorded,
            "ranks": judged.ranks[:64],
            "ranks_without_dump": judged.absent[:64],
        },
        sources=SOURCES,
    )


def _rank(rank: int) -> Entity:
    return Entity(kind=Kind.RANK, name=f"rank {rank}", rank=rank)
