"""The same operation on several ranks side by side, for a sample of operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.nccl.records import SYMMETRIC, Record

# A multiplier that spreads consecutive numbers (Knuth): programs repeat their collectives in
# steps, so that every n-th operation would always be the same one.
_SPREAD = 0x9E3779B1


@dataclass(slots=True)
class Operation:
    """One operation: size (bytes), highest bus bandwidth (GB/s), microseconds by rank."""

    size: int
    busbw: float | None = None
    by_rank: dict[int, float] = field(default_factory=dict)


Key = tuple[str, str, int]


class Matches:
    """Keeps durations by operation; when there are too many, half of the operations are dropped.

    Which are kept depends on their number alone, so every rank keeps the same ones, whatever the
    order of files.

    Attributes:
        LIMIT: durations kept.
        stride: one of so many operations is kept, a power of two.
    """

    LIMIT = 200_000

    def __init__(self) -> None:
        self._found: dict[Key, Operation] = {}
        self._kept = 0
        self.stride = 1

    def add(self, record: Record) -> None:
        """Take a record, if it is of a collective in which all ranks do alike."""
        sequence, rank = record.sequence, record.rank
        if sequence is None or rank is None or record.collective not in SYMMETRIC:
            return
        if not self._sampled(sequence):
            return
        key = (record.comm, record.collective, sequence)
        one = self._found.get(key)
        if one is None:
            one = self._found[key] = Operation(record.size)
        self._kept += rank not in one.by_rank
        one.by_rank[rank] = record.duration_us
        if record.busbw is not None and record.busbw > (one.busbw or 0.0):
            one.busbw = record.busbw
        if self._kept > self.LIMIT:
            self._thin()

    def together(self) -> Iterator[tuple[Key, Operation]]:
        """Yield the operations of which at least two ranks were seen."""
        for key, one in self._found.items():
            if len(one.by_rank) > 1:
                yield key, one

    def _sampled(self, sequence: int) -> bool:
        mixed = ((sequence * _SPREAD) & 0xFFFFFFFF) >> 8
        return mixed % self.stride == 0

    def _thin(self) -> None:
        while self._kept > self.LIMIT // 2 and self.stride < 1 << 20:
            self.stride *= 2
            self._found = {k: o for k, o in self._found.items() if self._sampled(k[2])}
            self._kept = sum(len(o.by_rank) for o in self._found.values())
