"""One measured operation, whatever plugin wrote it."""

from __future__ import annotations

from typing import Final, NamedTuple

# Names as NCCL writes them (NVIDIA/nccl src/collectives.cc, ncclFuncToString).
COLLECTIVES: Final = (
    *("AllReduce", "AllGather", "AllGatherV", "ReduceScatter", "AlltoAll", "Broadcast", "Reduce"),
    *("Gather", "Scatter", "SendRecv", "Send", "Recv"),
)
# In these every rank sends and receives alike and all end together, so a shorter time means a later
# start. Where a root only sends, or only receives, its time is its own.
SYMMETRIC: Final = frozenset({"AllReduce", "AllGather", "AllGatherV", "ReduceScatter", "AlltoAll"})


class Record(NamedTuple):
    """One operation on one rank, or the average of many where ``mean``.

    Attributes:
        collective: as NCCL names it.
        comm: id of the communicator, as text.
        comm_name: its name, None if it has none.
        rank: in the communicator, None if not told; ``ranks`` and ``nodes`` of the communicator.
        where: host, and GPU where that is told: ``node-3``, ``node-3:5``.
        sequence: number of the operation, the same on all ranks, by communicator and collective.
        size: message in bytes, as the tool counts it.
        duration_us: on this rank, waiting for others included.
        busbw: bus bandwidth in GB/s, None if the tool has no formula for the collective.
        timing: clock behind the duration: ``kernel_gpu``, ``kernel_cpu``, ``collective_cpu``.
        algorithm: algorithm and protocol, where told.
        mean: the figures are averages over an unknown number of operations.
        job: Slurm job, where told.
        pid: process that wrote it, where told.
    """

    collective: str
    comm: str
    comm_name: str | None
    rank: int | None
    ranks: int | None
    nodes: int | None
    where: str | None
    sequence: int | None
    size: int
    duration_us: float
    busbw: float | None
    timing: str | None = None
    algorithm: str | None = None
    mean: bool = False
    job: str | None = None
    pid: int | None = None


def printable(text: str, most: int = 128) -> str:
    """Return the start of a text from outside, what cannot be printed replaced."""
    text = text[:most]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def bucket(size: int) -> int:
    """Round a size up to a power of two, in bytes; 0 stays 0."""
    return 1 << (size - 1).bit_length() if size > 0 else 0
