"""The answer of ``gpuwhy nccl stats``."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Confidence, Entity, Step


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution of durations in microseconds; quantiles are within 1 % of the true value.

    ``mad`` is the median absolute deviation from the median.
    """

    min: float
    p50: float
    p90: float
    p99: float
    max: float
    mean: float
    mad: float


@dataclass(frozen=True, slots=True)
class RankFigures:
    """One rank in a group. ``rank`` is None where only host and GPU are told.

    ``ratio`` is its median duration over that of the group's ranks: far below 1 means that it
    starts later than the others.
    """

    rank: int | None
    where: str | None
    count: int
    p50_us: float
    p99_us: float
    ratio: float


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Operations of one collective, communicator and size, sizes rounded up to powers of two.

    Attributes:
        size_bytes: upper end of the size bucket; ``size_min`` and ``size_max`` as measured.
        busbw_gbs: median bus bandwidth over ranks and operations, waiting included.
        busbw_moving_gbs: median over operations of the highest of any rank: the rank that waited
            least is nearest to what the links did. None where operations cannot be matched.
        total_s: sum of all durations.
        averages: the durations are averages over an unknown number of operations.
        left_out: ranks that are counted but not listed.
    """

    collective: str
    comm: str
    comm_name: str | None
    ranks: int | None
    nodes: int | None
    size_bytes: int
    size_min: int
    size_max: int
    count: int
    total_s: float
    duration_us: Spread
    busbw_gbs: float | None
    busbw_moving_gbs: float | None
    timing: tuple[str, ...]
    algorithms: tuple[str, ...]
    averages: bool
    by_rank: tuple[RankFigures, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class CommFigures:
    """A communicator: who was seen, and how much of the time in collectives was waiting.

    Attributes:
        missing: ranks of which no record was seen, at most 64 of ``missing_count``.
        compared: operations of which at least two ranks were seen.
        wait_share: share of the time in those that ranks waited for the last one, None if
            nothing could be compared.
    """

    comm: str
    name: str | None
    ranks: int | None
    nodes: int | None
    seen: int
    missing: tuple[int, ...]
    missing_count: int
    compared: int
    wait_share: float | None


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank, or a host, for which the others wait.

    Attributes:
        last_share: share of the operations in which it had the shortest time, so came last.
        ratio: its median duration over the median of the others.
        caused_share: share of all waiting in the communicator that it caused.
        wait_us: median time that another rank waited for it in an operation.
    """

    entity: Entity
    comm: str
    comm_name: str | None
    confidence: Confidence
    says: str
    operations: int
    last_share: float
    ratio: float
    caused_share: float
    wait_share: float
    wait_us: float
    next: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class NcclStats:
    """Figures of all records read.

    Attributes:
        sources: what wrote them: ``inspector``, ``inspector_prometheus``, ``plugin_trace``.
        unread_lines: lines that hold no record.
        left_out: records that were counted but are in no group, as there were too many groups.
    """

    files: int
    sources: tuple[str, ...]
    records: int
    unread_lines: int
    left_out: int
    communicators: tuple[CommFigures, ...]
    groups: tuple[GroupFigures, ...]
    stragglers: tuple[Straggler, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    schema: str = field(default="gpuwhy/nccl-stats/1")
