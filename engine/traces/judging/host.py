"""Rules over idle time: what the host did while a GPU had nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.traces.judging.base import Affected, Capture, Loss, part
from engine.traces.model import Device, Idle
from engine.traces.wording import ms, percent

# Below this a row counts as dense; from the second on idle time is a problem (rules of thumb).
_DENSE_PERCENT, _IDLE_PERCENT = 5.0, 10.0
# A reason is named if it takes this part of the span, and of the idle time.
_NAMED_PERCENT, _PART_OF_IDLE_PERCENT = 5.0, 15.0
# Where more kernels than this had queued, the host runs ahead; only long gaps count against it.
_AHEAD_PERCENT, _AHEAD_IDLE_PERCENT = 50.0, 20.0
# One call that takes so long sets up the context or loads modules.
_START_MS = 1_000.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a GPU idles: which figure, and what to say."""

    id: str
    entry: str
    cause: str | None
    ms: Callable[[Idle], float]
    says: str
    action: str
    least_idle_percent: float = _DENSE_PERCENT


_REASONS = (
    Reason(
        "data_wait",
        "cpu_gaps",
        "data_loader_stall",
        lambda idle: idle.data_ms,
        "the program waits for its data loader",
        "Time the loader alone, without the model. If cores are free raise num_workers and "
        "prefetch_factor; if workers wait for files look at the file system first: "
        "py-spy dump --pid PID of a worker shows which.",
    ),
    Reason(
        "checkpoint_wait",
        "periodic_long_step",
        "checkpoint_stall",
        lambda idle: idle.checkpoint_ms,
        "the program writes a checkpoint",
        "Write checkpoints asynchronously (torch.distributed.checkpoint.async_save), or less "
        "often.",
    ),
    Reason(
        "allocator",
        "cuda_malloc_in_step",
        "allocator_stall",
        lambda idle: idle.allocate_ms,
        "the host is inside calls that allocate or free memory",
        "In steady state there should be none: read num_alloc_retries of "
        "torch.cuda.memory_stats(), take empty_cache() out of the loop, set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    Reason(
        "synchronisation",
        "sync_calls",
        "allocator_stall",
        lambda idle: idle.sync_ms,
        "the host waits for the GPU, or has just done so, and the queue has run dry",
        'Find what waits: torch.cuda.set_sync_debug_mode("warn"). Take .item(), .cpu() and prints '
        "of tensors out of the step, or do them every N steps.",
    ),
    Reason(
        "launch",
        "launch_bound",
        "launch_bound",
        lambda idle: idle.launch_ms,
        "the CPU is launching work more slowly than the GPU does it",
        "Use CUDA graphs or torch.compile (mode reduce-overhead), larger batches, fused operators; "
        "profile once without stacks and shapes, which slow the CPU down too.",
        _IDLE_PERCENT,
    ),
    Reason(
        "system_wait",
        "cpu_gaps",
        "data_loader_stall",
        lambda idle: idle.waiting_ms,
        "a thread that launches work sleeps or reads in the operating system (file, lock or queue)",
        "See what it waits for: py-spy dump --pid PID, or a capture with "
        "--trace=cuda,nvtx,osrt,python-gil. A queue means loader workers, a read the file system, "
        "a futex a lock or the GIL.",
    ),
    Reason(
        "queued",
        "context_time_slicing",
        None,
        lambda idle: idle.queued_ms,
        "the next work had been launched and still did not run: it waited for an event, another "
        "GPU, a host callback, or another process had the GPU",
        "Look which stream the work after the gap waits for. Other processes on the GPU: "
        "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv",
        _IDLE_PERCENT,
    ),
)


def idle(capture: Capture) -> Iterator[Loss]:
    """Yield why GPUs idle, as far as the trace shows it."""
    dense = capture.timeline.limit("gpu_row_dense", _DENSE_PERCENT)
    started = _starts_up(capture)
    if started is not None:
        yield started
        return
    for reason in _REASONS:
        affected = capture.over(lambda d, r=reason: _share(d, r, dense), _NAMED_PERCENT)  # type: ignore[misc]
        if affected:
            yield _loss(capture, reason, affected)
    rest = capture.over(_unexplained, _NAMED_PERCENT)
    if rest:
        yield _unknown(capture, rest)


def _share(device: Device, reason: Reason, dense: float) -> float | None:
    """Return the part of the span (percent) that a reason costs; None where it does not count."""
    least = max(dense, reason.least_idle_percent)
    lost = reason.ms(device.idle)
    if device.idle_percent < least or part(lost, device.idle_ms) < _PART_OF_IDLE_PERCENT:
        return None
    share = part(lost, device.span_ms)
    if reason.id == "launch":
        ahead = device.queued_launch_percent
        if ahead is not None and ahead >= _AHEAD_PERCENT and share < _AHEAD_IDLE_PERCENT:
            return None
    return share


def _unexplained(device: Device) -> float | None:
    lost = device.idle.unknown_ms
    if device.idle_percent < _IDLE_PERCENT or part(lost, device.idle_ms) < _PART_OF_IDLE_PERCENT:
        return None
    return part(lost, device.span_ms)


