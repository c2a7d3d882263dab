"""Reader of ``nvidia-smi --query-compute-apps=… --format=csv``: who holds memory on which GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, finding, node, result_of
from engine.readers.smi.state import listed, number_of, shown
from engine.units import number

_UNIT: Final = re.compile(r" \[[A-Za-z%/]{1,8}\]$")
_PID: Final = re.compile(r"^[0-9]{1,9}$")
_NAMES: Final = ("process_name", "name")
_MEMORY: Final = ("used_gpu_memory", "used_memory")
_GPU: Final = ("gpu_uuid", "gpu_bus_id", "gpu_serial", "gpu_name")
_COLUMNS: Final = frozenset({"pid", "timestamp", *_NAMES, *_MEMORY, *_GPU})
# What stands for the name where the process is in another PID namespace, or is no more.
_NOT_FOUND: Final = "not found"
MAX_PROCESSES: Final = 4_096


@dataclass(frozen=True, slots=True)
class _App:
    line: int
    host: str | None
    gpu: str
    pid: int
    name: str
    memory_mib: float | None


class SmiAppsReader(Listing[_App]):
    """Reads the header and its rows."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"pid, process_name",
        b"pid, name",
        b"pid, used_",
        b", pid",
        b"used_gpu_memory [",
    )
    PATIENCE: ClassVar[int] = 1

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[_App] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_PROCESSES) if kept is None else kept)
        self._columns: list[str] = []

    def take(self, number: int, text: str) -> bool:
        """Take the header, or a row."""
        cells = [cell.strip() for cell in text.split(",")]
        columns = [_UNIT.sub("", cell) for cell in cells]
        if "pid" in columns and len(columns) > 1 and _COLUMNS.issuperset(columns):
            self._columns = columns
            self.inside = True
            return True
        if not self.inside or len(cells) < len(self._columns):
            return False
        row = self._row(cells)
        if not _PID.match(row["pid"]):
            return False
        memory = next((row[key] for key in _MEMORY if key in row), "")
        name = next((row[key] for key in _NAMES if key in row), "")
        gpu = next((row[key] for key in _GPU if key in row), "")
        self.kept.add(
            _App(number, self.host, shown(gpu), int(row["pid"]), shown(name), number_of(memory))
        )
        return True

    def end(self) -> None:
        """Forget the columns: rows that come later have a header of their own."""
        self._columns = []

    def judge(self, records: Sequence[_App]) -> Result:
        """Say who holds memory where; sharing alone is no fault."""
        by_gpu: dict[str, list[_App]] = {}
        for app in records:
            by_gpu.setdefault(app.gpu, []).append(app)
        of = f" on {len(by_gpu)} GPU(s)" if "" not in by_gpu else ""
        groups = [f"{gpu + ': ' if gpu else ''}{_apps(apps)}" for gpu, apps in by_gpu.items()]
        says = f"{len(records)} process(es) hold memory{of}. {'; '.join(groups[:16])}."
        unnamed = [a for a in records if _NOT_FOUND in a.name.lower()]
        action = "Nothing to do if these are the programs that should run there."
        if unnamed:
            says += (
                f" {len(unnamed)} of them have no name: they are in another PID namespace (a "
                "container), or died and left their memory behind."
            )
            action = "On the host: fuser -v /dev/nvidia*; end what should not be there."
        found = finding(
            "nvidia_smi_apps",
            "programs",
            Severity.INFO,
            says,
            action,
            line=records[0].line,
            data={
                "process_count": len(records),
                "pids": [a.pid for a in records[:64]],
                "used_memory_mib": sum(a.memory_mib or 0.0 for a in records) or None,
            },
            entity=node(records[0].host),
            sources=("nvidia-smi --help-query-compute-apps",),
        )
        return result_of(["nvidia_smi_apps"], [found])

    def _row(self, cells: Sequence[str]) -> Mapping[str, str]:
        """Name the cells; commas that are too many belong to the process's name."""
        extra = len(cells) - len(self._columns)
        at = next((i for i, c in enumerate(self._columns) if c in _NAMES), None)
        if extra and at is not None:
            cells = [*cells[:at], ", ".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]
        return dict(zip(self._columns, cells, strict=False))


def _apps(apps: Sequence[_App]) -> str:
    return listed(
        [
            f"{app.name or 'a process'} (pid {app.pid}"
            + (f", {number(app.memory_mib)} MiB)" if app.memory_mib is not None else ")")
            for app in apps
        ],
        4,
    )
