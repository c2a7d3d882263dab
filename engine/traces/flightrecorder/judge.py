"""Lay the Flight Records of several ranks beside each other: what blocks, and who is missing.

The first collective of a group that a rank has not completed is where it stands. Ranks of the same
group that have not called it are missing; those that called something else in its place mismatch.
PyTorch's own analyser (torch/distributed/flight_recorder) matches by the same sequence numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.traces.flightrecorder.dump import Dump, Op

# Where ranks may rightly give different sizes (all_to_all, scatter, uneven all_gather).
_UNEVEN = ("all_to_all", "alltoall", "gather", "scatter", "coalesced", "_v")


@dataclass(slots=True)
class Blocked:
    """A collective that some ranks have called and not completed.

    Attributes:
        started: ranks on whose GPU its kernel runs.
        scheduled: ranks that have enqueued it, whose GPU has not come to it.
        completed: ranks that have completed it.
        missing: ranks that have a record and have not called it.
        unseen: ranks of the group without a record.
        others: what ranks called in its place, by rank.
        follows: every missing rank waits in another collective, which blocks this one.
    """

    group: str
    label: str
    seq: int
    op: Op
    size: int
    started: list[int] = field(default_factory=list)
    scheduled: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    unseen: list[int] = field(default_factory=list)
    others: dict[int, Op] = field(default_factory=dict)
    follows: bool = False

    @property
    def waiting(self) -> list[int]:
        """Ranks that called it and wait."""
        return sorted(self.started + self.scheduled)


@dataclass(slots=True)
class Judged:
    """What the records of a job show together.

    Attributes:
        blocked: collectives that block, root first.
        pending: point-to-point operations that have not completed, by rank.
        ranks: ranks that have a record.
        absent: ranks that belong to a group and have none.
        last: the last operation that each rank called.
        crossed: two groups wait for each other's ranks: they were called in different order.
    """

    blocked: list[Blocked]
    pending: dict[int, list[Op]]
    ranks: list[int]
    absent: list[int]
    last: dict[int, Op]
    recorded: int
    crossed: bool = False


def judge(dumps: Sequence[Dump]) -> Judged:
    """Compare the records; those without a rank of their own are numbered in their order."""
    byrank = _ranked(dumps)
    blocked: list[Blocked] = []
    groups = sorted({g for dump in byrank.values() for g in dump.ops})
    for group in groups:
        for members in _memberships(group, byrank):
            found = _blocked(group, members, byrank)
            if found is not None:
                blocked.append(found)
    waits = {rank: one for one in blocked for rank in one.waiting}
    for one in blocked:
        elsewhere = [waits[r] for r in one.missing if waits.get(r, one) is not one]
        one.follows = bool(one.missing) and len(elsewhere) == len(one.missing)
    crossed = bool(blocked) and all(one.follows for one in blocked)
    blocked.sort(key=lambda one: (one.follows, one.op.created_ns, one.group))
    expected = {r for dump in byrank.values() for ranks in dump.groups.values() for r in ranks}
    return Judged(
        blocked=blocked,
        pending={
            rank: [op for ops in dump.ops.values() for op in ops if op.p2p and not op.done][:64]
            for rank, dump in byrank.items()
        },
        ranks=sorted(byrank),
        absent=sorted(expected - set(byrank)),
        last={
            rank: max((op for ops in dump.ops.values() for op in ops), key=lambda o: o.created_ns)
            for rank, dump in byrank.items()
            if dump.ops
        },
        recorded=sum(len(ops) for dump in byrank.values() for ops in dump.ops.values()),
        crossed=crossed and len(blocked) > 1,
    )


def _ranked(dumps: Sequence[Dump]) -> dict[int, Dump]:
    """Give each record its rank; of two with the same rank the later one counts."""
    byrank: dict[int, Dump] = {d.rank: d for d in dumps if d.rank is not None}
    free = (n for n in range(len(dumps) * 2 + 1) if n not in byrank)
    for dump in dumps:
        if dump.rank is None:
            byrank[next(free)] = dump
    return byrank


def _memberships(group: str, byrank: Mapping[int, Dump]) -> list[tuple[int, ...]]:
    """Return the rank lists under which a group's name is known: names may repeat."""
    known = {d.groups[group] for d in byrank.values() if d.groups.get(group)}
    if known:
        return sorted(known)
    return [tuple(sorted(r for r, d in byrank.items() if group in d.ops))]


def _blocked(group: str, members: tuple[int, ...], byrank: Mapping[int, Dump]) -> Blocked | None:
    """Return the first collective that a group has not completed, with where each rank stands."""
    dumps = {
        rank: dump
        for rank, dump in byrank.items()
        if rank in members and dump.groups.get(group, members) == members
    }
    # A coalesced group of operations shares one number; its state is that of the last of them.
    calls = {
        rank: {op.seq: op for op in dump.ops.get(group, ()) if not op.p2p}
        for rank, dump in dumps.items()
    }
    open_ = [op for ops in calls.values() for op in ops.values() if not op.done]
    if not open_:
        return None
    seq = min(op.seq for op in open_)
    here = {rank: ops[seq] for rank, ops in calls.items() if seq in ops}
    usual = Counter(_like(op) for op in here.values()).most_common(1)[0][0]
    at_seq = [o for o in open_ if o.seq == seq]
    op = next((o for o in at_seq if _like(o) == usual), at_seq[0])
    one = Blocked(group, _label(group, dumps), seq, op, len(members))
    one.unseen = [rank for rank in members if rank not in byrank]
    for rank, dump in sorted(dumps.items()):
        mine = here.get(rank)
        if mine is None:
            # Its record of that number may have been overwritten: then it has called it.
            if dump.enqueued.get(group, 0) < seq:
                one.missing.append(rank)
        elif _like(mine) != usual:
            one.others[rank] = mine
        elif mine.done:
            one.completed.append(rank)
        elif mine.state == "started":
            one.started.append(rank)
        else:
            one.scheduled.append(rank)
    return one


def _like(op: Op) -> tuple[str, str, str]:
    """Return what must be the same on all ranks."""
    uneven = any(word in op.name for word in _UNEVEN)
    # A broadcast's or reduce's other ranks may record no inputs.
    free = uneven or op.name.endswith((":broadcast", ":reduce"))
    return (op.name, "" if free else op.sizes, "" if free else op.dtypes)


def _label(group: str, dumps: Mapping[int, Dump]) -> str:
    for dump in dumps.values():
        if dump.labels.get(group) and dump.labels[group] != "undefined":
            return dump.labels[group]
    return group
