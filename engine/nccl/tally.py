"""Add records up by communicator, collective, size and rank, in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from engine.nccl.matches import Matches
from engine.nccl.records import SYMMETRIC, Record, bucket
from engine.nccl.sketch import Sketch

_MOST_WORDS = 8


@dataclass(slots=True)
class Group:
    """Records of one communicator, collective and size bucket.

    ``members`` are durations (us) by rank, or by host and GPU where no rank is told.
    """

    ranks: int | None
    nodes: int | None
    comm_name: str | None
    size_min: int
    size_max: int
    duration: Sketch = field(default_factory=Sketch)
    busbw: Sketch = field(default_factory=Sketch)
    members: dict[int | str, Sketch] = field(default_factory=dict)
    timing: Counter[str] = field(default_factory=Counter)
    algorithms: Counter[str] = field(default_factory=Counter)
    averages: bool = False


@dataclass(slots=True)
class Comm:
    """A communicator: its size, and host and process of each rank of it."""

    name: str | None
    ranks: int | None
    nodes: int | None
    where: dict[int, str | None] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Numbers:
    """Which operations of a communicator and collective have records, by their number."""

    low: int
    high: int
    count: int = 0

    def add(self, sequence: int) -> None:
        """Count a record."""
        self.low, self.high = min(self.low, sequence), max(self.high, sequence)
        self.count += 1


GroupKey = tuple[str, str, int]


class Tally:
    """Everything counted so far.

    Attributes:
        GROUPS, MEMBERS, COMMS, RANKS: how many groups, ranks in groups, communicators and ranks of
            communicators are kept apart; what is beyond is counted in ``left_out``.
        groups: by communicator, collective and upper end of the size bucket.
        numbers: by communicator and collective.
    """

    GROUPS = 4_096
    MEMBERS = 16_384
    COMMS = 1_024
    RANKS = 65_536

    def __init__(self) -> None:
        self.groups: dict[GroupKey, Group] = {}
        self.comms: dict[str, Comm] = {}
        self.numbers: dict[tuple[str, str], Numbers] = {}
        self.matches = Matches()
        self.records = 0
        self.left_out = 0
        self.members_left_out = 0
        self._members = 0
        self._ranks = 0

    def add(self, record: Record) -> None:
        """Count a record."""
        self.records += 1
        self._place(record)
        key = (record.comm, record.collective, bucket(record.size))
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= self.GROUPS:
                self.left_out += 1
                return
            group = self.groups[key] = Group(
                record.ranks, record.nodes, record.comm_name, record.size, record.size
            )
        group.size_min = min(group.size_min, record.size)
        group.size_max = max(group.size_max, record.size)
        group.duration.add(record.duration_us)
        group.averages |= record.mean
        if record.busbw is not None:
            group.busbw.add(record.busbw)
        _count(group.timing, record.timing)
        _count(group.algorithms, record.algorithm)
        self._member(group, record)
        self._number(record)
        if not record.mean:
            self.matches.add(record)

    def _member(self, group: Group, record: Record) -> None:
        who = record.rank if record.rank is not None else record.where
        if who is None:
            return
        member = group.members.get(who)
        if member is None:
            if self._members >= self.MEMBERS:
                self.members_left_out += 1
                return
            self._members += 1
            member = group.members[who] = Sketch()
        member.add(record.duration_us)

    def _number(self, record: Record) -> None:
        if record.sequence is None or record.rank is None or record.collective not in SYMMETRIC:
            return  # not every rank takes part in what has a peer
        key = (record.comm, record.collective)
        numbers = self.numbers.get(key)
        if numbers is None:  # there are no more of them than groups
            numbers = self.numbers[key] = Numbers(record.sequence, record.sequence)
        numbers.add(record.sequence)

    def _place(self, record: Record) -> None:
        comm = self.comms.get(record.comm)
        if comm is None:
            if len(self.comms) >= self.COMMS:
                return
            comm = self.comms[record.comm] = Comm(record.comm_name, record.ranks, record.nodes)
        comm.ranks = comm.ranks or record.ranks
        rank = record.rank
        if rank is None:
            return
        if rank not in comm.where:
            if self._ranks >= self.RANKS:
                return
            self._ranks += 1
            comm.where[rank] = record.where
            if record.pid is not None:
                comm.pids[rank] = record.pid
        elif comm.where[rank] is None:
            comm.where[rank] = record.where


def _count(words: Counter[str], word: str | None) -> None:
    if word is not None and (word in words or len(words) < _MOST_WORDS):
        words[word] += 1