def _loss(capture: Capture, reason: Reason, affected: Affected) -> Loss:
    device, share = affected[0]
    lost = reason.ms(device.idle)
    entry = reason.entry
    extra = ""
    if reason.id == "launch":
        entry, extra = _small(capture, device)
    elif reason.id in {"allocator", "synchronisation"}:
        extra = _calls(capture, reason.id)
    elif reason.id == "data_wait" and (wait := capture.figures.data_wait):
        extra = f" It waited {wait.count} times, {ms(wait.mean_ms)} on average."
    return capture.loss(
        affected,
        lost,
        id_=reason.id,
        entry=entry,
        says=(
            f"{capture.name(device)} has nothing to do for {percent(device.idle_percent)} of the "
            f"time, and for {ms(lost)} of it ({percent(share)} of {ms(device.span_ms)}) "
            f"{reason.says}.{extra}{_gaps(device)}"
        ),
        action=reason.action,
        cause=reason.cause,
        data={
            "lost_ms": lost,
            "idle_percent": device.idle_percent,
            "gap_count": device.gaps.count,
            "longest_gap_ms": device.gaps.longest_ms,
            "longest_gap_at_ms": device.gaps.longest_at_ms,
            "small_kernel_percent": device.small_kernel_percent,
            "queued_launch_percent": device.queued_launch_percent,
        },
    )


def _gaps(device: Device) -> str:
    gaps = device.gaps
    if not gaps.count:
        return f" No gap is longer than {ms(gaps.over_ms)}."
    at = "" if gaps.longest_at_ms is None else f" at {ms(gaps.longest_at_ms)}"
    if gaps.count == 1:
        return f" One gap is longer than {ms(gaps.over_ms)}: {ms(gaps.longest_ms)}{at}."
    return (
        f" {gaps.count} gaps are longer than {ms(gaps.over_ms)}, the longest {ms(gaps.longest_ms)}"
        f"{at}."
    )


def _small(capture: Capture, device: Device) -> tuple[str, str]:
    """Return which entry fits a launch-bound device, and what its kernels add to the picture."""
    says = ""
    if device.queued_launch_percent is not None:
        says = f" {percent(device.queued_launch_percent)} of the kernels had waited in the queue."
    many = 100.0 * capture.timeline.limit("tiny_kernels", 0.5)
    if device.small_kernel_percent <= many:
        return "launch_bound", says
    return "tiny_kernels", (
        f" {percent(device.small_kernel_percent)} of its {device.kernels} kernels are shorter than "
        f"{device.small_kernel_us:g} us.{says}"
    )


def _calls(capture: Capture, id_: str) -> str:
    figures = capture.figures
    calls = figures.allocations if id_ == "allocator" else figures.syncs
    if calls is None or not calls.count:
        return ""
    per = ""
    if figures.steps and figures.steps.count:
        per = f", {calls.count / figures.steps.count:.3g} in each step"
    return f" {calls.count} such calls{per}."


def _unknown(capture: Capture, affected: Affected) -> Loss:
    device, share = affected[0]
    lost = device.idle.unknown_ms
    traced = capture.figures.cpu_traced
    why = (
        "the trace does not show what the host did then: neither launches nor operators"
        if traced
        else "the trace holds no calls of the host, so that it cannot say why"
    )
    return capture.loss(
        affected,
        lost,
        id_="gaps",
        entry="gaps_between_kernels",
        says=(
            f"{capture.name(device)} has nothing to do for {percent(device.idle_percent)} of the "
            f"time; for {ms(lost)} of it ({percent(share)} of {ms(device.span_ms)}) {why}."
            f"{_gaps(device)} It may be input, locks, Python, or that nothing was asked for."
        ),
        action=(
            "Capture the host too: nsys profile --trace=cuda,nvtx,osrt "
            "--sample=process-tree, or torch.profiler with ProfilerActivity.CPU; or look at the "
            "process as it waits: py-spy dump --pid PID"
        ),
        cause=None,
        data={
            "lost_ms": lost,
            "idle_percent": device.idle_percent,
            "gap_count": device.gaps.count,
            "longest_gap_ms": device.gaps.longest_ms,
            "longest_gap_at_ms": device.gaps.longest_at_ms,
        },
    )


def _starts_up(capture: Capture) -> Loss | None:
    """Return that the capture shows a start, if a single call explains a tenth of the span."""
    figures = capture.figures
    groups = (figures.allocations, figures.launches, figures.sync_copies)
    longest = max((calls.max_ms for calls in groups if calls is not None), default=0.0)
    affected = capture.over(
        lambda d: part(longest, d.span_ms) if d.idle_percent >= _IDLE_PERCENT else None,
        _IDLE_PERCENT,
    )
    if longest < _START_MS or not affected:
        return None
    device = affected[0][0]
    return capture.loss(
        affected,
        longest,
        id_="start_up",
        entry="first_iterations",
        says=(
            f"One call that allocates memory or launches a kernel takes {ms(longest)}: that is a "
            "context being set up or modules being loaded. The capture shows the start of the "
            f"program, and nothing can be said of {capture.name(device)} in steady state "
            f"(idle {percent(device.idle_percent)} of {ms(device.span_ms)})."
        ),
        action=(
            "Capture again after some ten steps: nsys profile --delay=SECONDS, or "
            "torch.profiler.schedule(wait=10, warmup=2, active=5)."
        ),
        cause="cold_start",
        data={"longest_call_ms": longest, "idle_percent": device.idle_percent},
    )
