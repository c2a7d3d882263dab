"""Time-outs of PyTorch's NCCL watchdog, compared over all ranks that print one.

Forms (pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 1.13 to 2.9)::

    [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE,
        NumelIn=…, NumelOut=…, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
    [PG ID 0 PG GUID 0(default_pg) Rank 3] failure detected by watchdog at work sequence id: 412
        PG status: last enqueued work: 415, last completed work: 411

The sequence number counts within a process group. The rank that enqueued least is the one that the
others wait for; another operation or size under one number is a program that went separate ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from engine.readers.nccl.lines import NcclLine

_CAUGHT = re.compile(
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d{1,15}), ?)?OpType=(?P<op>\w{1,40})(?P<rest>[^)]{0,400})"
)
_NUMEL = re.compile(r"NumelIn=(?P<in>\d{1,18}), ?NumelOut=(?P<out>\d{1,18})")
_SHAPE = re.compile(r"TensorShape=\[(?P<shape>[\d, ]{0,80})\]")
_TIMEOUT = re.compile(r"Timeout\(ms\)=(?P<timeout>\d{1,12})")
_RAN = re.compile(r"ran for (?P<ran>\d{1,12}) milliseconds")
_WHO = re.compile(
    r"\[(?:PG (?:ID )?(?P<group>\d{1,7}) )?(?:PG GUID (?P<guid>[\w.-]{1,80})"
    r"(?:\((?P<name>[\w.:-]{1,80})\))? )?Rank (?P<rank>\d{1,7})\]"
)
_STATUS = re.compile(
    r"(?:at work(?: sequence id)?|at NCCL work|work sequence id):? (?P<seq>\d{1,15})"
)
_ENQUEUED = re.compile(r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,15})")
_COMPLETED = re.compile(r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,15})")
_SIGNAL = re.compile(r"due to a collective timeout from rank (?P<rank>\d{1,7})")
_MARKS: Final = (
    "WorkNCCL(",
    "detected by watchdog at work",
    "ast enqueued NCCL work:",
    "ast enqueued work:",
    "due to a collective timeout from rank",
)


@dataclass(frozen=True, slots=True)
class Work:
    """A collective that timed out; ``shape`` is what the line gives of its size, as printed."""

    op: str
    seq: int | None
    elements_in: int | None
    elements_out: int | None
    shape: str


@dataclass(slots=True)
class RankState:
    """What one rank of one process group said of itself."""

    line: int
    work: Work | None = None
    timed_out: bool = False
    seq: int | None = None
    enqueued: int | None = None
    completed: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None

    def joined(self, other: RankState) -> RankState:
        """Return both together; what this one lacks is the other's."""
        both = replace(self, line=min(self.line, other.line))
        both.timed_out |= other.timed_out
        for name in ("work", "seq", "enqueued", "completed", "timeout_ms", "ran_ms"):
            if getattr(both, name) is None:
                setattr(both, name, getattr(other, name))
        return both


@dataclass(slots=True)
class Group:
    """The ranks of one process group that print time-outs, by global rank (group rank if alone)."""

    name: str
    ranks: dict[int, RankState] = field(default_factory=dict)

    def states(self) -> Iterator[tuple[int, RankState]]:
        """Yield ranks in order."""
        for rank in sorted(self.ranks):
            yield rank, self.ranks[rank]


class Watchdog:
    """Gathers what the watchdogs print, bounded."""

    GROUPS: Final = 256
    RANKS: Final = 4_096

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.named: set[int] = set()
        """Ranks that others say timed out first."""
        self.line = 0
        self.overflow = 0
        self.failed_async = 0
        """Works that ended in an error of the communicator, not in a time-out."""

    def together(self) -> list[Group]:
        """Return the groups, lines without a group put to the one that they are of, if it is sure.

        Older releases name the group in some of their lines only.
        """
        groups = {key: Group(one.name, dict(one.ranks)) for key, one in self.groups.items()}
        bare = groups.pop("", None)
        if bare is None:
            return list(groups.values())
        seqs = {s.seq for s in bare.ranks.values()}
        same = [g for g in groups.values() if seqs & {s.seq for s in g.ranks.values()}]
        same = same or list(groups.values())
        if len(same) != 1:
            return [bare, *groups.values()]
        for rank, state in bare.ranks.items():
            mine = same[0].ranks.get(rank)
            same[0].ranks[rank] = state if mine is None else mine.joined(state)
        return list(groups.values())

    @property
    def seen(self) -> bool:
        """Whether any watchdog printed anything."""
        return bool(self.groups)

    def feed(self, line: NcclLine) -> bool:
        """Take a line; return whether a watchdog printed it."""
        text = line.text
        if not any(mark in text for mark in _MARKS):
            return False
        who = _WHO.search(text[:2_048])
        rank = line.rank if line.rank is not None else int(who["rank"]) if who else None
        signal = _SIGNAL.search(text)
        if signal is not None and len(self.named) < self.RANKS:
            self.named.add(int(signal["rank"]))
        if rank is None:
            rank = int(signal["rank"]) if signal is not None else -1
        state = self._state(self._group(who), rank, line.number)
        if state is not None:
            self._take(state, text)
        return True

    def _group(self, who: re.Match[str] | None) -> str:
        if who is None or not who["group"]:
            return ""
        return f"{who['group']} ({who['name']})" if who["name"] else str(who["group"])

    def _state(self, name: str, rank: int, number: int) -> RankState | None:
        self.line = self.line or number
        key = name.partition(" ")[0]
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= self.GROUPS:
                self.overflow += 1
                return None
            group = self.groups[key] = Group(name)
        if len(name) > len(group.name):
            group.name = name
        if rank not in group.ranks and len(group.ranks) >= self.RANKS:
            self.overflow += 1
            return None
        return group.ranks.setdefault(rank, RankState(number))

    def _take(self, state: RankState, text: str) -> None:
        caught = _CAUGHT.search(text)
        if caught is not None:
            if "async exception" in text or "NCCL error" in text:
                self.failed_async += 1
            state.timed_out |= "imeout:" in text or "timing out" in text
            self._work(state, caught, text)
        status = _STATUS.search(text)
        if status is not None and state.seq is None:
            state.seq = int(status["seq"])
        for pattern, name in ((_ENQUEUED, "enqueued"), (_COMPLETED, "completed")):
            found = pattern.search(text)
            if found is not None:
                setattr(state, name, int(found[name]))

    @staticmethod
    def _work(state: RankState, caught: re.Match[str], text: str) -> None:
        numel, shape = _NUMEL.search(caught["rest"]), _SHAPE.search(caught["rest"])
        timeout, ran = _TIMEOUT.search(text), _RAN.search(text)
        seq = int(caught["seq"]) if caught["seq"] else None
        if state.work is not None:
            return
        state.work = Work(
            op=caught["op"],
            seq=seq,
            elements_in=int(numel["in"]) if numel else None,
            elements_out=int(numel["out"]) if numel else None,
            shape=shape["shape"] if shape else "",
        )
        state.seq = seq if seq is not None else state.seq
        state.timeout_ms = int(timeout["timeout"]) if timeout else None
        state.ran_ms = int(ran["ran"]) if ran else None
