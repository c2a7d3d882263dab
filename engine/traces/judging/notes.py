"""What a capture itself is like: graphs as blocks, the profiler's own time, a file cut short."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding
from engine.traces.judging.base import Capture, part
from engine.traces.model import Calls, Figures
from engine.traces.wording import gpu, ms, percent

_OVERHEAD_PERCENT = 5.0
_NOTHING = "The capture holds no work of a GPU: none was done, or it was not traced."
_CAPTURE = "nsys profile --trace=cuda,nvtx,osrt, or torch.profiler with ProfilerActivity.CUDA"


def notes(capture: Capture) -> Iterator[Finding]:
    """Yield what a reader of the other findings should know."""
    yield from _graphs(capture)
    yield from _overhead(capture)


def _graphs(capture: Capture) -> Iterator[Finding]:
    figures = capture.figures
    whole = sum(d.graph_launches for d in figures.devices)
    if whole:
        time = sum(d.graph_ms for d in figures.devices)
        busy = sum(d.busy_ms for d in figures.devices)
        yield capture.note(
            "cuda_graphs",
            f"{whole} CUDA graphs run for {ms(time)} ({percent(part(time, busy))} of the busy "
            "time) and are in the capture as whole blocks: the kernels inside are not listed, and "
            "the list of top kernels leaves them out. They count as compute.",
            "For the kernels inside capture a few steps with --cuda-graph-trace=node, at "
            "significant cost.",
            "cuda_graph_single_row",
            graph_launches=whole,
            graph_ms=round(time, 6),
        )
    elif _count(figures.graphs):
        yield capture.note(
            "cuda_graphs",
            f"{_count(figures.graphs)} CUDA graphs were launched; their kernels are in the trace "
            "one by one.",
            "Nothing: small kernels inside a graph cost little.",
            "cuda_graph_single_row",
            graph_calls=_count(figures.graphs),
        )


def _overhead(capture: Capture) -> Iterator[Finding]:
    figures = capture.figures
    longest = max((d.span_ms for d in figures.devices), default=0.0)
    share = part(figures.overhead_ms, longest)
    if share >= _OVERHEAD_PERCENT:
        yield capture.note(
            "profiler_overhead",
            f"The profiler itself took {ms(figures.overhead_ms)} ({percent(share)} of the time): "
            "part of the idle time is its doing.",
            "Trace less: no stacks, shapes or memory, fewer of --trace.",
            "profiler_overhead_spans",
            overhead_ms=figures.overhead_ms,
        )


def _count(calls: Calls | None) -> int:
    return calls.count if calls else 0


def no_work(figures: Figures) -> tuple[str, str]:
    """Return what a capture without work of a GPU shows, and what to do."""
    launched = _count(figures.launches) + _count(figures.graphs)
    if not launched:
        return _NOTHING, f"Capture while the program works: {_CAPTURE}."
    says = (
        f"The capture holds {launched} launches and no work of a GPU: the activity of the GPU was "
        "not recorded. Only one profiler at a time can do so, and it needs CUDA or ROCm activity "
        "switched on."
    )
    return says, f"Stop other profilers and capture again: {_CAPTURE}."


def remarks(capture: Capture) -> Iterator[str]:
    """Yield remarks on what could not be judged."""
    figures = capture.figures
    few = [d for d in figures.devices if d not in capture.judged]
    for device in few[:4]:
        yield (
            f"{gpu(device.index)}: {device.kernels + device.graph_launches} kernels in "
            f"{ms(device.span_ms)} are too few to judge how the program runs."
        )
    if figures.cut:
        yield "The trace ends in the middle of its list of events; what came before was read."
    if figures.odd:
        yield f"{figures.odd} event(s) without sensible times were left out."
    if figures.devices and not figures.cpu_traced:
        yield "The trace holds no calls of the host: why a GPU was idle cannot be told."
    coarse = max((d.resolution_us for d in figures.devices), default=0.0)
    if coarse:
        yield f"The trace is large: gaps up to {coarse:g} us were counted but not kept one by one."
