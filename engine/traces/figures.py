"""From what a reader collected to the figures of the capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np

from engine.traces.collect import Collected
from engine.traces.gathered import DeviceData, HostData, Totals
from engine.traces.idle import idle_of, launches_of
from engine.traces.intervals import Spans, between
from engine.traces.meeting import meeting
from engine.traces.model import Calls, Copies, Device, Figures, Gaps, Kernel, Phase, Steps
from engine.traces.names import Call, Names, Range, call_of

NS_PER_MS, NS_PER_US = 1e6, 1e3
_TOP_KERNELS = 20
_TOP_CALLS = 12
_TOP_PHASES = 20
_KINDS = (Call.LAUNCH, Call.GRAPH, Call.SYNC, Call.COPY, Call.ALLOCATE)
# Families that may be a program's steps must come at least so often.
_LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """The two lengths that the figures depend on: a gap over, and a kernel under."""

    gap_ms: float = 1.0
    small_us: float = 50.0

    @property
    def small_ns(self) -> int:
        """The length of a small kernel (ns)."""
        return round(self.small_us * NS_PER_US)


@dataclass(frozen=True, slots=True)
class About:
    """What a trace says about itself. ``zero_ns`` is where its viewer begins to count."""

    source: str
    tool: str
    device_names: dict[int, str]
    captured_ms: float | None = None
    started_s: float | None = None
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    cpu_traced: bool = True
    cut: bool = False
    zero_ns: int | None = None
    notes: tuple[str, ...] = ()


def figures(data: Collected, about: About, limits: Limits) -> Figures:
    """Return the figures of everything that was collected."""
    zero = data.first or 0 if about.zero_ns is None else about.zero_ns
    if data.window is not None:
        zero = min(zero, data.window[0])
    devices = tuple(
        _device(data, data.devices[index], about, limits, zero) for index in sorted(data.devices)
    )
    calls = _calls(data.calls, data.call_totals)
    by_kind = {kind: _of_kind(calls, kind) for kind in _KINDS} if about.cpu_traced else {}
    return Figures(
        source=about.source,
        tool=about.tool,
        devices=devices,
        captured_ms=about.captured_ms,
        started_s=about.started_s,
        events=data.events,
        rank=about.rank,
        world_size=about.world_size,
        backend=about.backend,
        host=about.host,
        launches=by_kind.get(Call.LAUNCH),
        graphs=by_kind.get(Call.GRAPH),
        syncs=by_kind.get(Call.SYNC),
        sync_copies=by_kind.get(Call.COPY),
        allocations=by_kind.get(Call.ALLOCATE),
        calls=tuple(calls[:_TOP_CALLS]),
        system_calls=tuple(_calls(data.system, data.system_totals)[:_TOP_CALLS]),
        data_wait=_ranges_of(data, Range.DATA),
        checkpoints=_ranges_of(data, Range.CHECKPOINT),
        steps=_steps(data, zero),
        phases=_phases(data),
        meeting=meeting(data),
        overhead_ms=_ms(data.overhead.length_ns),
        cpu_traced=about.cpu_traced,
        gpu_traced=bool(devices),
        cut=about.cut,
        odd=data.odd,
        notes=about.notes,
    )


def _device(data: Collected, device: DeviceData, about: About, limits: Limits, zero: int) -> Device:
    first, last = device.first or 0, device.last or 0
    span = max(last - first, 0)
    busy_ns = device.busy.length_ns
    idle_ns = max(span - busy_ns, 0)
    gaps = between(device.busy.spans)
    lengths = gaps.ends - gaps.starts
    long = lengths > limits.gap_ms * NS_PER_MS
    kernel_ns = int(device.kernels.total.sum())
    count = int(device.kernels.count.sum())
    # What lies beside nothing else is what the union grows by: this needs lengths only.
    moving_ns, working_ns = device.communication.length_ns, device.working.length_ns
    exposed = min(max(working_ns - device.compute.length_ns, 0), moving_ns)
    exposed_copy = max(busy_ns - working_ns, 0)
    hosts = _hosts(data, device)
    queued, delay = launches_of(device, hosts)
    low, high = _window(data)
    return Device(
        index=device.index,
        name=about.device_names.get(device.index),
        span_ms=_ms(span),
        busy_ms=_ms(busy_ns),
        idle_ms=_ms(idle_ns),
        idle_percent=_percent(idle_ns, span),
        compute_ms=_ms(device.compute.length_ns),
        communication_ms=_ms(moving_ns),
        copy_ms=_ms(device.copying.length_ns),
        kernels=count,
        kernel_sum_ms=_ms(kernel_ns),
        streams=len(device.streams),
        overlap_percent=_percent(moving_ns - exposed, moving_ns) if moving_ns else None,
        exposed_communication_ms=_ms(exposed),
        exposed_communication_percent=_percent(exposed, span),
        exposed_copy_ms=_ms(exposed_copy),
        exposed_copy_percent=_percent(exposed_copy, span),
        small_kernel_us=limits.small_us,
        small_kernels=device.small,
        small_kernel_percent=_percent(device.small, count),
        small_kernel_time_percent=_percent(device.small_ns, kernel_ns),
        gaps=_gaps(Spans(gaps.starts[long], gaps.ends[long]), limits, zero),
        short_gap_ms=_ms(max(idle_ns - int(lengths[long].sum()), 0)),
        idle=idle_of(device, hosts),
        top_kernels=_top_kernels(data, device, kernel_ns),
        copies=_copies(device),
        memsets=device.memsets,
        memset_ms=_ms(device.memset_ns),
        queued_launch_percent=queued,
        launch_delay_median_us=delay,
        graph_launches=device.graphs,
        graph_ms=_ms(device.graph_ns),
        lead_in_ms=None if low is None else _ms(max(first - low, 0)),
        tail_ms=None if high is None else _ms(max(high - last, 0)),
        resolution_us=device.busy.tolerance_ns / NS_PER_US,
    )


def _hosts(data: Collected, device: DeviceData) -> list[HostData]:
    """Return the processes that gave a device work; all of them where that is not told."""
    own = [data.hosts[p] for p in sorted(device.processes) if p in data.hosts]
    return own or [data.hosts[p] for p in sorted(data.hosts)]


def _window(data: Collected) -> tuple[int | None, int | None]:
    return data.window or (data.first, data.last)


def _gaps(gaps: Spans, limits: Limits, zero: int) -> Gaps:
    if not gaps:
        return Gaps(limits.gap_ms, 0, 0.0, 0.0, None)
    lengths = gaps.ends - gaps.starts
    k = int(np.argmax(lengths))
    return Gaps(
        over_ms=limits.gap_ms,
        count=lengths.size,
        total_ms=_ms(int(lengths.sum())),
        longest_ms=_ms(int(lengths[k])),
        longest_at_ms=_ms(int(gaps.starts[k]) - zero),
    )


def _top_kernels(data: Collected, device: DeviceData, kernel_ns: int) -> tuple[Kernel, ...]:
    totals = device.kernels
    order = np.lexsort((np.arange(totals.total.size), -totals.total))
    out: list[Kernel] = []
    for number in order[: _TOP_KERNELS + 1].tolist():
        count = int(totals.count[number])
        if not count or len(out) >= _TOP_KERNELS:
            break
        name = data.names.name(number)
        total = int(totals.total[number])
        out.append(
            Kernel(
                name=name,
                kind="communication" if data.moves(number) else "compute",
                count=count,
                total_ms=_ms(total),
                mean_us=round(total / count / NS_PER_US, 3),
                min_us=int(totals.least[number]) / NS_PER_US,
                max_us=int(totals.most[number]) / NS_PER_US,
                share_percent=_percent(total, kernel_ns),
            )
        )
    return tuple(out)


def _copies(device: DeviceData) -> tuple[Copies, ...]:
    out = []
    for (direction, memory), (count, size, time) in device.copies.items():
        sized = device.sized and size
        out.append(
            Copies(
                direction=direction,
                memory=memory,
                count=count,
                size_bytes=size if sized else None,
                total_ms=_ms(time),
                rate_gbs=round(size / time, 3) if sized and time else None,
            )
        )
    return tuple(sorted(out, key=lambda c: (-c.total_ms, c.direction, c.memory or "")))


def _calls(names: Names, totals: Totals) -> list[Calls]:
    order = np.lexsort((np.arange(totals.total.size), -totals.total))
    return [
        Calls(
            name=names.name(number),
            count=int(totals.count[number]),
            total_ms=_ms(int(totals.total[number])),
            max_ms=_ms(int(totals.most[number])),
        )
        for number in order.tolist()
        if totals.count[number]
    ]


def _of_kind(calls: Iterable[Calls], kind: Call) -> Calls:
    some = [one for one in calls if call_of(one.name) is kind]
    return Calls(
        name=kind.value,
        count=sum(one.count for one in some),
        total_ms=round(sum(one.total_ms for one in some), 6),
        max_ms=max((one.max_ms for one in some), default=0.0),
    )


def _ranges_of(data: Collected, kind: Range) -> Phase | None:
    some = [(name, f) for name, f in data.families.items() if f.kind is kind]
    if not some:
        return None
    name = max(some, key=lambda one: (one[1].total, one[0]))[0]
    count, total = sum(f.count for _, f in some), sum(f.total for _, f in some)
    return Phase(name, count, _ms(total), _ms(total / count), _ms(max(f.most for _, f in some)))


def _phases(data: Collected) -> tuple[Phase, ...]:
    """Return the program's own ranges; operators of PyTorch and calls of libraries are none."""
    own = [
        (name, f)
        for name, f in data.families.items()
        if f.kind not in {Range.OPERATOR, Range.LIBRARY}
    ]
    own.sort(key=lambda one: (-one[1].total, one[0]))
    return tuple(
        Phase(name, f.count, _ms(f.total), _ms(f.total / f.count), _ms(f.most))
        for name, f in own[:_TOP_PHASES]
    )


def _steps(data: Collected, zero: int) -> Steps | None:
    """Return the iterations: of the families called like one, that which covers most time."""
    best: tuple[int, str] | None = None
    for name, found in data.steps.items():
        if len(found) >= _LEAST_STEPS or len(data.steps) == 1:
            best = max(best or (-1, ""), (sum(e - s for s, e in found), name))
    if best is None:
        return None
    steps = sorted(data.steps[best[1]])
    lengths = [end - start for start, end in steps]
    k = max(range(len(lengths)), key=lambda i: (lengths[i], -i))
    return Steps(
        name=best[1],
        count=len(lengths),
        mean_ms=_ms(sum(lengths) / len(lengths)),
        median_ms=_ms(median(lengths)),
        min_ms=_ms(min(lengths)),
        max_ms=_ms(lengths[k]),
        longest_at_ms=_ms(steps[k][0] - zero),
        longest_index=k,
    )


def _ms(ns: float) -> float:
    return round(ns / NS_PER_MS, 6)


def _percent(part: float, whole: float) -> float:
    return round(100.0 * part / whole, 4) if whole > 0 else 0.0
