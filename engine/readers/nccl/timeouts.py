"""What the watchdogs' time-outs of several ranks mean: who is missing, behind or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from engine.readers.nccl.lines import listed
from engine.readers.nccl.mismatch import POINT_TO_POINT, first, mismatch, told
from engine.readers.nccl.timeout_words import plural, waiting
from engine.readers.nccl.told import ORDER, Told
from engine.readers.nccl.watchdog import Group, RankState, Watchdog

# torch/distributed/constants.py: 10 minutes for NCCL (30 in releases before 2.2).
_DEFAULTS: Final = {600_000: "10 minutes", 1_800_000: "30 minutes"}
_ACTION: Final = (
    "Look at {whom} first: the log (an exception, out of memory, a data loader, a checkpoint), its "
    "stack (py-spy dump --native --pid PID) and the Flight Recorder dumps of all ranks "
    "(torchfrtrace); then Xid lines, the network and GPU links of its host at that time. {wait}"
)
# The first ones tell; a large job has a process group for each of many sets of ranks.
_GROUPS: Final = 8
_WAIT: Final = "A longer time-out does not cure a hang; raise it only for a step known to be slow."


def tell(watchdog: Watchdog, nranks: int, *, network: bool, memory: bool) -> Iterator[Told]:
    """Yield one finding for each process group that timed out.

    Args:
        watchdog: what was printed.
        nranks: number of ranks of the job, 0 if unknown.
        network: whether the log holds an error that explains a hang (a failed completion …).
        memory: whether a rank ran out of GPU memory.
    """
    reason = _reason(memory=memory, network=network)
    groups = sorted(watchdog.together(), key=lambda g: min(s.line for s in g.ranks.values()))
    for group in groups[:_GROUPS]:
        states = {rank: state for rank, state in group.states() if rank >= 0} or group.ranks
        if not any(s.timed_out or s.seq is not None or s.work for s in states.values()):
            yield _bystanders(group, states)
            continue
        whole = group.name.partition(" ")[0] in ("", "0")
        blamed = watchdog.named
        yield mismatch(group, states) or _hang(
            group, states, nranks if whole else 0, blamed, reason, whole=whole
        )
    if len(groups) > _GROUPS:
        yield _more(groups[_GROUPS:])


def _hang(
    group: Group,
    states: dict[int, RankState],
    nranks: int,
    blamed: set[int],
    reason: str,
    *,
    whole: bool,
) -> Told:
    here = sorted(states)
    seqs = {r: s.seq for r, s in states.items() if s.seq is not None}
    behind = _behind(states)
    works = [s.work for s in states.values() if s.work is not None]
    op = works[0].op if works else None
    timeout = first(states, "timeout_ms")
    says = waiting(
        group,
        [r for r in here if states[r].seq is not None or states[r].work],
        seqs,
        op,
        works[0] if works else None,
    )
    missing = [r for r in range(nranks) if r not in states] if 0 < nranks <= 65_536 else []
    culprits: list[int] = []
    if behind:
        low = min(_reach(states[r]) for r in behind)
        high = max(_reach(s) for s in states.values())
        says += (
            f" Rank{plural(behind)} {listed(behind)} enqueued up to {low}, others up to {high}: "
            f"{'they are' if len(behind) > 1 else 'it is'} behind, the others wait there."
        )
        if len({w.op for w in works}) > 1:
            says += (
                " Their operations differ as well: the ranks may have made another number or order"
                " of calls (a mismatch in the program)."
            )
        culprits = behind
    elif missing and len(missing) < nranks:
        says += (
            f" Rank{plural(missing)} {listed(missing)} of {nranks}"
            f" print{'' if len(missing) > 1 else 's'} nothing here: never joined, died before, or"
            " the log is missing."
        )
        culprits = missing
    elif gaps := _gaps(here) if whole and not nranks and op not in POINT_TO_POINT else []:
        says += (
            f" Rank{plural(gaps)} {listed(gaps)} {'print' if len(gaps) > 1 else 'prints'} nothing"
            " here, though higher ranks do: never joined, died before, or the log is missing."
            " There may be more ranks above."
        )
        culprits = missing = gaps
    elif nranks and not missing and len(set(seqs.values())) == 1:
        says += (
            " All ranks are in the same collective: nobody is missing, so the transport (network,"
            " NVLink) or a GPU hangs."
        )
    else:
        says += (
            " Some rank that is not in this list did not join or is behind, or the transport hung."
        )
    says += reason
    if timeout in _DEFAULTS:
        says += f" {_DEFAULTS[timeout]} is the default time-out."
    line = min(s.line for s in states.values())
    data: dict[str, Any] = {
        "seq": next(iter(seqs.values())) if len(set(seqs.values())) == 1 else
        {str(r): q for r, q in sorted(seqs.items())[:1_024]} or None,
        "op": op if len({w.op for w in works}) < 2 else
        {str(r): s.work.op for r, s in states.items() if s.work},
        "elements_in": works[0].elements_in if works else None,
        "elements_out": works[0].elements_out if works else None,
        "timeout_ms": timeout,
        "ran_ms": max((s.ran_ms for s in states.values() if s.ran_ms), default=None),
        "ranks": [r for r in here if r >= 0][:1_024],
        "last_enqueued": {str(r): s.enqueued for r, s in states.items() if s.enqueued is not None},
        "last_completed": {
            str(r): s.completed for r, s in states.items() if s.completed is not None
        },
        "process_group": group.name or None,
        "behind_ranks": behind[:1_024],
        "missing_ranks": missing[:1_024],
        "named_ranks": sorted(blamed)[:64],
    }  # fmt: skip
    if behind:
        data["rank"] = behind[0]
    whom = (
        f"rank{plural(culprits)} {listed(culprits)}"
        if culprits
        else "the rank that is missing or behind"
    )
    return told(
        line,
        says,
        _ACTION.format(whom=whom, wait=_WAIT),
        "collective_hang",
        "watchdog_timeout",
        data,
        culprits[0] if culprits else None,
        # What explains it stands before it.
        ORDER["root"] if behind and not reason else ORDER["symptom"],
    )


def _more(groups: list[Group]) -> Told:
    """The process groups that are not told one by one."""
    line = min(s.line for g in groups for s in g.ranks.values())
    return told(
        line,
        f"{len(groups)} more process groups timed out, later than these.",
        "Look at the first ones; the others follow as a rule.",
        None,
        "watchdog_more",
        {"process_groups": [g.name for g in groups][:64]},
        None,
        ORDER["effect"],
    )


def _bystanders(group: Group, states: dict[int, RankState]) -> Told:
    """Ranks that only wrote their dumps because another one timed out."""
    here = sorted(states)
    return told(
        min(s.line for s in states.values()),
        f"Rank{plural(here)} {listed(here)} only report that another rank timed out: the reason"
        " stands in that rank's log.",
        "Read the first time-out line over all ranks and the Flight Recorder dumps (torchfrtrace).",
        None,
        "watchdog_signal",
        {
            "ranks": [r for r in here if r >= 0][:1_024],
            "last_enqueued": {
                str(r): s.enqueued for r, s in states.items() if s.enqueued is not None
            },
            "process_group": group.name or None,
        },
        None,
        ORDER["effect"],
    )


def _behind(states: dict[int, RankState]) -> list[int]:
    """Ranks that got less far than the others, if these are the minority."""
    reach = {r: _reach(s) for r, s in states.items() if _reach(s) >= 0}
    if len(reach) < 2 or min(reach.values()) == max(reach.values()):
        return []
    lowest = min(reach.values())
    behind = sorted(r for r, v in reach.items() if v == lowest)
    waiting = max((s.seq for s in states.values() if s.seq is not None), default=None)
    # A rank that enqueued all that the others wait for is not behind, it just runs less far ahead.
    if waiting is not None and lowest >= waiting and len({s.seq for s in states.values()}) == 1:
        return []
    return behind if len(behind) < len(reach) else []


def _gaps(here: list[int]) -> list[int]:
    """Ranks below the highest that prints something, if they are few.

    Where they are many, the paste is an excerpt.
    """
    if len(here) < 2 or here[0] < 0 or here[-1] + 1 >= 2 * len(here):
        return []
    seen = set(here)
    return [rank for rank in range(here[-1]) if rank not in seen]


def _reach(state: RankState) -> int:
    if state.enqueued is not None:
        return state.enqueued
    return state.seq if state.seq is not None else -1


def _reason(*, memory: bool, network: bool) -> str:
    if memory:
        return " A rank ran out of GPU memory: the time-out only follows."
    if network:
        return " An error of the network in this log explains it: the time-out only follows."
    return ""
