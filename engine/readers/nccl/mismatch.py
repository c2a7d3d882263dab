"""Ranks that ran something else under one sequence number, and the findings of time-outs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import listed
from engine.readers.nccl.timeout_words import named, of_group, plural, size
from engine.readers.nccl.told import ORDER, Told
from engine.readers.nccl.watchdog import Group, RankState, Work

_SOURCES: Final = ("pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp",)
POINT_TO_POINT: Final = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED")
# Of the others, ranks may send and receive different amounts.
_SAME_SIZE: Final = (
    "ALLREDUCE",
    "BROADCAST",
    "REDUCE",
    "BARRIER",
    "_ALLGATHER_BASE",
    "_REDUCE_SCATTER_BASE",
)


def mismatch(group: Group, states: dict[int, RankState]) -> Told | None:
    """Find ranks that ran something else under one sequence number."""
    by_seq: dict[int, dict[int, RankState]] = {}
    for rank, state in states.items():
        if state.work is not None and state.work.seq is not None:
            by_seq.setdefault(state.work.seq, {})[rank] = state
    for seq, here in sorted(by_seq.items()):
        works = {rank: state.work for rank, state in here.items() if state.work is not None}
        if any(w.op in POINT_TO_POINT for w in works.values()):
            continue
        kinds = Counter(_kind(w) for w in works.values())
        if len(kinds) < 2:
            continue
        usual = kinds.most_common(1)[0][0]
        odd = [rank for rank, w in works.items() if _kind(w) != usual]
        said = "; ".join(
            f"rank{plural(ranks)} {listed(ranks)}: {named(one.op)}{size(one)}"
            for one, ranks in (
                (kind, [r for r, w in works.items() if _kind(w) == kind])
                for kind in list(kinds)[:6]
            )
        )
        only_sizes = len({w.op for w in works.values()}) == 1
        what = "sizes" if only_sizes else "collectives"
        line = min(state.line for state in here.values())
        data: dict[str, Any] = {
            "seq": seq,
            "op": usual.op if only_sizes else {str(r): w.op for r, w in works.items()},
            "ranks": sorted(works)[:1_024],
            "odd_ranks": sorted(odd)[:1_024],
            "elements_in": {str(r): w.elements_in for r, w in works.items() if w.elements_in},
            "timeout_ms": first(here, "timeout_ms"),
            "process_group": group.name or None,
        }
        return told(
            line,
            f"Ranks run different {what} under the same sequence number {seq}"
            f"{of_group(group)} (mismatch): {said}. The program took different ways on different"
            " ranks; neither the network nor a GPU is at fault.",
            "Look for code that runs on some ranks only, uneven batches or unused parameters around"
            f" rank{plural(odd)} {listed(odd)}; TORCH_DISTRIBUTED_DEBUG=DETAIL names the"
            " call, torchfrtrace compares the Flight Recorder dumps of all ranks.",
            "collective_mismatch",
            "watchdog_mismatch",
            data,
            next(iter(sorted(odd)), None),
            ORDER["root"],
        )
    return None


def _kind(work: Work) -> Work:
    """Return what must be the same on all ranks of a collective, without its number."""
    if work.op in _SAME_SIZE:
        return replace(work, seq=None)
    return Work(work.op, None, None, None, "")


def first(states: dict[int, RankState], name: str) -> int | None:
    """Return the first value that a rank tells."""
    return next((v for s in states.values() if (v := getattr(s, name)) is not None), None)


def told(
    line: int,
    says: str,
    action: str,
    cause: str | None,
    id_: str,
    data: dict[str, Any],
    rank: int | None,
    order: int,
) -> Told:
    """Return a finding of the watchdogs; one without a cause is of low severity."""
    return Told(
        order,
        line,
        Finding(
            kind="torch",
            id=id_,
            severity=Severity.HIGH if cause else Severity.LOW,
            says=says,
            action=action,
            entity=Entity(Kind.RANK, f"rank {rank}", rank=rank) if rank is not None else None,
            line=line,
            cause=cause,
            data={k: v for k, v in data.items() if v is not None and v not in ([], {})},
            sources=_SOURCES,
        ),
    )
