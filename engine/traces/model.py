"""The figures of a capture, the same whatever tool wrote it. Plain numbers; units in the names.

Times are measured on the trace's own clock, from its first event on (``at_ms``). All shares are in
percent. What a trace cannot tell is None, which is not the same as 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Kernel:
    """All launches of one kernel on one device. ``share_percent`` is of the sum over kernels."""

    name: str
    kind: str
    count: int
    total_ms: float
    mean_us: float
    min_us: float
    max_us: float
    share_percent: float


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of one direction. ``memory`` is the host side: pageable, pinned, managed, or None."""

    direction: str
    memory: str | None
    count: int
    size_bytes: int | None
    total_ms: float
    rate_gbs: float | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Spans over ``over_ms`` in which a device did nothing, between its first and last work."""

    over_ms: float
    count: int
    total_ms: float
    longest_ms: float
    longest_at_ms: float | None


@dataclass(frozen=True, slots=True)
class Idle:
    """What the host did while the device was idle (ms each), as far as the trace shows it.

    Attributes:
        data_ms: the program waited for its data loader.
        checkpoint_ms: it was inside a range that is called like a checkpoint.
        allocate_ms: it was inside calls that allocate or free memory.
        sync_ms: it waited for the GPU, or had just done so: the queue had run dry.
        launch_ms: it executed operators or launch calls; short gaps between kernels count here.
        queued_ms: the next work had been launched before: it waited on the device.
        waiting_ms: a thread that launches work slept or read in the operating system.
        unknown_ms: nothing in the trace says.
    """

    data_ms: float = 0.0
    checkpoint_ms: float = 0.0
    allocate_ms: float = 0.0
    sync_ms: float = 0.0
    launch_ms: float = 0.0
    queued_ms: float = 0.0
    waiting_ms: float = 0.0
    unknown_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU of a capture.

    Attributes:
        span_ms: from the begin of the first to the end of the last work; all shares are of it.
        busy_ms: length of the union of kernels, copies, memsets and graphs; ``idle_ms`` the rest.
        compute_ms, communication_ms, copy_ms: lengths of the unions of kernels that compute, of
            kernels that communicate, of copies and memsets. They overlap.
        kernel_sum_ms: durations of all kernels added up, over the span if streams overlap.
        overlap_percent: the part of ``communication_ms`` beside which something computes.
        exposed_communication_ms: the part beside which nothing does.
        exposed_copy_ms: copies and memsets beside which no kernel runs.
        small_kernel_percent: launches shorter than ``small_kernel_us``.
        queued_launch_percent: launches whose kernel began later than right after the call.
        graph_launches: whole CUDA graphs in the trace, whose kernels it does not show.
        lead_in_ms, tail_ms: capture before the first and after the last work.
        resolution_us: gaps up to this were not kept one by one; 0 if all were.
    """

    index: int
    name: str | None
    span_ms: float
    busy_ms: float
    idle_ms: float
    idle_percent: float
    compute_ms: float
    communication_ms: float
    copy_ms: float
    kernels: int
    kernel_sum_ms: float
    streams: int
    overlap_percent: float | None
    exposed_communication_ms: float
    exposed_communication_percent: float
    exposed_copy_ms: float
    exposed_copy_percent: float
    small_kernel_us: float
    small_kernels: int
    small_kernel_percent: float
    small_kernel_time_percent: float
    gaps: Gaps
    short_gap_ms: float
    idle: Idle
    top_kernels: tuple[Kernel, ...]
    copies: tuple[Copies, ...]
    memsets: int
    memset_ms: float
    queued_launch_percent: float | None
    launch_delay_median_us: float | None
    graph_launches: int
    graph_ms: float
    lead_in_ms: float | None
    tail_ms: float | None
    resolution_us: float


@dataclass(frozen=True, slots=True)
class Calls:
    """CPU calls of one name (or of one kind): how many, how long (ms, all threads together)."""

    name: str
    count: int
    total_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Phase:
    """Ranges of one family that the program marked (NVTX, record_function)."""

    name: str
    count: int
    total_ms: float
    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Iterations, from the ranges that mark them; ``longest_index`` counts from 0, by start."""

    name: str
    count: int
    mean_ms: float
    median_ms: float
    min_ms: float
    max_ms: float
    longest_at_ms: float
    longest_index: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """Collectives that several devices of one capture took part in, matched by order.

    ``late_device`` came last most often; the others waited ``waited_ms`` for it in all.
    """

    collectives: int
    total_ms: float
    spread_percent: float
    late_device: int
    late_percent: float
    waited_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A capture in numbers.

    Attributes:
        source: ``kineto``, ``chrome``, ``nsys`` or ``nsys_parquet``.
        tool: who wrote it, with its version where it says so.
        captured_ms: length of the capture, None if it does not say.
        started_s: when it began (Unix s), None if it does not say.
        events: rows or events read.
        launches, graphs, syncs, sync_copies, allocations: CPU calls by kind, None where CPU calls
            were not traced.
        calls: the calls of CUDA or HIP that took longest in sum, of all threads.
        system_calls: those of the operating system, where they were traced.
        data_wait: waits for the data loader, None where no range shows any.
        cpu_traced, gpu_traced: whether the capture holds CPU calls, and work of a GPU.
        cut: the file ends before the trace does.
        odd: events left out because their times make no sense.
    """

    source: str
    tool: str
    devices: tuple[Device, ...]
    captured_ms: float | None
    started_s: float | None
    events: int
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    launches: Calls | None = None
    graphs: Calls | None = None
    syncs: Calls | None = None
    sync_copies: Calls | None = None
    allocations: Calls | None = None
    calls: tuple[Calls, ...] = ()
    system_calls: tuple[Calls, ...] = ()
    data_wait: Phase | None = None
    checkpoints: Phase | None = None
    steps: Steps | None = None
    phases: tuple[Phase, ...] = ()
    meeting: Meeting | None = None
    overhead_ms: float = 0.0
    cpu_traced: bool = True
    gpu_traced: bool = True
    cut: bool = False
    odd: int = 0
    notes: tuple[str, ...] = field(default=())
