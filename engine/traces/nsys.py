"""Exports of Nsight Systems (SQLite, Parquet) to figures.

Tables and columns: NVIDIA Nsight Systems Analysis Guide 2026.4, SQLite Schema Reference (schema
3.28.1). Tables without data are not written, and columns come and go with versions, so everything
is looked for first. Events with negative times lie before the capture and are dropped.
"""

from __future__ import annotations

import re

import numpy as np

from engine.errors import InputError
from engine.traces.collect import Collected
from engine.traces.figures import Limits, figures
from engine.traces.idle import ends_of_gaps
from engine.traces.intervals import Ints
from engine.traces.model import Figures
from engine.traces.names import Call, Range, call_name, cut, range_of
from engine.traces.nsysabout import ABOUT, about, device_names
from engine.traces.tables import MISSING, SAMPLE, Keep, Tables, sane

_KIND = "CUPTI_ACTIVITY_KIND_"
KERNEL, GRAPH = f"{_KIND}KERNEL", f"{_KIND}GRAPH_TRACE"
MEMCPY, MEMSET = f"{_KIND}MEMCPY", f"{_KIND}MEMSET"
RUNTIME, OVERHEAD = f"{_KIND}RUNTIME", f"{_KIND}OVERHEAD"
NVTX, OSRT = "NVTX_EVENTS", "OSRT_API"
# Any of these makes a database or a folder an nsys export.
MARKS = frozenset({*ABOUT, KERNEL, RUNTIME, NVTX, OSRT, GRAPH, MEMCPY})

# ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND.
_DIRECTIONS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    8: "DtoD",
    9: "HtoH",
    10: "peer",
    11: "unified HtoD",
    12: "unified DtoH",
    13: "unified DtoD",
}
_MEMORY = {0: "pageable", 1: "pinned", 4: "managed", 6: "managed"}
_FROM_HOST, _TO_HOST = frozenset({1, 3, 11}), frozenset({2, 4, 12})
# ENUM_CUPTI_OVERHEAD_TYPE: what the profiler itself takes; the others are the driver's.
_PROFILER = frozenset({1, 3, 4, 5})
# A thread that launches work and sits in one of these waits for somebody else.
_WAITS = re.compile(
    r"(?:p|e)?poll|p?select|epoll_p?wait|p?read(?:v|64|v64)?|recv(?:from|msg)?|fread|getline"
    r"|pthread_cond_(?:timed)?wait|pthread_join|sem_(?:timed|clock)?wait|futex|wait(?:pid|4|id)?"
    r"|(?:u|clock_nano|nano)?sleep|fsync|fdatasync|flock"
)
# Rows that join calls with the work they launch: more are sampled.
_JOINED = 150_000
_GAPS = 50_000
# Names kept beside the tables, and their characters.
_NAMES, _TEXT = 20_000, 2_000_000
# A copy of more bytes than any memory has.
_LARGEST = 1 << 48
# What is no number of a GPU.
_DEVICES = 1 << 16
_THREADS = 1_024
_SPECIAL = frozenset({Range.DATA, Range.STEP, Range.CHECKPOINT})
_PROCESS_SHIFT, _PROCESS_MASK = 24, 0xFFFFFF


