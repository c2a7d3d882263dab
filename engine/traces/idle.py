"""What the host did while a device was idle, and how long launched work waited in the queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.traces.collect import Collected
from engine.traces.gathered import DeviceData, HostData
from engine.traces.intervals import Ints, Spans, between, intersect, join, measure, subtract
from engine.traces.model import Idle
from engine.traces.sampled import positions

Bools = npt.NDArray[np.bool_]

# Shorter gaps are the price of a launch, whatever the host does meanwhile.
_ASKED_NS = 20_000
_KEPT = 200_000
# A wait for the GPU ends this long before or after the GPU runs dry, on clocks that CUPTI aligns.
_BEFORE_NS, _AFTER_NS = 20_000, 150_000
# A kernel that begins later than this after its launch call returned had work before it. On an
# idle GPU it begins within a few microseconds of the call, mostly before the call returns.
_QUEUED_NS = 10_000
# Python between two operators takes no longer; a host that launches late after a longer time did
# something else.
_BETWEEN_LAUNCHES_NS = 1_000_000
# In a gap the host is busy if it is so for at least half of it.
_MOSTLY = 0.5
_NS_PER_MS, _NS_PER_US = 1e6, 1e3


def idle_of(device: DeviceData, hosts: Sequence[HostData]) -> Idle:
    """Divide the idle time of a device among what its processes did meanwhile.

    Time inside ranges and calls is measured; what is left of a gap goes, whole, to the first that
    holds: its next work had been launched before the gap; it began as a wait for the GPU ended;
    a thread that launches work slept for half of it; the host executed operators or launch calls
    for half of it, or the gap is shorter than 1 ms and the next work was launched in it; unknown.

    Args:
        device: what ran.
        hosts: the processes that gave it work.
    """
    gaps = between(device.busy.spans)
    lengths = gaps.ends - gaps.starts
    asked = lengths >= _ASKED_NS
    if int(asked.sum()) > _KEPT:
        asked &= lengths > np.partition(lengths, -_KEPT)[-_KEPT]
    short = int(lengths[~asked].sum()) + device.busy.bridged_ns
    gaps = Spans(gaps.starts[asked], gaps.ends[asked])
    sync = join(*(host.sync.spans for host in hosts))
    parts: dict[str, int] = {}
    left = gaps
    for part, covered in (
        ("checkpoint", join(*(host.checkpoint.spans for host in hosts))),
        ("data", join(*(host.data.spans for host in hosts))),
        ("allocate", join(*(host.allocate.spans for host in hosts))),
        ("sync", sync),
    ):
        inside = intersect(left, covered)
        parts[part] = inside.length
        left = subtract(left, covered)
    rest = measure(left, gaps.starts, gaps.ends)
    active = join(*(host.active.spans for host in hosts))
    waiting = join(*(host.waiting.spans for host in hosts))
    queued, late = _launched(device, gaps, hosts)
    half = _MOSTLY * (gaps.ends - gaps.starts)
    after = ~queued & _after_wait(gaps, sync)
    asleep = ~(queued | after) & (measure(waiting, gaps.starts, gaps.ends) >= half)
    short_late = late & (gaps.ends - gaps.starts < _BETWEEN_LAUNCHES_NS)
    doing = short_late | (measure(active, gaps.starts, gaps.ends) >= half)
    working = doing & ~(queued | after | asleep)
    unknown = ~(queued | after | asleep | working)
    return Idle(
        data_ms=_ms(parts["data"]),
        checkpoint_ms=_ms(parts["checkpoint"]),
        allocate_ms=_ms(parts["allocate"]),
        sync_ms=_ms(parts["sync"] + int(rest[after].sum())),
        launch_ms=_ms(short + int(rest[working].sum())),
        queued_ms=_ms(int(rest[queued].sum())),
        waiting_ms=_ms(int(rest[asleep].sum())),
        unknown_ms=_ms(int(rest[unknown].sum())),
    )


def ends_of_gaps(data: Collected, limit: int) -> frozenset[int]:
    """Return the correlation ids of the work that ends the longest gaps of all devices."""
    tags, lengths = [], []
    for device in data.devices.values():
        spans = device.busy.spans
        tags.append(device.busy.tags[1:])
        lengths.append(spans.starts[1:] - spans.ends[:-1])
    if not tags:
        return frozenset()
    tag, length = np.concatenate(tags), np.concatenate(lengths)
    asked = (length >= _ASKED_NS) & (tag > 0)
    tag, length = tag[asked], length[asked]
    if length.size > limit:
        tag = tag[np.argsort(-length, kind="stable")[:limit]]
    return frozenset(tag.tolist())


def _after_wait(gaps: Spans, sync: Spans) -> Bools:
    """Return which gaps begin as the host comes back from a wait for the GPU."""
    low = np.searchsorted(sync.ends, gaps.starts - _BEFORE_NS, side="left")
    high = np.searchsorted(sync.ends, gaps.starts + _AFTER_NS, side="right")
    found: Bools = high > low
    return found


def _launched(device: DeviceData, gaps: Spans, hosts: Sequence[HostData]) -> tuple[Bools, Bools]:
    """Return which gaps end with work that was launched before them, and which with later work.

    Before: the call had returned when the gap began. Neither is true where the call is not known.
    """
    before: Bools = np.zeros(gaps.starts.size, dtype=bool)
    later: Bools = np.zeros(gaps.starts.size, dtype=bool)
    if not gaps:
        return before, later
    every = device.busy.tags
    if every.size > 1 and bool((every == every[0]).all()):
        return before, later  # a number that all work shares joins nothing
    tags = every[positions(device.busy.spans.starts, gaps.ends)]
    for host in hosts:
        keys, _, ends = _sorted(host.launches.rows())
        call = positions(keys, tags)
        known = call >= 0
        early = ends[call[known]] <= gaps.starts[known]
        before[known] |= early
        later[known] |= ~early
    return before, later & ~before


def launches_of(device: DeviceData, hosts: Sequence[HostData]) -> tuple[float | None, float | None]:
    """Return the share of kernels that had queued (percent), and the median launch delay (us).

    The delay is from the end of the launch call to the begin of the kernel, at least 0. None where
    calls cannot be joined with kernels.
    """
    delays = []
    for host in hosts:
        mask = host.launches.mask | device.starts.mask
        keys, _, ends = _sorted(host.launches.rows(mask))
        wanted, starts = device.starts.rows(mask)
        call = positions(keys, wanted)
        found = call >= 0
        delays.append(starts[found] - ends[call[found]])
    every = np.concatenate(delays) if delays else np.zeros(0, dtype=np.int64)
    if not every.size:
        return None, None
    share = 100.0 * float((every > _QUEUED_NS).mean())
    return round(share, 4), float(np.median(np.maximum(every, 0))) / _NS_PER_US


def _sorted(rows: tuple[Ints, ...]) -> tuple[Ints, ...]:
    order = np.argsort(rows[0], kind="stable")
    return tuple(column[order] for column in rows)


def _ms(ns: float) -> float:
    return round(ns / _NS_PER_MS, 6)
