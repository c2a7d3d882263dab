"""Kineto traces (PyTorch profiler), and other traces in Chrome's JSON format, to figures.

Categories and arguments: pytorch/kineto libkineto/include/ActivityType.h and
libkineto/src/output_json.cpp; PyTorch 1.8 wrote them capitalised. Times are microseconds, whole or
with decimals, absolute or since ``baseTimeNanoseconds``. On ROCm the categories are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from engine.traces.collect import Collected
from engine.traces.columns import Clock, Rows
from engine.traces.eventfields import (
    args_of,
    direction_of,
    integers,
    is_text,
    phase_of,
    text_of,
    whole,
)
from engine.traces.figures import Limits, figures
from engine.traces.gpuprocesses import GpuProcesses
from engine.traces.jsonevents import Event, EventFile
from engine.traces.kinetoabout import about
from engine.traces.model import Figures
from engine.traces.names import Range, cut, range_of
from engine.traces.pairs import Pairs

HEADER = frozenset(
    {
        "schemaVersion",
        "deviceProperties",
        "distributedInfo",
        "traceName",
        "baseTimeNanoseconds",
        "displayTimeUnit",
        "metadata",
        "hostname",
    }
)
# Category in small letters: what it holds. Others (flows, python_function, counters) are not read.
_CATEGORIES = {
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "hip_runtime": "call",
    "runtime": "call",
    "driver": "call",
    "cpu_op": "operator",
    "operator": "operator",
    "user_annotation": "range",
    "user annotation": "range",
    "overhead": "overhead",
    "trace": "window",
}


class KinetoReader:
    """Reads the events of one trace and returns its figures."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.data = Collected(small_ns=limits.small_ns)
        self._clock = Clock()
        self._pairs = Pairs()
        self._kinds: dict[Any, str | None] = {}
        self._special: dict[str, bool] = {}
        self._windows: list[tuple[int, int]] = []
        self._gpus = GpuProcesses()
        self._kernels = Rows(6, self._flush_kernels)
        self._calls = Rows(4, self._flush_calls)
        self._operators = Rows(2, self._flush_operators)
        self._readers: dict[str, Callable[[list[Event]], None]] = {
            "kernel": self._read_kernels,
            "copy": self._read_copies,
            "memset": self._read_memsets,
            "call": self._read_calls,
            "operator": self._read_operators,
            "range": self._read_ranges,
            "overhead": self._read_overhead,
            "window": self._read_windows,
            "bare": self._read_bare,
        }

    def read(self, chunks: Iterable[bytes]) -> Figures:
        """Read a whole trace.

        Raises:
            InputError: this is no Chrome trace.
        """
        source = EventFile(chunks, HEADER)
        for events in source.events():
            self._take(events)
        for rows in (self._kernels, self._calls, self._operators):
            rows.flush()
        self.data.odd += source.bad
        return figures(
            self.data,
            about(self.data, self._clock, source.header, cut_short=source.cut),
            self._limits,
        )

    # --- events by kind

    def _take(self, events: list[Any]) -> None:
        self.data.events += len(events)
        groups: defaultdict[Any, list[Event]] = defaultdict(list)
        try:
            for event in events:
                groups[event.get("cat")].append(event)
        except (AttributeError, TypeError):  # an element that is no object, a category no text
            sane = [e for e in events if isinstance(e, dict) and is_text(e.get("cat"))]
            self.data.odd += len(events) - len(sane)
            self.data.events -= len(events)
            if sane:
                self._take(sane)
            return
        for category, found in groups.items():
            kind = self._kind(category)
            if kind is None:
                continue
            self._readers[kind](found if kind == "bare" else self._complete(found))

    def _kind(self, category: Any) -> str | None:
        if category is None:
            return "bare"
        try:
            return self._kinds[category]
        except KeyError:
            kind = _CATEGORIES.get(text_of(category)[:40].lower())
            if len(self._kinds) < 1_024:
                self._kinds[category] = kind
            return kind

    def _complete(self, events: list[Event]) -> list[Event]:
        """Return the events with a duration, begin and end joined where they come apart."""
        try:
            phases = set(map(phase_of, events))
        except (KeyError, TypeError):
            phases = {phase for e in events if isinstance(phase := e.get("ph"), str)} | {None}
        if phases == {"X"}:
            return events
        out = [event for event in events if event.get("ph") == "X"]
        if {"B", "E"} & phases:
            out += self._pairs.join(e for e in events if e.get("ph") in {"B", "E"})
        return out

    def _read_kernels(self, events: list[Event]) -> None:
        try:
            args = [event["args"] for event in events]
            self._kernels.extend(
                [event["ts"] for event in events],
                [event["dur"] for event in events],
                self.data.names.numbers([event["name"] for event in events]),
                [arg["device"] for arg in args],
                [arg["stream"] for arg in args],
                [arg["correlation"] for arg in args],
            )
        except (KeyError, TypeError):
            for event in events:
                arg = args_of(event)
                self._kernels.append(
                    event.get("ts"),
                    event.get("dur"),
                    self.data.names.number(text_of(event.get("name"))),
                    whole(arg.get("device"), event.get("pid")),
                    whole(arg.get("stream"), event.get("tid")),
                    whole(arg.get("correlation")),
                )

    def _flush_kernels(self, columns: list[list[Any]]) -> None:
        ts, dur, numbers, devices, streams, correlation = columns
        whole, kept = self._clock.times(ts, dur)
        self.data.odd += len(ts) - whole[0].size
        rest = integers([numbers, devices, streams, correlation], kept)
        for index in np.unique(rest[1]).tolist():
            mine = rest[1] == index
            self.data.kernels(
                index,
                whole[0][mine],
                whole[1][mine],
                rest[0][mine],
                correlation=rest[3][mine],
                streams=rest[2][mine],
            )

    def _read_copies(self, events: list[Event]) -> None:
        groups: dict[tuple[int, str, str | None], list[Event]] = {}
        for event in events:
            arg = args_of(event)
            name = text_of(event.get("name"))
            direction, memory = direction_of(name, arg)
            device = whole(arg.get("device"), event.get("pid"))
            groups.setdefault((device, direction, memory), []).append(event)
        for (device, direction, memory), found in groups.items():
            starts, ends, correlation, sizes, streams = self._gpu_rows(found)
            known = sizes >= 0
            self.data.copies(
                device,
                starts,
                ends,
                (direction, memory),
                size=int(sizes.sum()) if known.all() else None,
                correlation=correlation,
                streams=streams,
            )

    def _read_memsets(self, events: list[Event]) -> None:
        groups: dict[int, list[Event]] = {}
        for event in events:
            device = whole(args_of(event).get("device"), event.get("pid"))
            groups.setdefault(device, []).append(event)
        for device, found in groups.items():
            starts, ends, correlation, _, _ = self._gpu_rows(found)
            self.data.memsets(device, starts, ends, correlation=correlation)

    def _gpu_rows(self, events: list[Event]) -> tuple[Any, ...]:
        args = [args_of(event) for event in events]
        (starts, ends), kept = self._clock.times(
            [event.get("ts") for event in events], [event.get("dur") for event in events]
        )
        self.data.odd += len(events) - starts.size
        columns = [
            [whole(arg.get("correlation")) for arg in args],
            [whole(arg.get("bytes")) for arg in args],
            [
                whole(arg.get("stream"), event.get("tid"))
                for arg, event in zip(args, events, strict=True)
            ],
        ]
        return (starts, ends, *integers(columns, kept))

    def _read_calls(self, events: list[Event]) -> None:
        try:
            self._calls.extend(
                [event["ts"] for event in events],
                [event["dur"] for event in events],
                self.data.calls.numbers([event["name"] for event in events]),
                [event["args"]["correlation"] for event in events],
            )
        except (KeyError, TypeError):
            for event in events:
                self._calls.append(
                    event.get("ts"),
                    event.get("dur"),
                    self.data.calls.number(text_of(event.get("name"))),
                    whole(args_of(event).get("correlation")),
                )

    def _flush_calls(self, columns: list[list[Any]]) -> None:
        ts, dur, numbers, correlation = columns
        (starts, ends), kept = self._clock.times(ts, dur)
        self.data.odd += len(ts) - starts.size
        if not starts.size:
            return
        rest = integers([numbers, correlation], kept)
        self.data.call_totals.add(rest[0], ends - starts)
        self.data.call_rows(0, starts, ends, rest[0], correlation=rest[1])

    def _read_operators(self, events: list[Event]) -> None:
        special = self._special
        try:
            names = [event["name"] for event in events]
            self._operators.extend(
                [event["ts"] for event in events], [event["dur"] for event in events]
            )
            if any(map(special.get, names, repeat(True))):
                self._read_ranges([e for e in events if self._is_special(e["name"])])
        except (KeyError, TypeError):
            for event in events:
                self._operators.append(event.get("ts"), event.get("dur"))

    def _is_special(self, name: str) -> bool:
        """Return whether an operator is a range of interest: PyTorch 1.8 has one category."""
        found = self._special.get(name)
        if found is None:
            found = range_of(cut(name)) in {Range.STEP, Range.DATA}
            if len(self._special) < 8_192:
                self._special[name] = found
        return found

    def _flush_operators(self, columns: list[list[Any]]) -> None:
        (starts, ends), _ = self._clock.times(*columns)
        self.data.odd += len(columns[0]) - starts.size
        self.data.span(starts, ends)
        self.data.host(0).active.add(starts, ends)

    def _read_ranges(self, events: list[Event]) -> None:
        for event, start, end in self._timed(events):
            self.data.range(0, cut(text_of(event.get("name"))), start, end)

    def _read_overhead(self, events: list[Event]) -> None:
        rows = [(start, end) for _, start, end in self._timed(events)]
        if rows:
            starts, ends = np.array(rows, dtype=np.int64).T
            self.data.overhead.add(starts, ends)

    def _read_windows(self, events: list[Event]) -> None:
        for _, start, end in self._timed(events):
            low, high = self.data.window or (start, end)
            self.data.window = (min(low, start), max(high, end))

    def _timed(self, events: list[Event]) -> Iterator[tuple[Event, int, int]]:
        for event in events:
            (starts, ends), _ = self._clock.times([event.get("ts")], [event.get("dur")])
            if starts.size:
                yield event, int(starts[0]), int(ends[0])
            else:
                self.data.odd += 1

    def _read_bare(self, events: list[Event]) -> None:
        """Take events without a category, of which those on streams of a GPU are its work."""
        kernels, copies, memsets = self._gpus.work(events)
        self._read_kernels(kernels)
        self._read_copies(copies)
        self._read_memsets(memsets)


def read_kineto(chunks: Iterable[bytes], limits: Limits) -> Figures:
    """Return the figures of a trace in Chrome's JSON format.

    Args:
        chunks: the file, cut anywhere.
        limits: what counts as a gap and as a small kernel.

    Raises:
        InputError: this is no Chrome trace.
    """
    return KinetoReader(limits).read(chunks)
