"""Words about collectives and ranks that wait in them."""

from __future__ import annotations

from typing import Final

from engine.readers.nccl.lines import listed
from engine.readers.nccl.watchdog import Group, Work

_OPERATIONS: Final = {
    "ALLREDUCE": "all-reduce",
    "ALLREDUCE_COALESCED": "all-reduce",
    "ALLGATHER": "all-gather",
    "_ALLGATHER_BASE": "all-gather",
    "ALLGATHER_COALESCED": "all-gather",
    "REDUCE_SCATTER": "reduce-scatter",
    "_REDUCE_SCATTER_BASE": "reduce-scatter",
    "BROADCAST": "broadcast",
    "ALLTOALL": "all-to-all",
    "ALLTOALL_BASE": "all-to-all",
    "BARRIER": "barrier",
    "SEND": "send",
    "RECV": "receive",
}


def waiting(
    group: Group, here: list[int], seqs: dict[int, int], op: str | None, work: Work | None
) -> str:
    """Return which ranks wait in which collective."""
    ranks = [r for r in here if r >= 0]
    who = f"Rank{plural(ranks)} {listed(ranks)}" if ranks else "A rank"
    verb = "all wait" if len(ranks) > 2 else "wait" if len(ranks) > 1 else "waits"
    what = f"a {named(op)}" if op else "a collective"
    what = what.replace("a all", "an all")
    what += size(work) if work else ""
    group_words = of_group(group)
    distinct = sorted(set(seqs.values()))
    if len(distinct) == 1:
        return f"{who} {verb} in {what}, sequence {distinct[0]}{group_words}."
    if distinct:
        by_seq = "; ".join(
            f"rank{plural(rs)} {listed(rs)} at {seq}"
            for seq, rs in ((q, [r for r, v in seqs.items() if v == q]) for q in distinct[:8])
        )
        return f"{who} timed out in different calls{group_words}: {by_seq}."
    return f"{who} {verb} in {what}{group_words}."


def named(op: str | None) -> str:
    """Return an operation of PyTorch as people call it, with its own name."""
    if op is None:
        return "collective"
    word = _OPERATIONS.get(op)
    return f"{word} ({op})" if word else op


def size(work: Work) -> str:
    """Return how much a collective moves, as far as the line tells."""
    if work.elements_in is None:
        return f" of shape [{work.shape}]" if work.shape else ""
    if work.elements_out is None or work.elements_out == work.elements_in:
        return f" of {work.elements_in} elements"
    return f" of {work.elements_in} elements in, {work.elements_out} out"


def of_group(group: Group) -> str:
    """Return which process group is meant; nothing for the one of all ranks."""
    return f" of process group {group.name}" if group.name not in ("", "0") else ""


def plural(ranks: list[int]) -> str:
    """Return the ending of a noun."""
    return "s" if len(ranks) > 1 else ""