class NsysReader:
    """Reads the tables of one export and returns its figures."""

    def __init__(self, tables: Tables, limits: Limits) -> None:
        self._tables = tables
        self._limits = limits
        self.data = Collected(small_ns=limits.small_ns)
        self._texts: dict[int, str] = {}
        self._text_left = _TEXT
        self._launchers: set[int] = set()
        self._only = MISSING

    def read(self) -> Figures:
        """Read everything.

        Raises:
            InputError: this is no nsys export, or it cannot be read.
        """
        if not any(self._tables.columns(table) for table in MARKS):
            raise InputError(
                "no table of an nsys export is in it",
                hint="make one with: nsys export --type sqlite REPORT.nsys-rep",
            )
        gpus = device_names(self._tables)
        if len(gpus) == 1:
            # Where rows do not say which GPU they are of, there is but one.
            self._only = next(iter(gpus))
        self._read_kernels()
        self._read_graphs()
        self._read_copies()
        self._read_memsets()
        self._read_calls()
        self._read_overhead()
        self._read_ranges()
        self._read_waits()
        return figures(
            self.data,
            about(self._tables, gpus, cpu_traced=bool(self._tables.columns(RUNTIME))),
            self._limits,
        )

    # --- the device

    def _read_kernels(self) -> None:
        names = [c for c in ("shortName", "demangledName") if c in self._tables.columns(KERNEL)]
        columns = (
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            names[0] if names else "shortName",
        )
        for batch in self._tables.rows(KERNEL, columns):
            starts, ends, devices, streams, correlation, processes, name = self._sane(batch)
            numbers = self._numbers(name)
            for index, mine in self.data.by_device(self._known(devices)):
                self.data.kernels(
                    index,
                    starts[mine],
                    ends[mine],
                    numbers[mine],
                    correlation=correlation[mine],
                    streams=streams[mine],
                    processes=_process(processes[mine]),
                )

    def _read_graphs(self) -> None:
        columns = ("start", "end", "deviceId", "correlationId")
        for batch in self._tables.rows(GRAPH, columns):
            starts, ends, devices, correlation = self._sane(batch)
            for index, mine in self.data.by_device(self._known(devices)):
                self.data.graphs(index, starts[mine], ends[mine], correlation=correlation[mine])

    def _read_copies(self) -> None:
        columns = (
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            "bytes",
            "copyKind",
            "srcKind",
            "dstKind",
        )
        for batch in self._tables.rows(MEMCPY, columns):
            rows = self._sane(batch)
            starts, ends, devices, streams, correlation, processes, size, kind, src, dst = rows
            devices = self._known(devices)
            host = np.where(np.isin(kind, list(_FROM_HOST)), src, MISSING)
            host = np.where(np.isin(kind, list(_TO_HOST)), dst, host)
            # One number for direction and host memory.
            group = ((kind & 0xFF) << 8) | (host & 0xFF)
            for index, own in self.data.by_device(devices):
                for one in np.unique(group[own]).tolist():
                    mine = own & (group == one)
                    known = bool(((size[mine] >= 0) & (size[mine] < _LARGEST)).all())
                    self.data.copies(
                        index,
                        starts[mine],
                        ends[mine],
                        (_DIRECTIONS.get(one >> 8, "other"), _MEMORY.get(one & 0xFF)),
                        size=int(size[mine].sum()) if known else None,
                        correlation=correlation[mine],
                        streams=streams[mine],
                        processes=_process(processes[mine]),
                    )

    def _read_memsets(self) -> None:
        columns = ("start", "end", "deviceId", "correlationId")
        for batch in self._tables.rows(MEMSET, columns):
            starts, ends, devices, correlation = self._sane(batch)
            for index, mine in self.data.by_device(self._known(devices)):
                self.data.memsets(index, starts[mine], ends[mine], correlation=correlation[mine])

    # --- the host

    def _read_calls(self) -> None:
        totals = self._tables.totals(RUNTIME, "nameId")
        self.data.odd += self._tables.odd(RUNTIME)
        numbers: dict[int, int] = {}
        for call, total in totals.items():
            number = numbers[call] = self.data.calls.number(call_name(self._text(call)))
            self.data.call_totals.put(number, total.count, total.total, total.longest)
            self.data.events += total.count
        if not numbers:
            return
        every: Ints = np.array(list(numbers.values()), dtype=np.int64)
        kinds = self.data.call_kinds(every)
        names = np.array(list(numbers), dtype=np.int64)
        blocking = kinds[Call.SYNC] | kinds[Call.COPY] | kinds[Call.ALLOCATE]
        joining = kinds[Call.LAUNCH] | kinds[Call.GRAPH] | kinds[Call.ENQUEUE]
        launches = sum(totals[n].count for n in names[joining].tolist())
        among = [("nameId", frozenset(names[blocking].tolist()))]
        sample = None
        if launches <= _JOINED:
            among[0] = ("nameId", frozenset(names[blocking | joining].tolist()))
        else:
            sample = ("correlationId", max(1, SAMPLE * _JOINED // launches))
            among.append(("correlationId", ends_of_gaps(self.data, _GAPS)))
        # The same names again as a table from number in the database to number here.
        order = np.argsort(names)
        names, every = names[order], every[order]
        columns = ("start", "end", "nameId", "correlationId", "globalTid")
        for batch in self._tables.rows(RUNTIME, columns, Keep(tuple(among), sample)):
            starts, ends, name, correlation, threads = self._sane(batch, count=False)
            at = np.minimum(np.searchsorted(names, name), names.size - 1)
            known = names[at] == name
            self._add_calls(
                starts[known], ends[known], every[at[known]], correlation[known], threads[known]
            )

    def _add_calls(
        self, starts: Ints, ends: Ints, numbers: Ints, correlation: Ints, threads: Ints
    ) -> None:
        for process, mine in self.data.by_process(_process(threads)):
            self.data.call_rows(
                process, starts[mine], ends[mine], numbers[mine], correlation=correlation[mine]
            )
        if len(self._launchers) < _THREADS and numbers.size:
            kinds = self.data.call_kinds(numbers)
            launching = threads[kinds[Call.LAUNCH] | kinds[Call.GRAPH]]
            self._launchers.update(np.unique(launching)[:_THREADS].tolist())

    def _read_overhead(self) -> None:
        for table in (OVERHEAD, "PROFILER_OVERHEAD"):
            for batch in self._tables.rows(table, ("start", "end", "overheadType")):
                starts, ends, kind = self._sane(batch)
                profiler = np.isin(kind, list(_PROFILER)) | (kind == MISSING)
                self.data.overhead.add(starts[profiler], ends[profiler])

    def _read_ranges(self) -> None:
        self.data.odd += self._tables.odd(NVTX)
        columns = ("start", "end", "globalTid")
        for names, (starts, ends, threads) in self._tables.named_rows(NVTX, "text", columns):
            self._add_ranges(names, starts, ends, _process(threads))
        if "textId" in self._tables.columns(NVTX):
            totals = self._tables.totals(NVTX, "textId")
            numbered = set()
            for number, total in totals.items():
                short = cut(self._text(number))
                kind = range_of(short)
                self.data.events += total.count
                self.data.phase(short, kind, total.longest, total.count, total.total)
                if kind in _SPECIAL:
                    numbered.add(number)
            keep = Keep((("textId", frozenset(numbered)),))
            if numbered:
                asked = ("start", "end", "globalTid", "textId")
                for batch in self._tables.rows(NVTX, asked, keep):
                    starts, ends, threads, texts = self._sane(batch, count=False)
                    rows = (starts, ends, _process(threads), texts)
                    for start, end, process, text in zip(*(c.tolist() for c in rows), strict=True):
                        self.data.special(process, cut(self._text(text)), start, end)

    def _add_ranges(self, names: list[str], starts: Ints, ends: Ints, processes: Ints) -> None:
        """Add ranges; their families are counted at once."""
        totals: dict[str, list[int]] = {}
        for name, length in zip(names, (ends - starts).tolist(), strict=True):
            totals.setdefault(name, []).append(length)
        special = {}
        for name, lengths in totals.items():
            short = cut(name)
            kind = range_of(short)
            self.data.phase(short, kind, max(lengths), len(lengths), sum(lengths))
            if kind in _SPECIAL:
                special[name] = short
        self.data.events += len(names)
        rows = zip(names, starts.tolist(), ends.tolist(), processes.tolist(), strict=True)
        for name, start, end, process in rows if special else ():
            if name in special:
                self.data.special(process, special[name], start, end)

    def _read_waits(self) -> None:
        totals = self._tables.totals(OSRT, "nameId")
        self.data.odd += self._tables.odd(OSRT)
        for number, total in totals.items():
            system = self.data.system.number(self._text(number))
            self.data.system_totals.put(system, total.count, total.total, total.longest)
            self.data.events += total.count
        if not self._launchers or "globalTid" not in self._tables.columns(OSRT):
            return
        names = [number for number in totals if _WAITS.fullmatch(self._text(number))]
        keep = Keep((("nameId", frozenset(names)),))
        launchers = np.array(sorted(self._launchers), dtype=np.int64)
        for batch in self._tables.rows(OSRT, ("start", "end", "globalTid"), keep):
            starts, ends, threads = self._sane(batch, count=False)
            mine = np.isin(threads, launchers)
            starts, ends = starts[mine], ends[mine]
            for process, own in self.data.by_process(_process(threads[mine])):
                self.data.host(process).waiting.add(starts[own], ends[own])

    # --- helpers

    def _sane(self, batch: list[Ints], *, count: bool = True) -> list[Ints]:
        """Return the rows within the capture; those with times that make no sense are counted."""
        starts, ends = batch[0], batch[1]
        kept = sane(starts, ends)
        if count:
            self.data.events += starts.size
            self.data.odd += int(((starts >= 0) & ~kept).sum())
        return batch if bool(kept.all()) else [column[kept] for column in batch]

    def _known(self, devices: Ints) -> Ints:
        """Return devices; where that is not told, the only one of the export, or none."""
        told = (devices >= 0) & (devices < _DEVICES)
        return np.where(told, devices, np.int64(self._only))

    def _numbers(self, names: Ints) -> Ints:
        """Return the numbers of kernel names here, for those in the database."""
        distinct, back = np.unique(names, return_inverse=True)
        numbers = [self.data.names.number(self._text(one)) for one in distinct.tolist()]
        found: Ints = np.array(numbers, dtype=np.int64)[back]
        return found

    def _text(self, number: int) -> str:
        found = self._texts.get(number)
        if found is None:
            found = self._tables.texts([number]).get(number, f"(name {number})")
            if len(self._texts) < _NAMES and len(found) <= self._text_left:
                self._text_left -= len(found)
                self._texts[number] = found
        return found


def _process(ids: Ints) -> Ints:
    """Return the process of serialised ids: 24 bits above the thread's 24."""
    found: Ints = (ids >> _PROCESS_SHIFT) & _PROCESS_MASK
    return np.where(ids == MISSING, np.int64(0), found)


def read_nsys(tables: Tables, limits: Limits) -> Figures:
    """Return the figures of an nsys export.

    Args:
        tables: the export.
        limits: what counts as a gap and as a small kernel.

    Raises:
        InputError: this is no nsys export, or it cannot be read.
    """
    return NsysReader(tables, limits).read()
