"""What a collective that blocks shows: a rank that is missing, one that parted, or a hang."""

from __future__ import annotations

from dataclasses import dataclass

from engine.traces.flightrecorder.dump import Op
from engine.traces.flightrecorder.judge import Blocked, Judged
from engine.traces.flightrecorder.shown import act, called_in, operation, ranks, sentence


@dataclass(frozen=True, slots=True)
class Verdict:
    """Id, cause (of the taxonomy, if any), what is said, and what to do."""

    id: str
    cause: str | None
    says: str
    action: str


def verdict(one: Blocked, judged: Judged, what: str) -> Verdict:
    """Say what a blocked collective shows; ``what`` names it."""
    if judged.crossed:
        return Verdict(
            "crossed_groups",
            "collective_mismatch",
            f"{act(one.waiting, 'wait')} in {what} for {ranks(one.missing)}, which wait in "
            "a collective of another group: the groups wait for each other's ranks. The ranks "
            "call the groups' collectives in different order.",
            "Make every rank call collectives of overlapping groups in the same order; look for "
            f"conditions on the rank around {_where(one.op)}.",
        )
    if one.others:
        rank, other = min(one.others.items())
        return Verdict(
            "mismatch",
            "collective_mismatch",
            f"In place of {what} with {_detail(one.op)}, {ranks(sorted(one.others))} called "
            f"{operation(other)} with {_detail(other)}{called_in(other)}: the ranks' programs have "
            f"parted, and the collective cannot complete.{_also(one)}",
            f"Compare what rank {rank} does with the others just before collective {one.seq}: a "
            "branch on rank or data, an uneven last batch, an unused parameter, or different "
            "code on a host. TORCH_DISTRIBUTED_DEBUG=DETAIL checks every collective.",
        )
    if one.missing:
        if one.follows:
            return Verdict(
                "waits_on_other_group",
                None,
                f"{act(one.waiting, 'wait')} in {what} for {ranks(one.missing)}, which "
                "hang(s) in a collective of another group: an effect of that one.",
                "Settle the other collective first.",
            )
        lasts = "; ".join(_last(rank, judged) for rank in one.missing[:4])
        return Verdict(
            "missing_rank",
            "collective_hang",
            f"{act(one.waiting, 'wait')} in {what}; {ranks(one.missing)} never called it: the "
            f"cause is on {'that rank' if len(one.missing) == 1 else 'those ranks'}, not in the "
            f"network. {lasts}.{_also(one)}",
            f"On rank {one.missing[0]}: `py-spy dump --pid PID` for what it does instead (data "
            "loader, checkpoint, exception, slow compute), its log for an exception, `dmesg` for "
            "Xid or the OOM killer.",
        )
    if one.unseen:
        return Verdict(
            "no_dump",
            "collective_hang",
            f"{act(one.waiting, 'wait')} in {what}. {sentence(ranks(one.unseen))} left no dump: "
            "they died, hang before they could write one, or their file was not given; none of the "
            "dumps at hand lacks the collective.",
            "Give the dumps of all ranks. If there are none of these: look at their logs and "
            "hosts first (exit status, `dmesg` for Xid and OOM killer).",
        )
    if one.scheduled and one.started:
        return Verdict(
            "not_started",
            "collective_hang",
            f"All ranks called {what}. Its kernel runs on {ranks(one.started)}, but has not "
            f"begun on {ranks(one.scheduled)}: their GPU is busy with, or stuck in, work "
            "enqueued before it.",
            f"On rank {one.scheduled[0]}: which kernel runs (`cuda-gdb -p PID`, or a py-spy dump "
            "for a blocking call), and `dmesg` for Xid.",
        )
    if one.completed:
        return Verdict(
            "partly_completed",
            "collective_hang",
            f"{what} is completed on {ranks(one.completed)} and not on {ranks(one.waiting)}: "
            "data did not arrive at those. All ranks called it with the same arguments: this "
            "points at a link or GPU of the ranks that wait, not at the program.",
            f"On the hosts of {ranks(one.waiting)}: `dmesg` for Xid, NVLink and mlx5 lines, "
            "`gpuwhy read` on the NCCL log (NCCL_DEBUG=WARN), port counters.",
        )
    if one.size == 1 or len(one.waiting) < one.size:
        return Verdict(
            "pending",
            "collective_hang",
            f"{act(one.waiting, 'wait')} in {what}.",
            "Give the dumps of all ranks to see who is missing.",
        )
    state = "is running" if one.started else "is enqueued"
    return Verdict(
        "all_arrived",
        "collective_hang",
        f"All {one.size} ranks called {what} with the same arguments; it {state} on all and "
        "completed on none. No rank is missing and none differs: the transport or a GPU hangs, "
        "or it is merely slow and the dump was taken too early.",
        "Look at the NCCL log of these ranks (NCCL_DEBUG=WARN), `dmesg` for Xid, NVLink and mlx5 "
        "lines, then run nccl-tests over the same hosts.",
    )


def _also(one: Blocked) -> str:
    told = []
    if one.others and one.missing:
        told.append(f"{ranks(one.missing)} called neither")
    if one.unseen:
        told.append(f"{ranks(one.unseen)} left no dump")
    return f" {'; '.join(told)}." if told else ""


def _last(rank: int, judged: Judged) -> str:
    op = judged.last.get(rank)
    if op is None:
        return f"Rank {rank} recorded nothing"
    what = f"{operation(op)} number {op.seq} ({op.state}){called_in(op)}"
    return f"The last that rank {rank} called is {what}"


def _detail(op: Op) -> str:
    return f"input {op.sizes or 'of unknown size'}{f' {op.dtypes}' if op.dtypes else ''}"


def _where(op: Op) -> str:
    return op.where or "the calls"
