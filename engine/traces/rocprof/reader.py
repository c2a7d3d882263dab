"""Reads the CSV of rocprofv3: dispatches, copies, API calls and markers make one timeline."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.traces.collect import Collected
from engine.traces.figures import About, figures
from engine.traces.judging import judge
from engine.traces.rocprof.stats import Counters, Stats
from engine.traces.rocprof.tables import Header, Table, agent, cells, direction, whole
from engine.traces.timeline import Timeline

KIND: Final = "rocprofv3"
SOURCES: Final = (
    "ROCm/rocm-systems projects/rocprofiler-sdk, using rocprofv3: output file fields",
)
_BATCH: Final = 8_192
# So many lines of something else end a table.
_PATIENCE: Final = 20
_MARKERS: Final = "MARKER"


class RocprofReader:
    """All tables of a run belong together, whatever file each is in."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b'"Start_Timestamp","End_Timestamp"',
        b'"TotalDurationNs","AverageNs"',
        b'"Counter_Name","Counter_Value"',
    )
    together: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self.open = False
        self._timeline = Timeline(context.catalogue)
        self._data = Collected(small_ns=self._timeline.limits.small_ns)
        self._header: Header | None = None
        self._foreign = 0
        self._kernels: list[tuple[int, ...]] = []
        self._calls: list[tuple[int, ...]] = []
        self._stats = Stats()
        self._counters = Counters()
        self._names: dict[int, str] = {}
        self._seen: set[Table] = set()

    def feed(self, _number: int, text: str) -> bool:
        """Take a header or a row of the table that is open."""
        if "Timestamp" in text or "DurationNs" in text or "Counter_Name" in text:
            header = Header.of(text)
            if header is not None:
                self._header, self.open, self._foreign = header, True, 0
                self._seen.add(header.table)
                return True
        taken = self._header is not None and self._row(self._header, text)
        self._foreign = 0 if taken else self._foreign + 1
        if self._foreign > _PATIENCE:
            self.open, self._header = False, None
        return taken

    def _row(self, header: Header, text: str) -> bool:
        row = cells(text)
        if row is None or len(row) != len(header.columns):
            return False
        self._data.events += 1
        if header.table is Table.STATS:
            return self._stats.add(header, row)
        if header.table is Table.COUNTERS:
            return self._counters.add(header, row)
        start = whole(header.cell(row, "Start_Timestamp"))
        end = whole(header.cell(row, "End_Timestamp"))
        if start is None or end is None or not 0 < start <= end:
            self._data.odd += 1
            return True
        if header.table is Table.KERNELS:
            self._kernel(header, row, start, end)
        elif header.table is Table.COPIES:
            self._copy(header, row, start, end)
        else:
            self._call(header, row, start, end)
        return True

    def _kernel(self, header: Header, row: list[str], start: int, end: int) -> None:
        index = self._device(header.cell(row, "Agent_Id"))
        number = self._data.names.number(header.cell(row, "Kernel_Name"))
        correlation = whole(header.cell(row, "Correlation_Id")) or -1
        queue = whole(header.cell(row, "Queue_Id")) or 0
        self._kernels.append((index, start, end, number, correlation, queue))
        if len(self._kernels) >= _BATCH:
            self._flush_kernels()

    def _copy(self, header: Header, row: list[str], start: int, end: int) -> None:
        kind = direction(header.cell(row, "Direction"))
        side = "Source_Agent_Id" if kind == "DtoH" else "Destination_Agent_Id"
        correlation = whole(header.cell(row, "Correlation_Id")) or -1
        self._data.copies(
            self._device(header.cell(row, side)),
            np.array([start]),
            np.array([end]),
            (kind, None),
            size=None,
            correlation=np.array([correlation]),
        )

    def _call(self, header: Header, row: list[str], start: int, end: int) -> None:
        name = header.cell(row, "Function")
        process = whole(header.cell(row, "Process_Id")) or 0
        if header.cell(row, "Domain").startswith(_MARKERS):
            if not name.startswith("roctx") and end > start:
                self._data.range(process, name, start, end)
            return
        number = self._data.calls.number(name)
        correlation = whole(header.cell(row, "Correlation_Id")) or -1
        self._calls.append((process, start, end, number, correlation))
        if len(self._calls) >= _BATCH:
            self._flush_calls()

    def _device(self, text: str) -> int:
        index = agent(text) or 0
        if index not in self._names and len(self._names) < 64:
            self._names[index] = "".join(c for c in text if c.isalnum() or c in " -_")[:40]
        return index

    def _flush_kernels(self) -> None:
        if not self._kernels:
            return
        table = np.array(self._kernels, dtype=np.int64)
        self._kernels = []
        for index in np.unique(table[:, 0]).tolist():
            mine = table[table[:, 0] == index]
            self._data.kernels(
                index,
                mine[:, 1],
                mine[:, 2],
                mine[:, 3],
                correlation=mine[:, 4],
                streams=mine[:, 5],
            )

    def _flush_calls(self) -> None:
        if not self._calls:
            return
        table = np.array(self._calls, dtype=np.int64)
        self._calls = []
        self._data.call_totals.add(table[:, 3], table[:, 2] - table[:, 1])
        for process in np.unique(table[:, 0]).tolist():
            mine = table[table[:, 0] == process]
            self._data.call_rows(
                process, mine[:, 1], mine[:, 2], mine[:, 3], correlation=mine[:, 4]
            )

    def finish(self) -> Result:
        """Return what the run shows: the timeline, judged, and the summaries."""
        result = Result()
        if not self._seen:
            return result
        result.kinds.append(KIND)
        self._flush_kernels()
        self._flush_calls()
        if self._data.devices or Table.CALLS in self._seen:
            self._judge(result)
        result.findings += [
            _summary(*told) for told in (*self._stats.told(), *self._counters.told())
        ]
        return result

    def _judge(self, result: Result) -> None:
        about = About(
            source=KIND,
            tool="rocprofv3",
            device_names=self._names,
            cpu_traced=Table.CALLS in self._seen,
        )
        limits = self._timeline.limits
        findings, causes, notes = judge(figures(self._data, about, limits), self._timeline)
        result.findings += findings
        result.causes += causes
        result.notes += notes
        if any(not name.startswith("GPU") for name in self._names.values()):
            result.notes.append(
                "rocprofv3 numbers agents, CPUs among them: the GPU numbers here are not those of "
                "amd-smi. --agent-index=type-relative gives GPU-0, GPU-1 …"
            )


def _summary(id_: str, says: str, action: str, data: dict[str, Any]) -> Finding:
    return Finding(
        kind=KIND,
        id=id_,
        severity=Severity.INFO,
        says=says,
        action=action,
        entity=None,
        line=None,
        cause=None,
        data=data,
        sources=SOURCES,
    )
