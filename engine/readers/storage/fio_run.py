"""What one fio run reports, whichever of its output formats it was printed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

DIRECTIONS: Final = ("read", "write", "trim")
# Engines that have one request in flight a job, whatever iodepth says (axboe/fio HOWTO, ioengine).
SYNC_ENGINES: Final = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"})


@dataclass(slots=True)
class Flow:
    """One direction of a job or a group. Percentiles are of completion latency, by percent."""

    bytes_per_s: float | None = None
    iops: float | None = None
    io_bytes: float | None = None
    runtime_ms: float | None = None
    mean_us: float | None = None
    max_us: float | None = None
    percentiles_us: dict[float, float] = field(default_factory=dict)

    @property
    def gbs(self) -> float | None:
        """Bandwidth in GB/s (10^9)."""
        return None if self.bytes_per_s is None else self.bytes_per_s / 1e9


@dataclass(slots=True)
class Job:
    """A job, or several that fio reports together. ``jobs`` of one name have run."""

    line: int
    name: str
    host: str | None = None
    group: int = 0
    jobs: int = 1
    error: int = 0
    rw: str | None = None
    block_bytes: float | None = None
    engine: str | None = None
    depth: int | None = None
    flows: dict[str, Flow] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def flow(self, direction: str) -> Flow:
        """Return the figures of a direction, made if they are not there."""
        return self.flows.setdefault(direction, Flow())


@dataclass(frozen=True, slots=True)
class GroupTotal:
    """A line of "Run status": the bandwidth of all jobs of a group in one direction."""

    line: int
    host: str | None
    group: int
    direction: str
    bytes_per_s: float
    runtime_ms: float | None


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device that the run used, from "Disk stats"; ``busy_percent`` is its ``util``."""

    line: int
    host: str | None
    name: str
    busy_percent: float


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that fio printed by itself; ``code`` is an errno, 0 if it is not shown."""

    line: int
    host: str | None
    code: int
    words: str
