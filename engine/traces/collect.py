"""What a reader of traces fills in: columns of intervals by device and by process, bounded.

All times are int64 nanoseconds on one clock of the trace. Rows may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from engine.traces.gathered import SPANS, DeviceData, Family, HostData, Totals
from engine.traces.intervals import Collector, Ints
from engine.traces.names import Call, Names, Range, call_of, communicates, family, range_of

Bools = npt.NDArray[np.bool_]

MAX_DEVICES = 64
MAX_PROCESSES = 256
_MEETINGS = 50_000
_FAMILIES = 4_096
_STEPS = 100_000
_STREAMS = 1_024
# Process numbers over the limit share this one.
_CROWD = -1


class Collected:
    """Everything that a trace says, ready to be turned into figures."""

    def __init__(self, *, small_ns: int) -> None:
        """Collect; kernels shorter than ``small_ns`` are counted as small."""
        self.small_ns = small_ns
        self.names = Names()
        self.calls = Names(2_048)
        self.call_totals = Totals()
        self.system = Names(2_048)
        self.system_totals = Totals()
        self.devices: dict[int, DeviceData] = {}
        self.hosts: dict[int, HostData] = {}
        self.families: dict[str, Family] = {}
        self.steps: dict[str, list[tuple[int, int]]] = {}
        self.first: int | None = None
        self.last: int | None = None
        self.window: tuple[int, int] | None = None
        self.overhead = Collector(SPANS // 8)
        self.odd = 0
        self.events = 0
        self.left_out_devices = 0
        self._communicates: list[bool] = []
        self._kinds: list[Call] = []

    # --- devices

    def device(self, index: int) -> DeviceData | None:
        """Return the data of a device; None beyond the limit."""
        found = self.devices.get(index)
        if found is None:
            if len(self.devices) >= MAX_DEVICES:
                return None
            found = self.devices[index] = DeviceData(index)
            for one in self.devices.values():
                one.limit(SPANS // len(self.devices))
        return found

    def by_device(self, indexes: Ints) -> Iterator[tuple[int, Bools]]:
        """Yield each device and which rows are its; those of devices over the limit are counted."""
        found, counts = np.unique(indexes, return_counts=True)
        for index, count in zip(found.tolist(), counts.tolist(), strict=True):
            if self.device(index) is None:
                self.left_out_devices += count
            else:
                yield index, indexes == index

    def kernels(
        self,
        index: int,
        starts: Ints,
        ends: Ints,
        numbers: Ints,
        *,
        correlation: Ints | None = None,
        streams: Ints | None = None,
        processes: Ints | None = None,
    ) -> None:
        """Add kernels of one device; ``numbers`` are those of `names`."""
        device = self._work(index, starts, ends, correlation, streams, processes)
        if device is None:
            return
        durations = ends - starts
        device.kernels.add(numbers, durations)
        device.working.add(starts, ends)
        small = durations < self.small_ns
        device.small += int(small.sum())
        device.small_ns += int(durations[small].sum())
        moving = self._moving(numbers)
        if moving.any():
            other = ~moving
            device.communication.add(starts[moving], ends[moving])
            device.compute.add(starts[other], ends[other])
            if device.met < _MEETINGS:
                device.meetings.append((starts[moving], ends[moving], numbers[moving]))
                device.met += int(moving.sum())
        else:
            device.compute.add(starts, ends)
        if correlation is not None:
            device.starts.add(correlation, starts)

    def copies(
        self,
        index: int,
        starts: Ints,
        ends: Ints,
        kind: tuple[str, str | None],
        *,
        size: int | None,
        correlation: Ints | None = None,
        streams: Ints | None = None,
        processes: Ints | None = None,
    ) -> None:
        """Add copies of one direction and host memory; ``size`` is bytes of all together."""
        device = self._work(index, starts, ends, correlation, streams, processes)
        if device is None:
            return
        device.copying.add(starts, ends)
        row = device.copies.setdefault(kind, [0, 0, 0])
        row[0] += starts.size
        row[1] += size or 0
        row[2] += int((ends - starts).sum())
        device.sized &= size is not None

    def memsets(
        self, index: int, starts: Ints, ends: Ints, *, correlation: Ints | None = None
    ) -> None:
        """Add memsets."""
        device = self._work(index, starts, ends, correlation, None, None)
        if device is not None:
            device.copying.add(starts, ends)
            device.memsets += starts.size
            device.memset_ns += int((ends - starts).sum())

    def graphs(
        self, index: int, starts: Ints, ends: Ints, *, correlation: Ints | None = None
    ) -> None:
        """Add whole graphs, of whose kernels nothing is known: they count as compute."""
        device = self._work(index, starts, ends, correlation, None, None)
        if device is not None:
            device.working.add(starts, ends)
            device.compute.add(starts, ends)
            device.graphs += starts.size
            device.graph_ns += int((ends - starts).sum())

    # --- hosts

    def host(self, process: int) -> HostData:
        """Return the data of a process."""
        found = self.hosts.get(process)
        if found is None:
            if len(self.hosts) >= MAX_PROCESSES:
                process = _CROWD
            found = self.hosts.setdefault(process, HostData())
        return found

    def by_process(self, processes: Ints) -> Iterator[tuple[int, Bools]]:
        """Yield each process and which rows are its; those over the limit are one."""
        every = np.unique(processes).tolist()
        known = [p for p in every if p in self.hosts]
        known += [p for p in every if p not in self.hosts][
            : max(0, MAX_PROCESSES - len(self.hosts))
        ]
        for process in known:
            yield process, processes == process
        if len(known) < len(every):
            yield _CROWD, ~np.isin(processes, known)

    def call_kinds(self, numbers: Ints) -> dict[Call, Bools]:
        """Return for each kind of call but the last which of the numbers of `calls` are of it."""
        for number in range(len(self._kinds), len(self.calls)):
            self._kinds.append(call_of(self.calls.name(number)))
        kinds = np.array([_KINDS.index(kind) for kind in self._kinds], dtype=np.int8)[numbers]
        return {kind: kinds == k for k, kind in enumerate(_KINDS) if kind is not Call.OTHER}

    def call_rows(
        self,
        process: int,
        starts: Ints,
        ends: Ints,
        numbers: Ints,
        *,
        correlation: Ints | None = None,
    ) -> None:
        """Add CPU calls of one process, one row each, without their totals."""
        self.span(starts, ends)
        kinds = self.call_kinds(numbers)
        host = self.host(process)
        enqueue = kinds[Call.LAUNCH] | kinds[Call.GRAPH] | kinds[Call.ENQUEUE]
        host.active.add(starts[enqueue], ends[enqueue])
        joins = enqueue | kinds[Call.COPY]
        if correlation is not None and joins.any():
            host.launches.add(correlation[joins], starts[joins], ends[joins])
        blocking = kinds[Call.SYNC] | kinds[Call.COPY]
        host.sync.add(starts[blocking], ends[blocking])
        allocating = kinds[Call.ALLOCATE]
        host.allocate.add(starts[allocating], ends[allocating])

    def range(self, process: int, name: str, start: int, end: int) -> None:
        """Add one range that the program marked."""
        self.phase(name, range_of(name), end - start)
        self.special(process, name, start, end)

    def special(self, process: int, name: str, start: int, end: int) -> None:
        """Add a range that says what the host does, without counting it."""
        kind = range_of(name)
        if kind in {Range.OTHER, Range.LIBRARY}:
            return
        host = self.host(process)
        times = (np.array([start]), np.array([end]))
        if kind is Range.DATA:
            host.data.add(*times)
        elif kind is Range.CHECKPOINT:
            host.checkpoint.add(*times)
        elif kind is Range.OPERATOR:
            host.active.add(*times)
        elif kind is Range.STEP:
            self.step(name, start, end)

    def phase(
        self, name: str, kind: Range, longest: int, count: int = 1, total: int | None = None
    ) -> None:
        """Count ranges of a name, ``longest`` of them being so long (ns)."""
        common = family(name)
        found = self.families.get(common)
        if found is None:
            if len(self.families) >= _FAMILIES:
                return
            found = self.families[common] = Family(kind)
        found.add(longest, count, total)

    def step(self, name: str, start: int, end: int) -> None:
        """Add an iteration."""
        steps = self.steps.setdefault(family(name), [])
        if len(steps) < _STEPS and len(self.steps) < _FAMILIES:
            steps.append((start, end))

    def span(self, starts: Ints, ends: Ints) -> None:
        """Widen the span of the whole trace."""
        if starts.size:
            low, high = int(starts.min()), int(ends.max())
            self.first = low if self.first is None else min(self.first, low)
            self.last = high if self.last is None else max(self.last, high)

    def moves(self, number: int) -> bool:
        """Return whether a kernel carries data between GPUs."""
        return communicates(self.names.name(number))

    # --- own

    def _work(
        self,
        index: int,
        starts: Ints,
        ends: Ints,
        correlation: Ints | None,
        streams: Ints | None,
        processes: Ints | None,
    ) -> DeviceData | None:
        if not starts.size:
            return None
        device = self.device(index)
        if device is None:
            self.left_out_devices += starts.size
            return None
        self.span(starts, ends)
        device.work(starts, ends, correlation)
        if streams is not None and len(device.streams) < _STREAMS:
            device.streams.update(np.unique(streams).tolist())
        if processes is not None and len(device.processes) < MAX_PROCESSES:
            device.processes.update(np.unique(processes).tolist())
        return device

    def _moving(self, numbers: Ints) -> Bools:
        """Return which kernels carry data between GPUs."""
        for number in range(len(self._communicates), len(self.names)):
            self._communicates.append(communicates(self.names.name(number)))
        found: Bools = np.array(self._communicates, dtype=bool)[numbers]
        return found


_KINDS = tuple(Call)
