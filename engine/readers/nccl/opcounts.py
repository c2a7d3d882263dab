"""Collectives as they were enqueued (subsystem COLL): which rank is behind, which one differs.

``AllReduce: opCount 2a sendbuff … count 4194304 datatype 7 … comm 0x… [nranks=16] stream 0x…`` is
printed when the call is enqueued; it holds no duration. ``opCount`` is hexadecimal and counts
within a communicator; calls of one group share it. Source: NVIDIA/nccl v2.30.7 src/enqueue.cc.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import listed
from engine.readers.nccl.skim import Collective, Skim
from engine.readers.nccl.told import ORDER, Told

_SOURCE: Final = "NVIDIA/nccl v2.30.7 src/enqueue.cc"
# Calls that all ranks make alike; sends and receives, gathers and scatters may differ by rank.
_ALIKE: Final = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")
# ncclDataType_t, NVIDIA/nccl src/nccl.h.in
_TYPES: Final = dict(
    enumerate(
        (
            "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
            "bfloat16", "float8_e4m3", "float8_e5m2",
        )
    )
)  # fmt: skip

Group = tuple[str, int]
"""A communicator and a rank in it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective as it was enqueued."""

    operation: str
    op_count: int
    elements: int
    datatype: int

    @property
    def words(self) -> str:
        """Return ``AllReduce of 4194304 float32``."""
        return f"{self.operation} of {self.elements} {_TYPES.get(self.datatype, 'elements')}"


def call(one: Collective) -> Call:
    """Take a collective apart; the expression that found it holds the form."""
    operation, _, count = one[0].decode("ascii", "replace").partition(": opCount ")
    _, elements, _, datatype = one[1].decode("ascii", "replace").split(" ")
    return Call(operation, int(count, 16), int(elements), int(datatype))


class OpCounts:
    """Compares the collectives of the ranks of a communicator."""

    def __init__(self, skim: Skim, addresses: Mapping[str, Group | None]) -> None:
        self._skim = skim
        self._addresses = addresses

    def tell(self, *, hang: bool) -> Iterator[Told]:
        """Yield what differs between ranks, and that these lines hold no durations.

        Args:
            hang: whether something else says that the job hangs.
        """
        skim = self._skim
        if not skim.collectives:
            return
        different = self._different()
        if different is not None:
            yield different
        else:
            behind = self._behind(hang=hang)
            if behind is not None:
                yield behind
        names = Counter(one[0].partition(b":")[0] for one in skim.tail)
        operations = {name.decode("ascii", "replace"): n for name, n in names.most_common(16)}
        yield Told(
            ORDER["note"],
            skim.first_collective,
            Finding(
                kind="nccl",
                id="collectives",
                severity=Severity.INFO,
                says=(
                    f"{skim.collectives} collectives were enqueued in this log. NCCL prints no"
                    " durations: a COLL line is written when the call is enqueued."
                ),
                action=(
                    "Durations come from NCCL Inspector (NCCL_PROFILER_PLUGIN), a profiler"
                    " plugin, the Flight Recorder with TORCH_NCCL_ENABLE_TIMING=1, or a kernel"
                    " timeline (nsys)."
                ),
                entity=None,
                line=skim.first_collective,
                cause=None,
                data={
                    "collectives": skim.collectives,
                    "operations": operations,
                },
                sources=(_SOURCE,),
            ),
        )

    def _ranks(self) -> dict[str, dict[int, int]]:
        """The last opCount of each rank, by communicator."""
        found: dict[str, dict[int, int]] = {}
        for address, last in self._skim.last.items():
            group = self._addresses.get(address.decode("ascii", "replace"))
            if group is not None:
                found.setdefault(group[0], {})[group[1]] = call(last).op_count
        return found

    def _behind(self, *, hang: bool) -> Told | None:
        for counts in self._ranks().values():
            lowest, highest = min(counts.values()), max(counts.values())
            behind = sorted(rank for rank, count in counts.items() if count == lowest)
            if lowest == highest or len(behind) * 2 > len(counts):
                continue
            says = (
                f"Rank{'s' if len(behind) > 1 else ''} {listed(behind)} enqueued collectives up to"
                f" opCount {lowest:x}, other ranks of the communicator up to {highest:x}"
                " (hexadecimal)"
            )
            says += (
                ": the others wait for it."
                if hang
                else ". If the job hangs, look there first; a log"
                " that was cut while the job ran looks the same."
            )
            return Told(
                ORDER["root"] if hang else ORDER["note"],
                self._skim.first_collective,
                Finding(
                    kind="nccl",
                    id="rank_behind",
                    severity=Severity.HIGH if hang else Severity.INFO,
                    says=says,
                    action=(
                        "Read the log of that rank and take its stack (py-spy dump --pid PID): data"
                        " loader, checkpoint, an exception, out of memory."
                    ),
                    entity=Entity(Kind.RANK, f"rank {behind[0]}", rank=behind[0]),
                    line=self._skim.first_collective,
                    cause="collective_hang" if hang else None,
                    data={
                        "rank": behind[0],
                        "ranks": behind[:1_024],
                        "lowest_op_count": lowest,
                        "highest_op_count": highest,
                    },
                    sources=(_SOURCE,),
                ),
            )
        return None

    def _different(self) -> Told | None:
        """Find two ranks with different collectives under one opCount.

        Of each rank the first opCount in sight may lack its beginning and the last one its end, so
        the first is left out, and of the last only the common start is compared.
        """
        calls: dict[str, dict[int, dict[int, list[Call]]]] = {}
        for one in self._skim.tail:
            group = self._addresses.get(one[2].decode("ascii", "replace"))
            made = call(one)
            if group is not None and made.operation in _ALIKE:
                counts = calls.setdefault(group[0], {}).setdefault(group[1], {})
                counts.setdefault(made.op_count, []).append(made)
        full = len(self._skim.tail) == self._skim.TAIL
        for ranks in calls.values():
            for count in sorted({c for counts in ranks.values() for c in counts}):
                here = {
                    rank: counts[count]
                    for rank, counts in ranks.items()
                    if count in counts and not (full and count == min(counts))
                }
                pair = _first_difference(here)
                if pair is not None:
                    return self._told(count, *pair)
        return None

    def _told(self, count: int, ranks: tuple[int, int], calls: tuple[Call, Call]) -> Told:
        return Told(
            ORDER["root"],
            self._skim.first_collective,
            Finding(
                kind="nccl",
                id="collectives_differ",
                severity=Severity.HIGH,
                says=(
                    f"Ranks {ranks[0]} and {ranks[1]} enqueued different collectives under the same"
                    f" opCount {count:x}: {calls[0].words} and {calls[1].words}. The program's code"
                    " takes different ways on different ranks; such a job hangs or computes"
                    " nonsense."
                ),
                action=(
                    "Look for code that runs on some ranks only, uneven batches or unused"
                    " parameters; TORCH_DISTRIBUTED_DEBUG=DETAIL names the call in the program."
                ),
                entity=Entity(Kind.RANK, f"rank {ranks[1]}", rank=ranks[1]),
                line=self._skim.first_collective,
                cause="collective_mismatch",
                data={
                    "op_count": count,
                    "ranks": list(ranks),
                    "op": [c.operation for c in calls],
                    "elements": [c.elements for c in calls],
                },
                sources=(_SOURCE,),
            ),
        )


def _first_difference(
    here: Mapping[int, Sequence[Call]],
) -> tuple[tuple[int, int], tuple[Call, Call]] | None:
    if len(here) < 2:
        return None
    # The longest list is taken for the right one; of two alike the lowest rank's.
    reference = min(here, key=lambda rank: (-len(here[rank]), rank))
    for rank in sorted(here):
        for one, other in zip(here[reference], here[rank], strict=False):
            if one != other:
                return (reference, rank), (one, other)
    return None
