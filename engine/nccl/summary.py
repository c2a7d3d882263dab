"""From a tally to the answer: figures by group, communicators, stragglers, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from engine.nccl.model import CommFigures, GroupFigures, NcclStats, RankFigures, Spread
from engine.nccl.records import SYMMETRIC, bucket
from engine.nccl.sketch import Sketch
from engine.nccl.straggler import Waiting, stragglers, waiting
from engine.nccl.tally import Comm, Group, GroupKey, Tally

_MOST_RANKS = 256
_MOST_MISSING = 64
# Waiting above this share that nobody in particular causes is worth a word.
_SPREAD_OUT = 0.20

# Below this share of operations with a record it is said.
_RECORDED = 0.5

_CAVEAT = (
    "These times include waiting for the last rank: a long one does not say that its rank or link "
    "is slow, and if all are long, transfer and waiting for a rank that is not in these files "
    "cannot be told apart."
)


def summary(
    tally: Tally,
    *,
    files: int = 1,
    sources: Sequence[str] = (),
    unread_lines: int = 0,
    warnings: Sequence[str] = (),
) -> NcclStats:
    """Return the figures of a tally.

    Args:
        tally: what was counted.
        files: how many were read.
        sources: what wrote them.
        unread_lines: lines without a record.
        warnings: what could not be read.
    """
    waits = waiting(tally)
    moving = _moving(tally)
    groups = [_group(key, group, moving.get(key)) for key, group in tally.groups.items()]
    groups.sort(key=lambda g: (-g.total_s, g.comm, g.collective, g.size_bytes))
    late = tuple(stragglers(tally, waits))
    return NcclStats(
        files=files,
        sources=tuple(dict.fromkeys(sources)),
        records=tally.records,
        unread_lines=unread_lines,
        left_out=tally.left_out,
        communicators=tuple(_comm(k, c, waits.get(k)) for k, c in sorted(tally.comms.items())),
        groups=tuple(groups),
        stragglers=late,
        notes=tuple(_notes(tally, waits, {s.comm for s in late})),
        warnings=tuple(warnings),
    )


def _moving(tally: Tally) -> dict[GroupKey, float]:
    """Return the median over operations of the highest bus bandwidth of any rank, by group."""
    found: dict[GroupKey, list[float]] = {}
    for (comm, collective, _), one in tally.matches.together():
        if one.busbw is not None:
            found.setdefault((comm, collective, bucket(one.size)), []).append(one.busbw)
    return {key: median(values) for key, values in found.items()}


def _group(key: GroupKey, group: Group, moving: float | None) -> GroupFigures:
    comm, collective, size = key
    members = sorted(group.members.items(), key=lambda m: (isinstance(m[0], str), m[0]))
    middle = median(m.median for _, m in members) if members else 0.0
    return GroupFigures(
        collective=collective,
        comm=comm,
        comm_name=group.comm_name,
        ranks=group.ranks,
        nodes=group.nodes,
        size_bytes=size,
        size_min=group.size_min,
        size_max=group.size_max,
        count=group.duration.count,
        total_s=round(group.duration.total / 1e6, 6),
        duration_us=_spread(group.duration),
        busbw_gbs=_figure(group.busbw.median) if group.busbw.count else None,
        busbw_moving_gbs=None if moving is None else _figure(moving),
        timing=tuple(sorted(group.timing)),
        algorithms=tuple(sorted(group.algorithms)),
        averages=group.averages,
        by_rank=tuple(
            RankFigures(
                rank=who if isinstance(who, int) else None,
                where=who if isinstance(who, str) else None,
                count=one.count,
                p50_us=_figure(one.median),
                p99_us=_figure(one.quantile(0.99)),
                ratio=round(one.median / middle, 4) if middle else 1.0,
            )
            for who, one in members[:_MOST_RANKS]
        ),
        left_out=max(0, len(members) - _MOST_RANKS),
    )


def _spread(sketch: Sketch) -> Spread:
    return Spread(
        min=_figure(sketch.low if sketch.count else 0.0),
        p50=_figure(sketch.median),
        p90=_figure(sketch.quantile(0.9)),
        p99=_figure(sketch.quantile(0.99)),
        max=_figure(sketch.high),
        mean=_figure(sketch.mean),
        mad=_figure(sketch.mad()),
    )


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def _comm(key: str, comm: Comm, waits: Waiting | None) -> CommFigures:
    missing = [] if comm.ranks is None or not comm.where else _missing(comm)
    return CommFigures(
        comm=key,
        name=comm.name,
        ranks=comm.ranks,
        nodes=comm.nodes,
        seen=len(comm.where),
        missing=tuple(missing[:_MOST_MISSING]),
        missing_count=len(missing),
        compared=waits.operations if waits else 0,
        wait_share=round(waits.share, 4) if waits else None,
    )


def _missing(comm: Comm) -> list[int]:
    return [r for r in range(min(comm.ranks or 0, 65_536)) if r not in comm.where]


def _notes(tally: Tally, waits: dict[str, Waiting], late: set[str]) -> Iterator[str]:
    if not tally.records:
        return
    yield _CAVEAT
    for key, comm in sorted(tally.comms.items()):
        missing = _missing(comm) if comm.where else []
        if missing:
            shown = ", ".join(map(str, missing[:8])) + (" and more" if len(missing) > 8 else "")
            verb = "is" if len(missing) == 1 else "are"
            yield (
                f"Communicator {comm.name or key} has {comm.ranks} ranks; {len(missing)} of them "
                f"({shown}) {verb} in none of these files, and a late one may be among them."
            )
    for key, one in sorted(waits.items()):
        if key not in late and one.share >= _SPREAD_OUT:
            comm_name = tally.comms[key].name if key in tally.comms else None
            yield (
                f"{100 * one.share:.0f} % of the time in communicator {comm_name or key} is "
                "waiting, and no rank in particular causes it: uneven work, or ranks that take "
                "turns being late."
            )
    yield from _gaps(tally)
    yield from _clocks(tally)
    if tally.matches.stride > 1:
        yield (
            f"Waiting was worked out on one of {tally.matches.stride} operations, the same on all "
            "ranks."
        )
    if tally.members_left_out or tally.left_out:
        yield (
            f"{tally.left_out} record(s) are in no group and {tally.members_left_out} in no "
            "rank's figures: there were too many different ones."
        )


def _gaps(tally: Tally) -> Iterator[str]:
    """Say it where most operations have no record, for the one that lacks most."""
    worst: tuple[float, str] | None = None
    for (comm, collective), numbers in sorted(tally.numbers.items()):
        known = tally.comms.get(comm)
        ranks = len(known.where) if known else 0
        expected = (numbers.high - numbers.low + 1) * ranks
        share = numbers.count / expected if expected else 1.0
        if share < _RECORDED and (worst is None or share < worst[0]):
            name = (known.name if known else None) or comm
            worst = (share, f"{100 * share:.2g} % of {collective} in communicator {name}")
    if worst is not None:
        yield (
            f"Only {worst[1]} has records, by the numbers of operations: before NCCL 2.30 "
            "Inspector writes the last operation before each dump alone, later ones keep 1,024 "
            "(NCCL_INSPECTOR_DUMP_COLL_RING_SIZE), and small ones (under 8 KiB) are left out. "
            "Counts here are of records."
        )


def _clocks(tally: Tally) -> Iterator[str]:
    timing = {word for group in tally.groups.values() for word in group.timing}
    if timing & {"kernel_cpu", "collective_cpu"}:
        yield (
            "Some times were taken by the CPU (kernel_cpu, collective_cpu): collective_cpu may be "
            "the launch alone. Only kernel_gpu is the time on the device."
        )
    if any(group.averages for group in tally.groups.values()):
        yield (
            "Prometheus text files hold averages of their last interval: quantiles are over those, "
            "and gpu, the CUDA device (renumbered by CUDA_VISIBLE_DEVICES), stands for the rank."
        )
    if any(k[1] not in SYMMETRIC for k in tally.groups):
        yield (
            "In operations with a root or a peer (Broadcast, Reduce, Send, Recv …) times of ranks "
            "differ by role; stragglers were looked for in the others only."
        )
